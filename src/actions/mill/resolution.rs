//! What is decided about a bit error: a row for each.

use queuekeeper_mill::bit::verdict::Remedy;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::actions::actor::Role;

macro_rules! resolutions {
    ($( $(#[$doc:meta])* $resolution:ident {
        name: $name:literal, of: $of:literal, role: $role:ident, remedies: [$($remedy:ident),*],
        state: $state:literal, help: $help:literal $(,)?
    } )+) => {
        /// What is decided about a bit error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Resolution { $( $(#[$doc])* $resolution, )+ }

        impl Resolution {
            /// Every one.
            pub const ALL: [Self; [$(Self::$resolution),+].len()] = [$(Self::$resolution),+];

            fn row(self) -> &'static ResolutionRow {
                match self {
                    $(Self::$resolution => &ResolutionRow {
                        name: $name,
                        action: concat!($name, "_", $of),
                        role: Role::$role,
                        remedies: &[$(Remedy::$remedy),*],
                        state: $state,
                        help: $help,
                    },)+
                }
            }
        }
    };
}

struct ResolutionRow {
    name: &'static str,
    /// The name in audit records, and the label value.
    action: &'static str,
    role: Role,
    /// Those of the mill that it carries out. Their own names are what the catalogue keeps of a repair.
    remedies: &'static [Remedy],
    /// The state of the copy after the decision.
    state: &'static str,
    help: &'static str,
}

// What changes the record changes what is held to be right.
resolutions! {
    /// Its content is written from another copy.
    Repair {
        name: "repair", of: "copy", role: Operator, remedies: [RepairFromCopy], state: "being repaired",
        help: "Writes the content of another copy, which is read first and must match the content index and the audit log. The present content is kept aside.",
    }
    /// Its content, which is right, is written again in its own place.
    Rewrite {
        name: "rewrite", of: "copy", role: Operator, remedies: [RewriteInPlace], state: "being written again",
        help: "Writes the content, which matches its record, again in its own place, so that the store computes a new checksum. The present content is kept aside.",
    }
    /// Its record is corrected to what the content and the other record prove.
    Correct {
        name: "correct", of: "record", role: Admin, remedies: [CorrectIndex, AppendEvent], state: "being recorded",
        help: "Appends an event that corrects the record to what the content and the other record prove.",
    }
    /// Its content, which has no record, is recorded.
    Adopt {
        name: "adopt", of: "content", role: Admin, remedies: [Adopt], state: "being recorded",
        help: "Records the content, which has no record, as the last check found it; policies copy it from then on.",
    }
    /// Its content, which another program changed, is recorded.
    Accept {
        name: "accept", of: "change", role: Admin, remedies: [AcceptChange], state: "being recorded",
        help: "Records the changed content as the last check found it, in place of the earlier record; policies then copy it over the other copies.",
    }
    /// It is closed without any change.
    Drop {
        name: "drop", of: "error", role: Operator, remedies: [], state: "dropped",
        help: "Closes the bit error without changing anything. The next check that finds the same opens a new one.",
    }
}

impl Resolution {
    /// The name in the command line, the API and forms.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The name of the action in audit records, and the label value: what is done, and to what.
    #[must_use]
    pub fn action(self) -> &'static str {
        self.row().action
    }

    /// The resolution with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resolution| resolution.as_str() == name)
    }

    /// What it does, as a sentence.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.row().help
    }

    /// The state of the copy after the decision.
    pub(super) fn state(self) -> &'static str {
        self.row().state
    }

    /// The role that it requires.
    #[must_use]
    pub fn role(self) -> Role {
        self.row().role
    }

    /// The one that carries out a remedy; `None` where none does.
    #[must_use]
    pub fn of(remedy: Remedy) -> Option<Self> {
        Self::ALL.into_iter().find(|resolution| resolution.row().remedies.contains(&remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remedy_is_carried_out_by_one_resolution_but_the_one_that_is_for_the_provider() {
        for remedy in Remedy::ALL {
            let found = Resolution::ALL.iter().filter(|resolution| resolution.row().remedies.contains(&remedy)).count();
            assert_eq!(found, usize::from(remedy != Remedy::WriteToProvider), "{}", remedy.as_str());
        }
        for resolution in Resolution::ALL {
            let read: Resolution = serde_json::from_value(resolution.as_str().into()).unwrap();
            assert_eq!(read, resolution);
        }
    }
}
