//! Folders that grow too large.

use super::*;
use crate::mirror::clock::Offset;
use crate::mirror::image::faults::FaultQuery;
use crate::mirror::image::tests::{empty, new_stat};
use crate::mirror::read::Found;

/// The folders that grow with the queue, and how two of their children are named.
const FOLDERS: [(&str, [&str; 2]); 12] = [
    ("/jobs", ["jid0000000001/status", "jid0000000002/status"]),
    ("/batches", ["bid0000000001/status", "bid0000000002/status"]),
    ("/batch-uuids", ["u", "v"]),
    ("/access/small", ["qid0000000001/status", "qid0000000002/status"]),
    ("/access/large", ["qid0000000001/status", "qid0000000002/status"]),
    ("/locks/collections", ["a", "b"]),
    ("/locks/storage", ["a", "b"]),
    ("/locks/inventory", ["a", "b"]),
    ("/locks/localid", ["a_b", "a_c"]),
    ("/jobs/states/pending", ["05-jid0000000001", "05-jid0000000002"]),
    ("/jobs/states/held", ["05-jid0000000001", "05-jid0000000002"]),
    ("/jobs/states/odd", ["05-jid0000000001", "05-jid0000000002"]),
];

/// The folders that have so many children that they are hard to list.
fn near_limit(image: &Image, limits: &Limits) -> Vec<String> {
    let query = FaultQuery { now_ms: 3_600_000, offset: Offset::default(), limits, space: None };
    image.faults(Fault::FolderNearLimit, usize::MAX, query).iter().map(|found| found.item.to_string()).collect()
}

#[test]
fn each_folder_that_grows_with_the_queue_is_reported_when_it_has_too_many_children_and_no_longer_once_one_has_gone() {
    let limits = Limits { folder_children: 2, ..Limits::default() };
    for (folder, children) in FOLDERS {
        let mut image = empty();
        let child = |name: &str| Path::parse(&format!("{folder}/{name}"));
        let there = || Found::Node { data: Vec::new(), stat: new_stat(1) };
        image.apply(child(children[0]), &there());
        image.evaluate_all(None, 0, 0, &limits);
        assert!(near_limit(&image, &limits).is_empty(), "one in {folder}");
        image.apply(child(children[1]), &there());
        image.evaluate_all(None, 0, 0, &limits);
        assert_eq!(near_limit(&image, &limits), [folder]);
        image.apply(child(children[0]), &Found::Nothing);
        image.evaluate_all(None, 0, 0, &limits);
        assert!(near_limit(&image, &limits).is_empty(), "again one in {folder}");
    }
}
