//! The kinds of actions on the mill: a row for each, and those of [`Resolution`].

use super::resolution::Resolution;
use crate::actions::actor::Role;

macro_rules! kinds {
    ($($kind:ident $label:literal $role:ident, $effect:literal;)+) => {
        /// A kind of action on the mill.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MillActionKind {
            $(#[doc = $effect] $kind,)+
            /// Decides about a bit error.
            Resolve(Resolution),
        }

        impl MillActionKind {
            const OTHERS: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            /// The name in audit records, and the label value.
            #[must_use]
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$kind => $label,)+
                    Self::Resolve(resolution) => resolution.action(),
                }
            }

            /// The role that it requires.
            #[must_use]
            pub fn role(self) -> Role {
                match self {
                    $(Self::$kind => Role::$role,)+
                    Self::Resolve(resolution) => resolution.role(),
                }
            }
        }
    };
}

// What was held would destroy something.
kinds! {
    ReleaseTask "release_task" Admin, "Lets held tasks take effect.";
    RetryTask "retry_task" Operator, "Lets dead letters be tried again.";
    DropTask "drop_task" Operator, "Removes dead letters; or held tasks, which requires the role that releases them.";
    CheckContent "check_content" Operator, "Has content checked, which may cost.";
    StopRepairs "stop_repairs" Operator, "Stops automatic repairs.";
    ResumeRepairs "resume_repairs" Admin, "Lets repairs start by themselves again, also where the mill has stopped them.";
    SavePolicy "save_policy" Admin, "Writes the policy of an account and brings it into force.";
    ApplyPolicy "apply_policy" Admin, "Brings the policy file of an account into force.";
    PauseMill "pause_mill" Operator, "Pauses the work for an account, a store, or an account in a store.";
    ResumeMill "resume_mill" Operator, "Ends a pause.";
}

impl MillActionKind {
    /// Every kind.
    pub const ALL: [Self; Self::OTHERS.len() + Resolution::ALL.len()] = {
        let mut all = [Self::Resolve(Resolution::Repair); Self::OTHERS.len() + Resolution::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < Self::OTHERS.len() {
                Self::OTHERS[at]
            } else {
                Self::Resolve(Resolution::ALL[at - Self::OTHERS.len()])
            };
            at += 1;
        }
        all
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_documentation_names_each_action_on_the_mill_and_no_other_with_its_role() {
        let documentation = include_str!("../../../docs/mill.md");
        let (_, listed) = documentation.split_once("on `/audit` and in the audit file (").unwrap();
        let listed: BTreeSet<_> = listed.split_once(')').unwrap().0.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, MillActionKind::ALL.map(MillActionKind::label).into());
        // Where a role stands right before the name.
        let mut with_role = 0;
        for kind in MillActionKind::ALL {
            for role in Role::ALL {
                let is_named = documentation.contains(&format!("{role}, `{}`", kind.label()));
                assert!(!is_named || role == kind.role(), "{}: {role}", kind.label());
                with_role += usize::from(is_named);
            }
        }
        assert!(with_role >= 7, "{with_role}");
        let roles = include_str!("../../../docs/security.md");
        for role in [Role::Operator, Role::Admin] {
            let row = roles.lines().find_map(|line| line.strip_prefix(&format!("| `{role}` |"))).unwrap();
            let listed: BTreeSet<_> = row.split('`').skip(1).step_by(2).collect();
            let of_role = MillActionKind::ALL.into_iter().filter(|kind| kind.role() == role);
            let expected: BTreeSet<_> = of_role.map(MillActionKind::label).collect();
            assert_eq!(listed, expected, "{role} in docs/security.md");
        }
    }
}
