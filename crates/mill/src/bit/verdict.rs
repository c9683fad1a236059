//! What a check of one copy can find, and what can be done about it.

use std::collections::BTreeSet;
use std::fmt;

use queuekeeper_store::Digests;

/// The size and the digests of one content, as one source states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixity {
    /// The size in bytes.
    pub size: u64,
    /// The digests of the whole content; where a source has none, it states the size alone.
    pub digests: Digests,
}

/// What was seen of a copy in its store, in one of two ways: by reading the content, or by asking for its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// Nothing: the store was not asked in this way.
    NotLooked,
    /// That there is no such item.
    Missing,
    /// An item.
    Present(Fixity),
}

/// Everything that is known of one copy. What the index and the audit log say is read again before a verdict, after the
/// store was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// C: the content, read now and hashed by every algorithm that the others have, and SHA-256.
    pub content: Sighting,
    /// S: what the store says. Its digests are checksums of the whole content; an entity tag is none.
    pub store: Sighting,
    /// I: the content index; `None` where it has no row, or one of a deleted copy.
    pub index: Option<Fixity>,
    /// A: the last settled event of the audit log; `None` where there is none, or where it is a deletion. One without a
    /// digest counts as absent.
    pub audit: Option<Fixity>,
}

impl Sources {
    /// What the audit log says, where it has a digest.
    #[must_use]
    pub fn audit(&self) -> Option<&Fixity> {
        self.audit.as_ref().filter(|audit| !audit.digests.is_empty())
    }
}

/// Which look at a copy this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether the content may be read where that is needed for a verdict.
    pub may_read: bool,
    /// Whether the look just before saw the content, or that it is missing, and was answered by [`Next::Read`].
    pub is_second: bool,
    /// Whether no further round follows, so that this look gives the verdict.
    pub is_last_round: bool,
}

/// What a look at a copy has found. Named by their rows in the table of the `DuraCloud` Mill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyFinding {
    /// The content is what the record says.
    Proven,
    /// The content is not what the record says.
    ContentDamaged,
    /// The content is what the record says, and not what the checksum of the store says.
    StoreChecksumWrong,
    /// The content was not read, and the checksum of the store is not what the record says.
    StoreChecksumDiffers,
    /// The content index is wrong, or has no row.
    IndexWrong,
    /// The audit log is wrong.
    AuditWrong,
    /// The audit log has no event.
    AuditAbsent,
    /// There is no content, and there is a record of it.
    ContentMissing,
    /// There is content, and no record of it.
    NotRecorded,
    /// Content and checksum agree with each other, and with no record: it was written around this program.
    ChangedOutside,
    /// There is neither content nor a record.
    Absent,
}

impl CopyFinding {
    /// All of them, in the order of their rows.
    pub const ALL: [Self; 11] = [
        Self::Proven,
        Self::ContentDamaged,
        Self::StoreChecksumWrong,
        Self::StoreChecksumDiffers,
        Self::IndexWrong,
        Self::AuditWrong,
        Self::AuditAbsent,
        Self::ContentMissing,
        Self::NotRecorded,
        Self::ChangedOutside,
        Self::Absent,
    ];

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Proven => ("proven", "the content is as recorded"),
            Self::ContentDamaged => ("content_damaged", "content damaged"),
            Self::StoreChecksumWrong => ("store_checksum_wrong", "the provider's checksum is wrong"),
            Self::StoreChecksumDiffers => {
                ("store_checksum_differs", "the provider's checksum differs, and the content was not read")
            }
            Self::IndexWrong => ("index_wrong", "the content index is wrong or has no row"),
            Self::AuditWrong => ("audit_wrong", "record out of step: the audit log is wrong"),
            Self::AuditAbsent => ("audit_absent", "the audit log has no event"),
            Self::ContentMissing => ("content_missing", "content missing"),
            Self::NotRecorded => ("not_recorded", "stored, not recorded"),
            Self::ChangedOutside => ("changed_outside", "changed by another program"),
            Self::Absent => ("absent", "neither stored nor recorded"),
        }
    }

    /// The row of the table, from 1 to 11.
    #[must_use]
    pub fn row(self) -> u8 {
        self as u8 + 1
    }

    /// The name in reports and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.words().0
    }

    /// The finding with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|finding| finding.as_str() == name)
    }

    /// Whether an operator, or an automatic repair, is to decide about it.
    #[must_use]
    pub fn is_bit_error(self) -> bool {
        match self {
            Self::ContentDamaged
            | Self::StoreChecksumWrong
            | Self::StoreChecksumDiffers
            | Self::AuditWrong
            | Self::ContentMissing
            | Self::ChangedOutside => true,
            Self::Proven | Self::IndexWrong | Self::AuditAbsent | Self::NotRecorded | Self::Absent => false,
        }
    }

    /// Whether it is of the record alone, and says nothing of the content.
    #[must_use]
    pub fn is_of_record(self) -> bool {
        matches!(self, Self::IndexWrong | Self::AuditWrong | Self::AuditAbsent)
    }

    /// Whether the audit log is to say that this was observed.
    #[must_use]
    pub fn is_observed(self) -> bool {
        matches!(self, Self::NotRecorded | Self::ChangedOutside)
    }
}

/// As words of a sentence.
impl fmt::Display for CopyFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.words().1)
    }
}

