//! Decoding, on values of production and on anything at all.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::id::{BatchId, JobId, Priority};
use crate::path::JobNode;
use crate::state::{Authority, BatchState, JobState, State};

#[test]
fn a_job_status_of_production_is_read() {
    let data = br#"{"status":"Downloading","last_modified":"2026-03-02 10:17:05 -0800",
                    "last_successful_status":"Provisioning","retry_count":2,"message":"Success","by":"ingest02"}"#;
    let Decoded { value, malformed } = JobStatus::decode(data);
    assert_eq!(malformed, None);
    assert_eq!(value.status.state, Some(JobState::Downloading));
    assert!(value.status.is_canonical());
    assert_eq!(value.last_successful, Some(JobState::Provisioning));
    assert_eq!(value.retry_count, Some(2));
    assert_eq!(value.message, "Success");
}

#[test]
fn what_can_be_read_of_a_bad_status_is_read() {
    type Row = (&'static [u8], Option<JobState>, Option<u32>, Option<&'static str>);
    let rows: &[Row] = &[
        (br#"{"status":"downloading","retry_count":"1"}"#, Some(JobState::Downloading), Some(1), None),
        (br#"{"status":"Teleporting","retry_count":0}"#, None, Some(0), None),
        (
            br#"{"status":"Failed","retry_count":-1}"#,
            Some(JobState::Failed),
            None,
            Some("retry_count is not a whole number from 0 to 4294967295"),
        ),
        (
            br#"{"status":"Failed","retry_count":1e99}"#,
            Some(JobState::Failed),
            None,
            Some("retry_count is not a whole number"),
        ),
        (br#"{"status":["Failed"],"retry_count":1}"#, None, Some(1), Some("status is not text")),
        (br#"{"retry_count":1}"#, None, Some(1), Some("has no status")),
        (b"", None, None, Some("is empty")),
        (b"Pending", None, None, Some("is not JSON (line 1, column 1)")),
        (br#"["Failed", null, 1, ""]"#, None, None, Some("is JSON, but not an object")),
        (b"{\"status\":\"\xff\"}", None, None, Some("is not UTF-8")),
        (br#"{"status":"Failed"} x"#, None, None, Some("is not JSON (line 1, column 21)")),
        (br#"{"status":"Failed","status":"Held"}"#, None, None, Some("has a duplicate key")),
        (b"{\"status\":\"Failed\",\"by\":\"\xff\"}", None, None, Some("is not UTF-8")),
    ];
    for (data, state, retries, problem) in rows {
        let found = JobStatus::decode(data);
        let text = String::from_utf8_lossy(data);
        assert_eq!(found.value.status.state, *state, "{text}");
        assert_eq!(found.value.retry_count, *retries, "{text}");
        assert_eq!(found.malformed.map(|malformed| malformed.to_string()).as_deref(), *problem, "{text}");
    }
}

#[test]
fn both_generations_of_keys_are_read() {
    let old = Configuration::decode(br#"{"profile_name":"ucb_demo","localID":"a; b;","submissionDate":"x"}"#);
    assert_eq!((old.value.collection.as_ref(), old.malformed), ("ucb_demo", None));
    assert_eq!(old.value.local_ids, ["a", "b"]);
    let new = Configuration::decode(br#"{"profile":"ucb_open","profile_name":"ucb_demo","title":null,"filename":7}"#);
    assert_eq!(new.value.collection, "ucb_open");
    assert_eq!((new.value.title.as_ref(), new.value.filename.as_ref()), ("", "7"));

    for data in
        [br#"{"primary_id":"ark:/1/2","local_id":["a"]}"#.as_slice(), br#"{"primary":"ark:/1/2","local_id":"a"}"#]
    {
        let found = Identifiers::decode(data);
        assert_eq!((found.value.ark.as_ref(), found.malformed), ("ark:/1/2", None));
        assert_eq!(found.value.local_ids, ["a"]);
    }
    let mixed = Identifiers::decode(br#"{"primary_id":"ark:/1/2","local_id":["a",{"b":1}]}"#);
    assert_eq!(mixed.value.local_ids, ["a"]);
    assert!(mixed.malformed.is_some());

    // A number in the place of a text is returned as written, never longer than its znode.
    let numbers = Identifiers::decode(br#"{"primary_id":18446744073709551615,"local_id":[1e300,1.5]}"#);
    assert_eq!((numbers.value.ark.as_ref(), numbers.malformed), ("18446744073709551615", None));
    assert_eq!(numbers.value.local_ids, ["1e+300", "1.5"]);

    let batch = ItemStatus::<BatchState>::decode(br#"{"status":"update-reporting"}"#);
    assert_eq!(batch.value.status.state, Some(BatchState::UpdateReporting));
    assert!(!batch.value.status.is_canonical());
}

#[test]
fn a_value_of_another_kind_counts_for_what_it_spells() {
    type Row = (&'static str, &'static [&'static str], bool);
    let data = br#"{"profile":true,"submitter":7,"filename":1.5,"title":null,"creator":"caf\u00e9","objectID":false}"#;
    let Decoded { value, malformed } = Configuration::decode(data);
    let texts = [value.collection, value.submitter, value.filename, value.title, value.creator, value.object_id];
    assert_eq!(
        (texts.each_ref().map(AsRef::as_ref), malformed),
        (["true", "7", "1.5", "", "caf\u{e9}", "false"], None)
    );

    let none = Configuration::decode(br#"{"profile":null,"profile_name":"ucb_demo"}"#);
    assert_eq!((none.value.collection.as_ref(), none.malformed), ("", None), "a key that holds null is there");

    let rows: &[Row] = &[
        ("null", &[], true),
        ("7", &["7"], true),
        (r#""a; b;;""#, &["a", "b"], true),
        (r#"[null,"a",7,true]"#, &["a", "7", "true"], true),
        (r#"["a",["b"]]"#, &["a"], false),
        ("true", &[], false),
        ("1.5", &[], false),
        ("{}", &[], false),
    ];
    for (ids, expected, is_fine) in rows {
        let data = format!(r#"{{"localID":{ids}}}"#);
        let Decoded { value, malformed } = Configuration::decode(data.as_bytes());
        assert_eq!(value.local_ids, *expected, "{ids}");
        let problem = malformed.map(|malformed| malformed.to_string());
        assert_eq!(problem.as_deref(), (!is_fine).then_some("localID is not a list of texts"), "{ids}");
    }
    let rows = [("2.0", Some(2)), ("2.5", None), (r#"" 2 ""#, Some(2)), ("true", None), ("null", None), ("[2]", None)];
    for (count, expected) in rows {
        let data = format!(r#"{{"status":"Failed","retry_count":{count}}}"#);
        let Decoded { value, malformed } = JobStatus::decode(data.as_bytes());
        assert_eq!(
            (value.retry_count, malformed.is_none()),
            (expected, expected.is_some() || count == "null"),
            "{count}"
        );
    }
}

#[test]
fn submissions_tokens_and_pauses_are_read() {
    let data = br#"{"batchID":"bid-9c1a","profile_name":"ucb_demo","submitter":"me","filename":"a.checkm","title":"A","type":"container","submissionDate":"x","size":1}"#;
    let Decoded { value, malformed } = Submission::decode(data);
    let texts =
        [value.uuid, value.collection, value.submitter, value.filename, value.title, value.kind, value.submission_date];
    let expected = ["bid-9c1a", "ucb_demo", "me", "a.checkm", "A", "container", "x"];
    assert_eq!((texts.each_ref().map(AsRef::as_ref), malformed), (expected, None));

    let data = br#"{"token":"t","cloud-content-byte":"5","delivery-node":-7001,"url":"u","expiration-time":"2026-03-02T10:17:05-08:00"}"#;
    let token = Token::decode(data);
    let expected = Token {
        token: "t".into(),
        content_bytes: Some(5),
        delivery_node: Some(-7001),
        url: "u".into(),
        expires: Some("2026-03-02T18:17:05Z".parse().unwrap()),
    };
    assert_eq!((token.value, token.malformed), (expected, None));
    for (bytes, expected, problem) in
        [(0, Some(0), None), (-1, None, Some("cloud-content-byte is not a number of bytes"))]
    {
        let data = format!(r#"{{"cloud-content-byte":{bytes}}}"#);
        let Decoded { value, malformed } = Token::decode(data.as_bytes());
        let malformed = malformed.map(|malformed| malformed.to_string());
        assert_eq!((value.content_bytes, malformed.as_deref()), (expected, problem), "{bytes}");
    }

    let since = "2026-03-02T18:17:05Z".parse().unwrap();
    let note = PauseNote::encode("alice", "disks", since);
    let expected = PauseNote { who: "alice".into(), why: "disks".into(), since: Some(since) };
    assert_eq!(PauseNote::decode(&note), Decoded { value: expected, malformed: None });
    for empty in [&b""[..], b" \n"] {
        assert_eq!(PauseNote::decode(empty), Decoded { value: PauseNote::default(), malformed: None });
    }
    assert_eq!(PauseNote::decode(b"alice").malformed, Some(Malformed::NotJson { line: 1, column: 1 }));
}

#[test]
fn a_batch_id_without_ten_digits_and_a_priority_without_two_are_distinguished_from_other_texts() {
    let long = format!("bid{}", "0".repeat(61));
    for text in ["bid42", "bid00000000042", "bid9999999999", &long] {
        assert_eq!(misnamed_bid(text.as_bytes()), Some(text));
    }
    let longer = format!("{long}0");
    for text in ["bid0000000042", "bid", "bid42 ", "bid-9c1a", "jid42", "", &longer] {
        assert_eq!(misnamed_bid(text.as_bytes()), None, "{text}");
    }
    assert_eq!(misnamed_bid(b"bid\xff"), None);
    for (data, is_out_of_range) in [
        ("100", true),
        ("-1", true),
        (" 100\n", true),
        ("99", false),
        ("0", false),
        ("99999999999", false),
        ("x", false),
    ] {
        assert_eq!(is_priority_out_of_range(data.as_bytes()), is_out_of_range, "{data}");
    }
}

#[test]
fn plain_values_are_read_or_refused_by_name() {
    assert_eq!(bid(b"bid0000000042\n"), Ok(BatchId::new(42)));
    assert_eq!(bid(b"42").unwrap_err().to_string(), "the value is not a batch id (bid and ten digits)");
    assert_eq!(priority(b" 7 "), Ok(Priority::new(7).unwrap()));
    assert!(priority(b"104").is_err());
    assert_eq!(space_needed(b"-1"), Ok(None));
    assert_eq!(space_needed(b"25876234240"), Ok(Some(25_876_234_240)));
    assert!(space_needed(b"-2").is_err());
    assert!(space_needed(b"99999999999999999999").is_err());
    assert_eq!(object_form(br#"{"a":[1,{"b":2}]}"#), Ok(()));
    assert_eq!(object_form(b"[]"), Err(Malformed::NotObject));
}

#[test]
fn a_job_is_loadable_by_what_the_daemons_take_and_not_by_what_we_do() {
    type Row = (JobNode, &'static [u8], Option<&'static str>);
    let rows: &[Row] = &[
        (JobNode::Bid, b"bid0000000042", None),
        (JobNode::Bid, b"bid0000000042\n", Some("the value is not free of white space around it")),
        (JobNode::Priority, b" 7", Some("the value is not free of white space around it")),
        (JobNode::Priority, b"high", Some("the value is not a priority from 0 to 99")),
        (JobNode::SpaceNeeded, b"-5", None),
        (JobNode::SpaceNeeded, b"", Some("is empty")),
        (JobNode::Status, br#"{"status":"Failed","retry_count":1.0}"#, None),
        (JobNode::Status, br#"{"status":"Failed","retry_count":1.5}"#, Some("retry_count is not a whole number")),
        // In what is JSON only the form matters.
        (JobNode::Configuration, b"", None),
        (JobNode::Configuration, b"{\"title\":\"caf\xe9\",\"creator\":{}}", None),
        (JobNode::Configuration, b"{\"title\":\"caf\xe9", Some("is not JSON (line 1, column 16)")),
        (JobNode::Configuration, br#"{"profile":"a","profile":"b"}"#, Some("has a duplicate key")),
        (JobNode::Identifiers, br#"{"primary_id":"ark:/1/2","local_id":[{}]}"#, None),
        (JobNode::Store, b"[]", Some("is JSON, but not an object")),
    ];
    for (node, data, problem) in rows {
        let refused = check_job_node(*node, data).err().map(|malformed| malformed.to_string());
        assert_eq!(refused.as_deref(), *problem, "{node:?} {}", data.escape_ascii());
    }
    assert_eq!(*as_utf8(b"caf\xe9"), *"caf\u{e9}".as_bytes());
}

fn json(data: &[u8]) -> serde_json::Value {
    serde_json::from_slice(data).unwrap()
}

#[test]
fn a_rewrite_keeps_the_keys_of_others() {
    let now: Timestamp = "2026-03-02T18:17:05Z".parse().unwrap();
    let old = br#"{"by":"ingest02","status":"processing","last_modification_date":"2020-01-01 00:00:00 +0000","retry_count":1}"#;
    let change = StatusChange {
        from: Some(JobState::Processing),
        to: JobState::Storing,
        by: Authority::Daemon,
        last_successful: Some(JobState::Downloading),
        retry_count: 1,
        message: "Success",
        now,
    };
    let new = json(&job_status(old, &change));
    let expected = serde_json::json!({
        "by": "ingest02", "status": "Storing", "last_modified": "2026-03-02 18:17:05 +0000",
        "last_successful_status": "Processing", "retry_count": 1, "message": "Success",
    });
    assert_eq!(new, expected);

    let taken = StatusChange { from: Some(JobState::Pending), to: JobState::Estimating, ..change };
    let by_operator = StatusChange { to: JobState::Failed, by: Authority::Operator, ..taken };
    assert_eq!(consumed(&job_status(old, &by_operator)), None);
    let taken = job_status(old, &taken);
    assert_eq!((consumed(&taken), consumed(old)), (Some(now), None));
    let later = StatusChange { now: now + jiff::SignedDuration::from_secs(9), ..change };
    assert_eq!(consumed(&job_status(&taken, &later)), Some(now));

    let failed = StatusChange {
        from: Some(JobState::Storing),
        to: JobState::Failed,
        last_successful: Some(JobState::Processing),
        ..change
    };
    let new = json(&job_status(b"garbage", &failed));
    assert_eq!(new["last_successful_status"], "Processing");
    assert_eq!(identifiers(b"garbage", "ark:/1/2", &[]), Err(Malformed::NotJson { line: 1, column: 1 }));
}

#[test]
fn what_is_made_loadable_keeps_its_state_and_all_that_the_daemons_read() {
    let now: Timestamp = "2026-03-02T18:17:05Z".parse().unwrap();
    let rows = [
        (r#""storing""#, "Storing"),
        (r#""""#, "Downloading"),
        ("null", "Downloading"),
        ("7", "Downloading"),
        (r#""Teleporting""#, "Teleporting"),
    ];
    for (old, last) in rows {
        let old =
            format!(r#"{{"status":"failed","last_successful_status":{old},"message":"disk full","by":"ingest02"}}"#);
        let new = loadable_job_status(old.as_bytes(), JobState::Failed, Some(JobState::Downloading), 2, now);
        let expected = serde_json::json!({
            "status": "Failed", "last_successful_status": last, "message": "disk full", "by": "ingest02",
            "last_modified": "2026-03-02 18:17:05 +0000", "retry_count": 2,
        });
        assert_eq!(json(&new), expected, "{old}");
    }
    let pending = serde_json::json!({
        "status": "Pending", "last_successful_status": null, "message": "", "retry_count": 0,
        "last_modified": "2026-03-02 18:17:05 +0000",
    });
    for new in [new_status(now), loadable_job_status(b"garbage", JobState::Pending, None, 0, now)] {
        assert_eq!(json(&new), pending);
    }

    let old = br#"{"status":"held","message":"later","by":"me"}"#;
    let with = |status: &str, message: &str| {
        let now = "2026-03-02 18:17:05 +0000";
        serde_json::json!({ "status": status, "message": message, "last_modified": now, "by": "me" })
    };
    assert_eq!(json(&loadable_item_status(old, BatchState::Held, now)), with("Held", "later"));
    assert_eq!(json(&item_status(old, BatchState::Completed, "done", now)), with("Completed", "done"));
}

#[test]
fn values_of_which_we_write_some_keys_keep_the_others() {
    let written = |value: Result<Vec<u8>, Malformed>| value.map(|data| json(&data));
    let new = identifiers(br#"{"primary":"ark:/1/0","type":"x","local_id":[]}"#, "ark:/1/2", &["a", "b"]);
    let expected = serde_json::json!({ "type": "x", "local_id": ["a", "b"], "primary_id": "ark:/1/2" });
    assert_eq!(written(new), Ok(expected));
    let expected = serde_json::json!({ "local_id": [], "primary_id": "ark:/1/2" });
    assert_eq!(written(identifiers(b"", "ark:/1/2", &[])), Ok(expected));

    let add = |old| written(merged(old, [("mode", "add".into())]));
    assert_eq!(add(br#"{"mode":"x","delete":true}"#), Ok(serde_json::json!({ "mode": "add", "delete": true })));
    assert_eq!(add(b""), Ok(serde_json::json!({ "mode": "add" })));
    assert_eq!(add(b"[]"), Err(Malformed::NotObject));

    let (failed, successful) = ([JobId::new(1)], [JobId::new(2), JobId::new(3)]);
    for (old, by) in [(&br#"{"failed_jobs":[],"by":"me"}"#[..], Some("me")), (b"garbage", None)] {
        let new = json(&status_report(old, &failed, &successful, Timestamp::UNIX_EPOCH));
        assert_eq!(new["last_modified"], "1970-01-01 00:00:00 +0000");
        assert_eq!(new["failed_jobs"], serde_json::json!(["jid0000000001"]));
        assert_eq!(new["successful_jobs"], serde_json::json!(["jid0000000002", "jid0000000003"]));
        assert_eq!(new.get("by").and_then(serde_json::Value::as_str), by);
    }
}

proptest! {
    #[test]
    fn no_value_is_too_odd(data in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "\\{(\"(status|retry_count|profile|local_id|localID|message)\":(\"[^\"]{0,8}\"|-?[0-9]{1,25}|null|true|\\[.{0,5}\\]|\\{\\}),?){0,4}\\}?".prop_map(String::into_bytes),
    ]) {
        let _ = JobStatus::decode(&data);
        let _ = ItemStatus::<BatchState>::decode(&data);
        let _ = Configuration::decode(&data);
        let _ = Identifiers::decode(&data);
        let _ = Submission::decode(&data);
        let _ = Token::decode(&data);
        let _ = (bid(&data), priority(&data), space_needed(&data), object_form(&data));
    }

    #[test]
    fn what_is_written_is_read_back(message in ".*", retries in any::<u32>(), to in 0..JobState::ALL.len(), from in 0..JobState::ALL.len()) {
        let (from, to) = (JobState::ALL[from], JobState::ALL[to]);
        let change = StatusChange { from: Some(from), to, by: Authority::Daemon, last_successful: None, retry_count: retries, message: &message, now: Timestamp::UNIX_EPOCH };
        let data = job_status(b"", &change);
        let found = JobStatus::decode(&data);
        prop_assert_eq!(found.malformed, None);
        prop_assert_eq!(found.value.status.state, Some(to));
        prop_assert_eq!(found.value.retry_count, Some(retries));
        prop_assert_eq!(found.value.message, message);
        prop_assert_eq!(found.value.last_successful, from.is_success_before(to).then_some(from));
    }
}
