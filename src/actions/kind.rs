//! The kinds of actions: a closed list.

use std::fmt;
use std::str::FromStr;

macro_rules! kinds {
    ($( $(#[$doc:meta])* $kind:ident {
        label: $label:literal, command: $command:literal, title: $title:literal, question: $question:literal,
        is_destructive: $is_destructive:literal, by_rules: $by_rules:literal $(,)?
    } )+) => {
        /// A kind of action.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ActionKind { $( $(#[$doc])* $kind, )+ }

        impl ActionKind {
            /// Every kind, in the order in which they are listed.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            fn row(self) -> &'static KindRow {
                match self {
                    $(Self::$kind => &KindRow {
                        label: $label,
                        command: $command,
                        title: $title,
                        question: $question,
                        is_destructive: $is_destructive,
                        by_rules: $by_rules,
                    },)+
                }
            }
        }
    };
}

struct KindRow {
    label: &'static str,
    command: &'static str,
    title: &'static str,
    question: &'static str,
    is_destructive: bool,
    by_rules: bool,
}

kinds! {
    /// Resumes a failed job after its last successful state, and moves a failed access request back to Pending.
    Resume {
        label: "resume", command: "resume", title: "Resume", question: "Resume {}?",
        is_destructive: false, by_rules: true,
    }
    /// Holds a pending job, a collection or a store.
    Hold {
        label: "hold", command: "hold", title: "Hold", question: "Hold {}?",
        is_destructive: false, by_rules: true,
    }
    /// Releases a held job, batch, collection or store.
    Release {
        label: "release", command: "release", title: "Release", question: "Release {}?",
        is_destructive: false, by_rules: true,
    }
    /// Fails a job that no daemon is working on.
    Fail {
        label: "fail", command: "fail", title: "Fail", question: "Fail {}?",
        is_destructive: false, by_rules: false,
    }
    /// Changes the priority of a job.
    SetPriority {
        label: "set_priority", command: "priority", title: "Set priority", question: "Set the priority of {}?",
        is_destructive: false, by_rules: false,
    }
    /// Reports a failed batch again.
    ReportAgain {
        label: "report_again", command: "report-again", title: "Report again", question: "Report {} again?",
        is_destructive: false, by_rules: false,
    }
    /// Withdraws a batch with all its jobs, of which none has left Pending.
    Withdraw {
        label: "withdraw", command: "withdraw", title: "Withdraw", question: "Withdraw {}?",
        is_destructive: true, by_rules: false,
    }
    /// Marks a job, a batch with all its jobs, or an access request Deleted.
    Delete {
        label: "delete", command: "delete", title: "Delete", question: "Delete {}?",
        is_destructive: true, by_rules: true,
    }
    /// Removes the znodes of a finished item.
    Purge {
        label: "purge", command: "purge", title: "Purge", question: "Purge {}?",
        is_destructive: true, by_rules: true,
    }
    /// Purges all finished batches.
    CleanUp {
        label: "clean_up", command: "clean-up", title: "Clean up", question: "Purge {}?",
        is_destructive: true, by_rules: false,
    }
    /// Removes a lock that will not be released.
    BreakLock {
        label: "break_lock", command: "break-lock", title: "Break lock", question: "Break the lock {}?",
        is_destructive: true, by_rules: true,
    }
    /// Pauses a queue.
    Pause {
        label: "pause", command: "pause", title: "Pause", question: "Pause {}?",
        is_destructive: false, by_rules: false,
    }
    /// Unpauses a queue.
    Unpause {
        label: "unpause", command: "unpause", title: "Unpause", question: "Unpause {}?",
        is_destructive: false, by_rules: false,
    }
    /// Repairs a fault.
    Repair {
        label: "repair", command: "repair", title: "Repair", question: "Repair {}?",
        is_destructive: false, by_rules: true,
    }
}

impl ActionKind {
    /// The name in the API and in audit records, and the label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.row().label
    }

    /// The name on the command line.
    #[must_use]
    pub fn command(self) -> &'static str {
        self.row().command
    }

    /// The text of a button.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The question on the confirmation page.
    #[must_use]
    pub fn question(self, on: &str) -> String {
        self.row().question.replacen("{}", on, 1)
    }

    /// Whether it cannot be undone.
    #[must_use]
    pub fn is_destructive(self) -> bool {
        self.row().is_destructive
    }

    /// Whether a rule for alerts may execute it.
    #[must_use]
    pub fn is_for_rules(self) -> bool {
        self.row().by_rules
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// The text is not the name of an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown action “{0}”")]
pub struct UnknownAction(String);

impl FromStr for ActionKind {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::ALL.into_iter().find(|kind| kind.label() == text).ok_or_else(|| UnknownAction(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_parsed_from_its_label() {
        for kind in ActionKind::ALL {
            assert_eq!(kind.label().parse(), Ok(kind));
            assert!(kind.question("it").contains("it") && kind.question("it").ends_with('?'), "{kind}");
        }
        assert!("Resume".parse::<ActionKind>().is_err());
    }
}
