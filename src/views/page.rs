//! Which page of a list.

use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::error::ViewError;
use super::parameter::Within;
use crate::mirror::find::{InvalidCursor, PAGE_LIMIT};
use crate::mirror::lists::PageRequest;

/// How many items a page has, of a list with this usual number.
// The compiler (1.95) breaks down over closures with this type where its bound is a constant.
pub(crate) type PageLimit<const USUAL: u32> = Within<1, 500, USUAL>;

const _: () = assert!(PAGE_LIMIT == 500, "the largest page is the mirror's");

/// How many items a page has.
pub(crate) type Limit = PageLimit<50>;

/// Which page of a list.
#[derive(Clone, Debug, Default, Deserialize, Serialize, Args, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
#[command(next_help_heading = "How much")]
pub(crate) struct PageQuery {
    /// How many items to show at most, 1 to 500.
    #[arg(long, value_name = "NUMBER", default_value_t)]
    #[param(inline)]
    pub(crate) limit: Limit,

    /// Where the page begins: the `next` of an earlier page of the same list.
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

impl PageQuery {
    /// The first page of that size.
    pub(crate) fn first(size: usize) -> Self {
        Self { limit: Limit::nearest(size), cursor: None }
    }

    /// Where it begins, in a list of that kind.
    pub(crate) fn after<C: FromStr<Err = InvalidCursor>>(&self) -> Result<Option<C>, ViewError> {
        let cursor = self.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        Ok(cursor.map(str::parse).transpose()?)
    }

    /// The part of a list that it asks for.
    pub(crate) fn part(&self) -> Result<PageRequest, ViewError> {
        Ok(PageRequest { after: self.after()?, size: self.limit.get() })
    }

    /// Its size, as a parameter where it is not the usual one.
    pub(crate) fn size(&self) -> Self {
        Self { cursor: None, ..self.clone() }
    }
}
