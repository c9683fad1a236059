//! The names by which a target is found.

/// The names of a target as the trail has it: that text, what follows its kind, and the item that its path leads to.
///
/// So `collection:maps` is found by `maps`, `small/qid0000000042` by `qid0000000042`, `lock:/jobs/jid0000000042/lock`
/// and `fault:orphan_entry:/jobs/jid0000000042` by `jid0000000042`.
pub(super) fn names(target: &str) -> impl Iterator<Item = &str> {
    let name = target.split_once(':').map(|(_, name)| name);
    // Before the path of a fault stands which fault it is.
    let path = name.and_then(|name| Some(&name[name.find('/')?..])).filter(|path| Some(*path) != name);
    // The lock of a job is a node below it, which has the same name for each job.
    let item = target.rsplit('/').find(|segment| *segment != "lock").filter(|_| target.contains('/'));
    [Some(target), name, path, item].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_found_by_its_whole_name_and_by_the_name_of_its_item_alone() {
        for (target, expected) in [
            ("jid0000000042", &["jid0000000042"][..]),
            ("batches", &["batches"]),
            ("small/qid0000000042", &["small/qid0000000042", "qid0000000042"]),
            ("queue:ingest", &["queue:ingest", "ingest"]),
            ("collection:a:b", &["collection:a:b", "a:b"]),
            (
                "lock:/jobs/jid0000000042/lock",
                &["lock:/jobs/jid0000000042/lock", "/jobs/jid0000000042/lock", "jid0000000042"],
            ),
            ("lock:/locks/storage/ark_1", &["lock:/locks/storage/ark_1", "/locks/storage/ark_1", "ark_1"]),
            (
                "fault:orphan_entry:/jobs/jid0000000042",
                &[
                    "fault:orphan_entry:/jobs/jid0000000042",
                    "orphan_entry:/jobs/jid0000000042",
                    "/jobs/jid0000000042",
                    "jid0000000042",
                ],
            ),
        ] {
            assert_eq!(names(target).collect::<Vec<_>>(), expected);
        }
    }
}
