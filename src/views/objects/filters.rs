//! Which objects and files are shown.

use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::ViewError;
use crate::views::page::Limit;
use crate::views::parameter::Within;

/// Which files of an object; without any of these, the first ones of its newest version.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FileFilter {
    /// Those of the version with this number; 0 is the newest one.
    #[param(inline)]
    pub(crate) version: VersionNumber,
    /// Those after this path: `next_file` of the previous page.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "producer/page-0500.tif")]
    pub(crate) after: String,
}

/// The number of a version; 0 is the newest one.
pub(crate) type VersionNumber = Within<0, 10_000, 0>;

/// Which objects; without any of these, all of them.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ObjectFilter {
    /// The one of this ARK.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// The one with this local id of its owner; together with `owner`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) local_id: String,
    /// The ARK of the owner of that local id.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "ark:/99999/fk4owner")]
    pub(crate) owner: String,
    /// Those of this collection.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) collection: String,
    /// Those whose title begins with this, whatever the case of the letters A to Z, in the order of their titles.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) title: String,
    /// Those after this ARK: `next` of the previous page.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) after: String,
    /// How many objects to show at most, 1 to 500.
    #[param(inline)]
    pub(crate) limit: Limit,
}

impl ObjectFilter {
    /// Refuses fields of which one would be ignored.
    pub(super) fn check(&self) -> Result<(), ViewError> {
        let fields = [("ark", &self.ark), ("local_id", &self.local_id), ("title", &self.title)];
        let mut given = fields.into_iter().filter(|(_, text)| !text.trim().is_empty());
        let first = given.next().map(|(name, _)| name);
        if let Some((name, text)) = given.next() {
            return Err(ViewError::value_because(name, text, "only one of ark, local_id and title can be given"));
        }
        if !self.owner.trim().is_empty() && first != Some("local_id") {
            return Err(ViewError::value_because("owner", &self.owner, "it can only be combined with local_id"));
        }
        if first == Some("local_id") && self.owner.trim().is_empty() {
            let why = "owner is missing: a local id is unique only within its owner";
            return Err(ViewError::value_because("local_id", &self.local_id, why));
        }
        if !self.collection.trim().is_empty() && matches!(first, Some("ark" | "local_id")) {
            return Err(ViewError::value_because("collection", &self.collection, "it can only be combined with title"));
        }
        Ok(())
    }
}