/// Why no finding explains what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// The store has the item in one way and does not have it in the other.
    MissingAndPresent,
    /// Content and checksum of the store contradict each other, and no record shows which is right.
    ContentAndStore,
    /// The content index and the audit log contradict each other, and nothing shows which of them is right.
    IndexAndAudit,
    /// Content, checksum of the store and record all contradict each other.
    All,
}

impl fmt::Display for Conflict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::MissingAndPresent => "the store has the item and does not have it",
            Self::ContentAndStore => {
                "the content and the store's checksum contradict each other, and no record shows which is right"
            }
            Self::IndexAndAudit => {
                "the content index and the audit log contradict each other, and nothing shows which is right"
            }
            Self::All => "the content, the store's checksum and the record all contradict each other",
        })
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckResult {
    /// The bytes are proven, and nothing is wrong.
    Success,
    /// Something is wrong: see the findings.
    Failure,
    /// What was seen contradicts itself.
    Error(Conflict),
    /// Nothing is wrong, and nothing was proven.
    Unproven,
    /// There is nothing to check.
    Nothing,
}

impl CheckResult {
    /// The names of all of them.
    pub const NAMES: [&str; 5] = ["success", "failure", "error", "unproven", "nothing"];

    /// The name in reports and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Error(_) => "error",
            Self::Unproven => "unproven",
            Self::Nothing => "nothing",
        }
    }
}

/// How it was proven that the bytes are what the record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proof {
    /// By a checksum that the store keeps of the whole content.
    Provider,
    /// By reading them.
    Read,
}

impl Proof {
    /// All of them, the weaker first.
    pub const ALL: [Self; 2] = [Self::Provider, Self::Read];

    /// The name in the catalogue, in reports and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Read => "read",
        }
    }

    /// The proof with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|proof| proof.as_str() == name)
    }
}

/// What can be done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Remedy {
    /// Write the content of another copy, read just now.
    RepairFromCopy,
    /// Write the content, which is right, in its own place again, so that the store computes its checksum anew.
    RewriteInPlace,
    /// Write to the provider.
    WriteToProvider,
    /// Bring the content index to what the audit log says.
    CorrectIndex,
    /// Append an event that says what the content index says.
    AppendEvent,
    /// Take what the store has into the record, which has nothing of it.
    Adopt,
    /// Take what the store has into the record in place of what it says.
    AcceptChange,
}

impl Remedy {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RepairFromCopy,
        Self::RewriteInPlace,
        Self::WriteToProvider,
        Self::CorrectIndex,
        Self::AppendEvent,
        Self::Adopt,
        Self::AcceptChange,
    ];

    /// The remedy with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|remedy| remedy.as_str() == name)
    }

    /// Whether it concerns the record alone, and leaves the content.
    #[must_use]
    pub fn is_of_record(self) -> bool {
        match self {
            Self::CorrectIndex | Self::AppendEvent | Self::Adopt | Self::AcceptChange => true,
            Self::RepairFromCopy | Self::RewriteInPlace | Self::WriteToProvider => false,
        }
    }

    /// The name in pages, API and command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RepairFromCopy => "repair_from_copy",
            Self::RewriteInPlace => "rewrite_in_place",
            Self::WriteToProvider => "write_to_provider",
            Self::CorrectIndex => "correct_index",
            Self::AppendEvent => "append_event",
            Self::Adopt => "adopt",
            Self::AcceptChange => "accept_change",
        }
    }
}

/// A remedy that is possible by what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offer {
    /// What can be done.
    pub remedy: Remedy,
    /// Whether an operator has to start it, whatever is configured.
    pub only_by_asking: bool,
}

/// What a look at a copy has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckVerdict {
    /// How it ended.
    pub result: CheckResult,
    /// What was found. Of a success this is [`CopyFinding::Proven`] alone, of nothing [`CopyFinding::Absent`] alone.
    pub findings: BTreeSet<CopyFinding>,
    /// How the bytes were proven to be what the record says; `None` where they were not. A failure may have one: what
    /// is wrong then is the record, or the checksum of the store.
    pub proof: Option<Proof>,
    /// What can be done about it.
    pub offers: Vec<Offer>,
}

impl CheckVerdict {
    /// Whether nothing is known to be wrong, be it proven or not.
    #[must_use]
    pub fn is_nothing_wrong(&self) -> bool {
        matches!(self.result, CheckResult::Success | CheckResult::Unproven)
    }

    /// Whether an operator, or an automatic repair, is to decide about it.
    #[must_use]
    pub fn is_bit_error(&self) -> bool {
        matches!(self.result, CheckResult::Error(_)) || self.findings.iter().any(|finding| finding.is_bit_error())
    }
}

/// What is wrong, as a sentence without a full stop; of a success, that nothing is.
impl fmt::Display for CheckVerdict {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings = self.findings.iter().map(ToString::to_string);
        let words: Vec<_> = match self.result {
            CheckResult::Error(conflict) => [conflict.to_string()].into_iter().chain(findings).collect(),
            CheckResult::Unproven => {
                vec!["nothing proves the content: it was not read, and the store keeps no checksum".to_owned()]
            }
            CheckResult::Success | CheckResult::Failure | CheckResult::Nothing => findings.collect(),
        };
        to.write_str(&words.join("; "))
    }
}

/// What to do after a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// The verdict stands.
    End,
    /// Look again at once, and read the content: for the first time, or for the second.
    Read,
    /// Wait for the next round, and begin anew.
    Later,
}

/// The answer to a look at a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was found. It counts only where `next` is [`Next::End`].
    pub verdict: CheckVerdict,
    /// What to do.
    pub next: Next,
}
