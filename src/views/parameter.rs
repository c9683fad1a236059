//! The values that parameters take: each is a text in a query string, on the command line and in links, and describes
//! itself in the OpenAPI document and the help.

use std::fmt::{self, Display};

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParserFactory};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

mod number;
mod text;

pub(crate) use number::Within;
pub(crate) use text::{BatchName, Holder, Instant, SearchFor, Text};

use crate::mirror::find::{Direction, JobOrder};
use crate::mirror::lists::{BatchOrder, FailureOrder, FaultOrder, LockOrder, RequestOrder};
use crate::mirror::{AGE_LABELS, LockKind, state_label};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::AccessQueue;
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// One of a few values, each of which has a label.
pub(crate) trait Labelled: Copy + PartialEq + Send + Sync + 'static {
    /// Every value.
    fn all() -> Vec<Self>;

    /// The value's name.
    fn label(self) -> &'static str;

    /// The names of all values.
    fn labels() -> &'static [&'static str];

    /// The value that holds where none is set.
    fn usual() -> Option<Self> {
        None
    }
}

/// Says what values a parameter of a type takes: all of them, each by its label; the default too, where it has one.
macro_rules! labelled {
    ($($type:ty: $all:expr, $label:expr $(, $usual:expr)?;)+) => { $(
        impl $crate::views::parameter::Labelled for $type {
            fn all() -> Vec<Self> {
                $all.to_vec()
            }

            fn label(self) -> &'static str {
                $label(self)
            }

            fn labels() -> &'static [&'static str] {
                static LABELS: std::sync::LazyLock<Vec<&'static str>> =
                    std::sync::LazyLock::new(|| $all.to_vec().into_iter().map($label).collect());
                &LABELS
            }

            $(fn usual() -> Option<Self> {
                Some($usual)
            })?
        }
    )+ };
}

pub(crate) use labelled;

labelled! {
    Fault: Fault::ALL, Fault::label;
    JobOrder: JobOrder::ALL, JobOrder::label, Self::default();
    Direction: Direction::ALL, Direction::label, Self::default();
    BatchOrder: BatchOrder::ALL, BatchOrder::label, Self::default();
    RequestOrder: RequestOrder::ALL, RequestOrder::label, Self::default();
    LockOrder: LockOrder::ALL, LockOrder::label, Self::default();
    FailureOrder: FailureOrder::ALL, FailureOrder::label, Self::default();
    FaultOrder: FaultOrder::ALL, FaultOrder::label, Self::default();
    LockKind: LockKind::ALL, LockKind::label;
    AccessQueue: AccessQueue::ALL, AccessQueue::name;
    AgeBand: (0..AGE_LABELS.len()).map(AgeBand).collect::<Vec<_>>(), AgeBand::label;
    Option<JobState>: states::<JobState>(), state_label;
    Option<BatchState>: states::<BatchState>(), state_label;
    Option<AccessState>: states::<AccessState>(), state_label;
}

/// Every state, and `None` for a status that is none of them.
fn states<S: State>() -> Vec<Option<S>> {
    S::ALL.iter().copied().map(Some).chain([None]).collect()
}

/// An age band, as an index of [`AGE_LABELS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgeBand(pub(crate) usize);

impl AgeBand {
    fn label(self) -> &'static str {
        AGE_LABELS[self.0]
    }
}

/// A parameter that takes one of a few values, by their labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OneOf<T>(pub(crate) T);

impl<T: Labelled> OneOf<T> {
    /// Its label.
    pub(crate) fn label(self) -> &'static str {
        self.0.label()
    }

    /// The value of this label.
    pub(crate) fn known(label: &str) -> Option<T> {
        T::all().into_iter().find(|value| value.label() == label)
    }

    fn find(label: &str) -> Option<Self> {
        Self::known(label).map(Self)
    }
}

impl<T: Labelled> Display for OneOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl<T: Labelled> Serialize for OneOf<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}

impl<'de, T: Labelled> Deserialize<'de> for OneOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let usual = || T::usual().filter(|_| text.is_empty()).map(Self);
        Self::find(&text).or_else(usual).ok_or_else(|| D::Error::unknown_variant(&text, T::labels()))
    }
}

impl<T: Labelled> ValueParserFactory for OneOf<T> {
    type Parser = clap::builder::ValueParser;

    fn value_parser() -> Self::Parser {
        let known = PossibleValuesParser::new(T::labels());
        known.map(|label| Self::find(&label).expect("only labels are possible values")).into()
    }
}

impl<T: Labelled> PartialSchema for OneOf<T> {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(T::labels().iter().copied()));
        text.default(T::usual().map(|usual| usual.label().into())).into()
    }
}

impl<T: Labelled> ToSchema for OneOf<T> {}
