//! The kinds of actions on the mill: a closed list.

/// A kind of action on the mill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MillActionKind {
    /// Lets held tasks take effect.
    ReleaseTask,
    /// Lets dead letters be tried again.
    RetryTask,
    /// Removes held tasks or dead letters.
    DropTask,
    /// Has content checked.
    CheckContent,
    /// Repairs a copy from another one.
    RepairCopy,
    /// Writes the content of a copy, which is right, in its own place again.
    RewriteCopy,
    /// Brings the record of a copy to what its content and the rest of the record prove.
    CorrectRecord,
    /// Takes content that no record knows of into the record.
    AdoptContent,
    /// Takes content that was changed outside into the record.
    AcceptChange,
    /// Closes a bit error without anything being done about it.
    DropError,
    /// Stops automatic repairs.
    StopRepairs,
    /// Lets repairs start by themselves again.
    ResumeRepairs,
    /// Writes the policy of an account and brings it into force.
    SavePolicy,
    /// Brings the policy file of an account into force.
    ApplyPolicy,
    /// Pauses the work for an account, a store, or an account in a store.
    PauseMill,
    /// Ends a pause.
    ResumeMill,
}

impl MillActionKind {
    /// Every kind.
    pub const ALL: [Self; 16] = [
        Self::ReleaseTask,
        Self::RetryTask,
        Self::DropTask,
        Self::CheckContent,
        Self::RepairCopy,
        Self::RewriteCopy,
        Self::CorrectRecord,
        Self::AdoptContent,
        Self::AcceptChange,
        Self::DropError,
        Self::StopRepairs,
        Self::ResumeRepairs,
        Self::SavePolicy,
        Self::ApplyPolicy,
        Self::PauseMill,
        Self::ResumeMill,
    ];

    /// The name in audit records, and the label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ReleaseTask => "release_task",
            Self::RetryTask => "retry_task",
            Self::DropTask => "drop_task",
            Self::CheckContent => "check_content",
            Self::RepairCopy => "repair_copy",
            Self::RewriteCopy => "rewrite_copy",
            Self::CorrectRecord => "correct_record",
            Self::AdoptContent => "adopt_content",
            Self::AcceptChange => "accept_change",
            Self::DropError => "drop_error",
            Self::StopRepairs => "stop_repairs",
            Self::ResumeRepairs => "resume_repairs",
            Self::SavePolicy => "save_policy",
            Self::ApplyPolicy => "apply_policy",
            Self::PauseMill => "pause_mill",
            Self::ResumeMill => "resume_mill",
        }
    }
}
