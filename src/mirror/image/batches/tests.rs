//! What the znodes of a batch say.

use super::*;
use crate::mirror::clock::Offset;
use crate::mirror::image::tests::{empty, new_stat};
use queuekeeper_queue::path::Path;

const BATCH: BatchId = BatchId::new(7);

fn node(data: &str) -> Found {
    Found::Node { data: data.as_bytes().to_vec(), stat: new_stat(1) }
}

fn submission() -> Path {
    Path::BatchNode(BATCH, BatchNode::Submission)
}

#[test]
fn a_batch_shows_what_its_submission_says_and_nothing_once_that_is_gone() {
    let mut image = empty();
    let data = r#"{"batchID":"bid-1","profile":"demo","submitter":"Sue","filename":"a.checkm","title":"Ä",
        "type":"object-batch-manifest","partOf":"bid-0","parts":"3","note":"soon","notification":"sue@example.edu"}"#;
    image.apply(submission(), &node(data));
    let shown = |image: &crate::mirror::image::Image| image.batch(BATCH, Offset::default()).unwrap().batch;
    let batch = shown(&image);
    let texts = [&batch.uuid, &batch.collection, &batch.submitter, &batch.filename, &batch.title, &batch.part_of];
    assert_eq!(texts.map(|text| &**text), ["bid-1", "demo", "Sue", "a.checkm", "Ä", "bid-0"]);
    assert_eq!([&*batch.note, &*batch.notification], ["soon", "sue@example.edu"]);
    assert_eq!((batch.has_rows, batch.parts, batch.is_acquired), (true, Some(3), false));
    assert_eq!(&*image.batches.get(BATCH).unwrap().folded, "bid-1\na.checkm\nä\nsue\nbid-0");

    image.apply(Path::BatchNode(BATCH, BatchNode::States), &node(""));
    image.apply(submission(), &Found::Nothing);
    let batch = shown(&image);
    let texts = [&batch.uuid, &batch.collection, &batch.submitter, &batch.filename, &batch.title, &batch.part_of];
    assert_eq!(texts.map(|text| &**text), [""; 6]);
    assert_eq!((batch.has_rows, batch.parts, batch.is_acquired), (false, None, true));
}

#[test]
fn only_batch_manifests_have_rows() {
    for (kind, has_rows) in
        [("batch-manifest", true), ("container-batch-manifest", true), ("batch-manifest-x", false), ("file", false)]
    {
        let mut image = empty();
        image.apply(submission(), &node(&format!(r#"{{"type":"{kind}"}}"#)));
        assert_eq!(image.batches.get(BATCH).unwrap().has_rows, has_rows, "{kind}");
    }
}

#[test]
fn a_znode_that_holds_something_else_than_it_should_is_unreadable() {
    let (good, bad) = (r#"{"profile":"demo"}"#, "[");
    for (of, data, is_unreadable) in [
        (BatchNode::Submission, good, false),
        (BatchNode::Submission, bad, true),
        (BatchNode::Submission, r#"{"profile":7}"#, false),
        (BatchNode::Status, r#"{"status":"Pending"}"#, false),
        (BatchNode::Status, bad, true),
        (BatchNode::StatusReport, "{}", false),
        (BatchNode::StatusReport, bad, true),
        (BatchNode::Lock, bad, false),
        (BatchNode::States, bad, false),
    ] {
        let mut image = empty();
        let path = Path::BatchNode(BATCH, of);
        image.apply(path.clone(), &node(data));
        let found = (image.is_unreadable(&path), image.unreadable());
        assert_eq!(found, (is_unreadable, i64::from(is_unreadable)), "{path}: {data}");
        assert!(!image.is_unreadable(&Path::Batch(BATCH)));
    }
}
