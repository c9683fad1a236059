//! A job by its znodes, and what a transaction leaves of it.

use super::*;
use crate::testing::{found, job, stat};

mod plan;

const ID: JobId = JobId::new(1);

/// The znodes of a job in production, without its lock.
pub(super) const NODES: [(JobNode, &str); 6] = [
    (JobNode::Bid, "bid0000000007"),
    (JobNode::Configuration, r#"{"profile":"ucb_demo"}"#),
    (JobNode::Status, r#"{"status":"Failed","last_successful_status":"Downloading","retry_count":2}"#),
    (JobNode::Priority, "5"),
    (JobNode::SpaceNeeded, "70"),
    (JobNode::Identifiers, r#"{"primary_id":"ark:/1/2"}"#),
];

/// The znodes with one of them replaced, or another beside them.
pub(super) fn with(node: JobNode, data: &'static str) -> Job {
    let others = NODES.into_iter().filter(|(other, _)| *other != node);
    job(&others.chain([(node, data)]).collect::<Vec<_>>())
}

fn without(node: JobNode) -> Job {
    job(&NODES.into_iter().filter(|(other, _)| *other != node).collect::<Vec<_>>())
}

#[test]
fn a_job_is_what_its_znodes_say() {
    let job = job(&NODES);
    assert_eq!((job.data(JobNode::Priority), job.data(JobNode::Store)), (Some(&b"5"[..]), None));
    assert_eq!((job.stat(JobNode::Priority), job.stat(JobNode::Store)), (Some(&stat()), None));
    assert_eq!((job.state(), job.version()), (Some(JobState::Failed), Some(3)));
    assert_eq!(job.status().value.retry_count, Some(2));
    assert_eq!(job.entered(), Some(Timestamp::from_second(2).unwrap()));
    assert_eq!((job.batch(), job.priority().map(Priority::number)), (Ok(BatchId::new(7)), Ok(5)));
    assert_eq!((job.space_needed(), job.lock()), (Ok(Some(70)), None));
    assert_eq!((&*job.configuration().value.collection, &*job.identifiers().value.ark), ("ucb_demo", "ark:/1/2"));
    let lock = with(JobNode::Lock, "").lock().unwrap();
    assert_eq!((lock.path.to_string().as_str(), lock.czxid), ("/jobs/jid0000000001/lock", 10));
    let older = self::job(&[(JobNode::Identifier, r#"{"primary":"ark:/1/3"}"#)]);
    assert_eq!(older.identifiers().value.ark, "ark:/1/3");
}

#[test]
fn what_a_job_lacks_is_missing_or_empty() {
    let bare = job::<&str>(&[]);
    let missing = |node| Error::Missing(Path::JobNode(ID, node));
    assert_eq!((bare.batch(), bare.priority()), (Err(missing(JobNode::Bid)), Err(missing(JobNode::Priority))));
    assert_eq!(bare.space_needed(), Err(missing(JobNode::SpaceNeeded)));
    assert_eq!((bare.state(), bare.version(), bare.entered()), (None, None, None));
    let empty = Decoded { value: Configuration::default(), malformed: None };
    assert_eq!(bare.configuration(), empty);
    assert_eq!(bare.identifiers(), Decoded { value: Identifiers::default(), malformed: None });
    assert_eq!(
        with(JobNode::Priority, "high").priority().unwrap_err().to_string(),
        "/jobs/jid0000000001/priority the value is not a priority from 0 to 99"
    );

    let reads: Vec<_> = Job::reads(ID).iter().map(|read| read.path().to_string()).collect();
    assert_eq!((reads.len(), reads[0].as_str()), (Job::READS, "/jobs/jid0000000001"));
    assert_eq!(reads[1], "/jobs/jid0000000001/bid");
    assert!(Job::from_found(ID, [Found::Nothing, found("bid0000000007")]).is_none());
}

#[test]
fn a_job_is_loadable_by_the_daemons_or_shows_what_they_reject() {
    assert_eq!(job(&NODES).check_loadable(), Ok(JobState::Failed));
    let path = "/jobs/jid0000000001";
    for node in [JobNode::Bid, JobNode::Status, JobNode::Priority, JobNode::SpaceNeeded] {
        assert_eq!(without(node).check_loadable(), Err(Error::Missing(Path::JobNode(ID, node))));
    }
    for (node, data, expected) in [
        (JobNode::Bid, "7", "bid the value is not a batch id (bid and ten digits)"),
        (JobNode::Priority, "100", "priority the value is not a priority from 0 to 99"),
        (JobNode::SpaceNeeded, "-2", "space_needed the value is not a number of bytes"),
        (JobNode::Status, "x", "status is not JSON (line 1, column 1)"),
        (JobNode::Status, r#"{"status":"Failed"}"#, "status has no retry_count"),
        (
            JobNode::Status,
            r#"{"status":"failed","retry_count":0}"#,
            "status status is not the name of a state as the daemons write it",
        ),
        (JobNode::Configuration, "[]", "configuration is JSON, but not an object"),
        (JobNode::Identifiers, "x", "identifiers is not JSON (line 1, column 1)"),
        (JobNode::Identifier, "[]", "identifier is JSON, but not an object"),
        (JobNode::Metadata, "[]", "metadata is JSON, but not an object"),
        (JobNode::Store, "[]", "store is JSON, but not an object"),
        (JobNode::Inventory, "[]", "inventory is JSON, but not an object"),
    ] {
        let error = with(node, data).check_loadable().unwrap_err();
        assert_eq!(error.to_string(), format!("{path}/{expected}"));
    }
}

#[test]
fn a_transaction_leaves_a_job_as_it_wrote_it() {
    let mut transaction = Transaction::new();
    let node = |node| Path::JobNode(ID, node);
    transaction
        .check(node(JobNode::Bid), 3)
        .set(node(JobNode::Status), r#"{"status":"Pending","retry_count":3}"#, 3)
        .set(node(JobNode::Priority), "6", 3)
        .create(node(JobNode::Store), "{}")
        .create(node(JobNode::Inventory), "{}")
        .set(Path::JobNode(JobId::new(2), JobNode::SpaceNeeded), "80", 3)
        .delete(node(JobNode::Identifiers), None);
    // The stat of the second and of the last creation is not known.
    let known = |version| Some(Stat { version, mtime: 9_000, ..stat() });
    let stats = vec![None, None, known(4), known(0), None, known(4), None];
    let after = job(&NODES).after(&transaction, &Committed { stats, recovered: false });
    assert_eq!((after.state(), after.version()), (Some(JobState::Pending), Some(4)));
    assert_eq!(after.entered(), job(&NODES).entered(), "not known any better");
    assert_eq!((after.priority().map(Priority::number), after.stat(JobNode::Priority)), (Ok(6), known(4).as_ref()));
    assert_eq!((after.data(JobNode::Store), after.stat(JobNode::Store)), (Some(&b"{}"[..]), known(0).as_ref()));
    let inventory = after.stat(JobNode::Inventory).map(|stat| (stat.version, stat.data_length));
    assert_eq!((after.data(JobNode::Inventory), inventory), (Some(&b"{}"[..]), Some((0, 2))));
    assert_eq!(after.data(JobNode::Identifiers), None);
    assert_eq!((after.space_needed(), after.batch()), (Ok(Some(70)), Ok(BatchId::new(7))));
}

#[test]
fn a_value_is_written_over_the_keys_that_it_has() {
    let written = |value: &JobValue, old: &str| String::from_utf8(value.data(old.as_bytes()).unwrap()).unwrap();
    let (manifest_url, mode) = ("u".to_owned(), "add/7001/ark:/1/2".to_owned());
    let text = |text: &str| text.to_owned();
    let metadata = JobValue::Metadata { who: text("a"), what: text("b"), when: text("c"), location: text("d") };
    for (value, node, old, new) in [
        (JobValue::SpaceNeeded(Some(70)), JobNode::SpaceNeeded, "5", "70"),
        (JobValue::SpaceNeeded(None), JobNode::SpaceNeeded, "", "0"),
        (
            JobValue::Identifiers { ark: text("ark:/1/2"), local_ids: vec![text("a")] },
            JobNode::Identifiers,
            "",
            r#"{"primary_id":"ark:/1/2","local_id":["a"]}"#,
        ),
        (
            metadata,
            JobNode::Metadata,
            r#"{"erc_what":"x","by":1}"#,
            r#"{"erc_what":"b","by":1,"erc_who":"a","erc_when":"c","erc_where":"d"}"#,
        ),
        (
            JobValue::Store { manifest_url: manifest_url.clone(), mode: mode.clone(), delete: Some(true.into()) },
            JobNode::Store,
            "",
            r#"{"manifest_url":"u","mode":"add/7001/ark:/1/2","delete":true}"#,
        ),
        (
            JobValue::Store { manifest_url: manifest_url.clone(), mode: mode.clone(), delete: None },
            JobNode::Store,
            r#"{"delete":false}"#,
            r#"{"delete":false,"manifest_url":"u","mode":"add/7001/ark:/1/2"}"#,
        ),
        (
            JobValue::Inventory { manifest_url, mode },
            JobNode::Inventory,
            "",
            r#"{"manifest_url":"u","mode":"add/7001/ark:/1/2"}"#,
        ),
    ] {
        assert_eq!((value.node(), written(&value, old).as_str()), (node, new));
    }
}

#[test]
fn a_value_is_set_in_its_znode_or_makes_it_and_takes_the_place_of_an_older_one() {
    let added = |job: &Job, value: &JobValue| {
        let mut transaction = Transaction::new();
        let added = super::update::add(&mut transaction, job, value).map_err(|error| error.to_string());
        added.map(|()| transaction.to_string())
    };
    let path = "/jobs/jid0000000001";
    let space = |bytes| JobValue::SpaceNeeded(Some(bytes));
    assert_eq!(added(&job(&NODES), &space(80)), Ok(format!("set {path}/space_needed at version 3 = 80\n")));
    assert_eq!(added(&job::<&str>(&[]), &space(80)), Ok(format!("create {path}/space_needed = 80\n")));
    let most = i64::MAX.unsigned_abs();
    assert!(added(&job(&NODES), &space(most)).is_ok());
    let reason = "9223372036854775808 bytes exceed the integer range that the daemons read";
    assert_eq!(added(&job(&NODES), &space(most + 1)), Err(format!("{path}/space_needed: {reason}")));

    let named = JobValue::Identifiers { ark: "ark:/1/3".to_owned(), local_ids: Vec::new() };
    let older = job(&[(JobNode::Identifier, r#"{"by":1}"#)]);
    let new = r#"{"by":1,"primary_id":"ark:/1/3","local_id":[]}"#;
    let moved = format!("create {path}/identifiers = {new}\ndelete {path}/identifier at version 3\n");
    assert_eq!(added(&older, &named), Ok(moved));
    let refused = added(&with(JobNode::Identifiers, "[]"), &named);
    assert_eq!(refused, Err(format!("{path}/identifiers is JSON, but not an object")));
}
