//! Taking paths apart.

use super::{
    AccessQueue, BatchNode, EntryName, JobNode, JobOutcome, LockFolder, Path, QueueName, RequestNode, StateFolder,
};

impl Path {
    /// Reads a path relative to the chroot, as watch events carry it. Every text has a reading.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if !text.starts_with('/') || text.contains("//") {
            return Self::Unexpected(text.into());
        }
        let mut reader = Reader { text, at: 0 };
        reader.root().unwrap_or_else(|| Self::Unexpected(text[..reader.at].into()))
    }

    /// The path of a child, by its name.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self {
            Self::Foreign => Self::Foreign,
            Self::Own(parent) => Self::own(&format!("{parent}/{name}")).unwrap_or(Self::Foreign),
            Self::Root => Self::parse(&format!("/{name}")),
            parent => Self::parse(&format!("{parent}/{name}")),
        }
    }
}

/// Reads a path part by part; `at` is the end of the last part read, so a failure knows how far the path was expected.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn part(&mut self) -> Option<&'a str> {
        let rest = self.text[self.at..].strip_prefix('/').filter(|rest| !rest.is_empty())?;
        let end = rest.find('/').unwrap_or(rest.len());
        self.at += 1 + end;
        Some(&rest[..end])
    }

    /// `path` where nothing follows; otherwise the next part is unexpected.
    fn end(&mut self, path: Path) -> Option<Path> {
        match self.part() {
            None => Some(path),
            Some(_) => None,
        }
    }

    /// `here` where the path ends, else what `below` makes of the next part.
    fn or_below(&mut self, here: Path, below: impl FnOnce(&mut Self, &'a str) -> Option<Path>) -> Option<Path> {
        match self.part() {
            None => Some(here),
            Some(name) => below(self, name),
        }
    }

    fn root(&mut self) -> Option<Path> {
        self.or_below(Path::Root, |reader, name| match name {
            "batch-uuids" => reader.or_below(Path::BatchUuids, |reader, uuid| reader.end(Path::BatchUuid(uuid.into()))),
            "batches" => reader.or_below(Path::Batches, Self::batch),
            "jobs" => reader.or_below(Path::Jobs, Self::job),
            "access" => reader.or_below(Path::Access, Self::access),
            "locks" => reader.or_below(Path::Locks, Self::lock),
            "zookeeper" | "queuekeeper" => Some(Path::Foreign),
            _ => None,
        })
    }

    fn batch(&mut self, name: &str) -> Option<Path> {
        let bid = name.parse().ok()?;
        self.or_below(Path::Batch(bid), |reader, name| {
            let node = BatchNode::from_name(name)?;
            let here = Path::BatchNode(bid, node);
            if node != BatchNode::States {
                return reader.end(here);
            }
            reader.or_below(here, |reader, folder| {
                let outcome = JobOutcome::from_folder(folder)?;
                reader.or_below(Path::BatchOutcome(bid, outcome), |reader, jid| {
                    reader.end(Path::Reference(bid, outcome, jid.parse().ok()?))
                })
            })
        })
    }

    fn job(&mut self, name: &str) -> Option<Path> {
        if name == "states" {
            return self.or_below(Path::JobStates, |reader, name| {
                let folder = StateFolder::from_name(name)?;
                reader.or_below(Path::StateFolder(folder.clone()), |reader, name| {
                    reader.end(Path::Entry(folder, EntryName::from_name(name)?))
                })
            });
        }
        let jid = name.parse().ok()?;
        self.or_below(Path::Job(jid), |reader, name| reader.end(Path::JobNode(jid, JobNode::from_name(name)?)))
    }

    fn access(&mut self, name: &str) -> Option<Path> {
        let queue = AccessQueue::from_name(name)?;
        self.or_below(Path::AccessQueue(queue), |reader, name| {
            let qid = name.parse().ok()?;
            reader.or_below(Path::Request(queue, qid), |reader, name| {
                reader.end(Path::RequestNode(queue, qid, RequestNode::from_name(name)?))
            })
        })
    }

    fn lock(&mut self, name: &str) -> Option<Path> {
        if name == "queue" {
            return self.or_below(Path::QueueLocks, |reader, name| {
                if name == LockFolder::LocalId.name() {
                    return reader.or_below(Path::PublishedLocalIds, |reader, name| {
                        reader.end(Path::PublishedLocalId(name.into()))
                    });
                }
                reader.end(Path::QueueLock(QueueName::from_name(name)?))
            });
        }
        let folder = LockFolder::from_name(name)?;
        self.or_below(Path::LockFolder(folder), |reader, name| reader.end(Path::NamedLock(folder, name.into())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::{BatchId, JobId, RequestId};
    use crate::state::JobState;

    #[test]
    fn a_folder_of_jobs_names_its_state_where_that_is_known() {
        assert_eq!(StateFolder::from(JobState::Storing).state(), Some(JobState::Storing));
        assert_eq!(StateFolder::Other("teleporting".into()).state(), None);
    }

    #[test]
    fn every_path_of_the_design_is_read_and_written_alike() {
        let (bid, jid) = (BatchId::new(7), JobId::new(42));
        let rows = [
            ("/", Path::Root),
            ("/batch-uuids/bid-9c1a", Path::BatchUuid("bid-9c1a".into())),
            ("/batches/bid0000000007", Path::Batch(bid)),
            ("/batches/bid0000000007/status-report", Path::BatchNode(bid, BatchNode::StatusReport)),
            ("/batches/bid0000000007/states", Path::BatchNode(bid, BatchNode::States)),
            ("/batches/bid0000000007/states/batch-failed", Path::BatchOutcome(bid, JobOutcome::Failed)),
            ("/batches/bid0000000007/states/batch-failed/jid0000000042", Path::Reference(bid, JobOutcome::Failed, jid)),
            ("/jobs/jid0000000042/space_needed", Path::JobNode(jid, JobNode::SpaceNeeded)),
            ("/jobs/states", Path::JobStates),
            (
                "/jobs/states/downloading/05-jid0000000042",
                Path::Entry(JobState::Downloading.into(), EntryName { priority: 5, job: jid }),
            ),
            (
                "/jobs/states/teleporting/05-jid0000000042",
                Path::Entry(StateFolder::Other("teleporting".into()), EntryName { priority: 5, job: jid }),
            ),
            (
                "/jobs/states/pending/100-jid0000000042",
                Path::Entry(JobState::Pending.into(), EntryName { priority: 100, job: jid }),
            ),
            (
                "/jobs/states/pending/-1-jid0000000042",
                Path::Entry(JobState::Pending.into(), EntryName { priority: -1, job: jid }),
            ),
            (
                "/access/large/qid0000000003/token",
                Path::RequestNode(AccessQueue::Large, RequestId::new(3), RequestNode::Token),
            ),
            ("/locks/queue/accessSmall", Path::QueueLock(QueueName::AccessSmall)),
            ("/locks/storage/ark_99999_fk4abc", Path::NamedLock(LockFolder::Storage, "ark_99999_fk4abc".into())),
            ("/locks/queue/localid/a_b", Path::PublishedLocalId("a_b".into())),
        ];
        for (text, path) in rows {
            assert_eq!(Path::parse(text), path);
            assert_eq!(path.to_string(), text);
        }
    }

    #[test]
    fn what_the_grammar_does_not_know_is_named_by_its_first_unexpected_part() {
        let rows = [
            ("/kafka/brokers/ids", "/kafka"),
            ("/jobs/jid0000000042/notes/today", "/jobs/jid0000000042/notes"),
            ("/jobs/jid0000000042/status/x/y", "/jobs/jid0000000042/status/x"),
            ("/jobs/jid42", "/jobs/jid42"),
            ("/jobs/states/pending/005-jid0000000042", "/jobs/states/pending/005-jid0000000042"),
            ("/jobs/states/pending/+5-jid0000000042", "/jobs/states/pending/+5-jid0000000042"),
            ("/jobs/states/pending/5-jid0000000042", "/jobs/states/pending/5-jid0000000042"),
            ("/locks/queue/everything", "/locks/queue/everything"),
            ("/batches/bid0000000007/states/batch-odd/jid0000000042", "/batches/bid0000000007/states/batch-odd"),
        ];
        for (text, unexpected) in rows {
            assert_eq!(Path::parse(text), Path::Unexpected(unexpected.into()));
        }
        let longest = "x".repeat(StateFolder::LONGEST);
        assert_eq!(
            Path::parse(&format!("/jobs/states/{longest}")),
            Path::StateFolder(StateFolder::Other(longest.into()))
        );
        let too_long = format!("/jobs/states/{}", "x".repeat(StateFolder::LONGEST + 1));
        assert_eq!(Path::parse(&format!("{too_long}/05-jid0000000042")), Path::Unexpected(too_long.into()));
        for whole in ["", "jobs", "/jobs//jid0000000042", "//"] {
            assert_eq!(Path::parse(whole), Path::Unexpected(whole.into()));
        }
        assert_eq!(Path::parse("/jobs/"), Path::Jobs);
        assert_eq!(Path::parse("/zookeeper/config"), Path::Foreign);
        assert_eq!(Path::parse("/queuekeeper/pending/7"), Path::Foreign);
    }

    #[test]
    fn a_child_is_read_by_its_name_and_below_an_unexpected_znode_there_is_nothing() {
        assert_eq!(Path::Root.child("jobs"), Path::Jobs);
        assert_eq!(Path::Jobs.child("jid0000000042"), Path::Job(JobId::new(42)));
        assert_eq!(Path::Jobs.child("odd").child("notes"), Path::Unexpected("/jobs/odd".into()));
        assert_eq!(Path::Foreign.child("config"), Path::Foreign);
    }

    proptest! {
        #[test]
        fn any_text_has_a_reading_that_reads_back_as_itself(text in "(/[a-z0-9\\-_:é]{0,14}){0,6}|.{0,40}") {
            let path = Path::parse(&text);
            if path != Path::Foreign {
                prop_assert_eq!(Path::parse(&path.to_string()), path);
            }
        }

        #[test]
        fn entry_names_are_read_as_they_are_written(priority in any::<i32>(), number in any::<u32>()) {
            let entry = EntryName { priority, job: JobId::new(number) };
            prop_assert_eq!(EntryName::from_name(&entry.to_string()), Some(entry));
        }
    }
}
