use std::path::Path;

use super::world::{World, odd, queuekeeper};

fn node(path: &str) -> String {
    format!(r#"{{"path":"{path}","ctime":1}}"#)
}

/// A dump with these lines between its first and its last.
fn dump(lines: &[String]) -> String {
    let header = r#"{"queuekeeper_dump":1,"id":"i","taken":"2026-03-02T18:17:05Z","program":"0","redacted":false,"left_out":[],"next":{}}"#;
    let end = format!(
        r#"{{"end":{{"nodes":{},"ephemeral":0,"vanished":0,"jobs":0,"batches":0,"requests":0,"data_bytes":0,"newest_zxid":0}}}}"#,
        lines.len()
    );
    [&[header.to_owned()], lines, &[end]].concat().join("\n") + "\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_dump_is_refused_by_line_before_anything_is_written() {
    let good = dump(&[node("/"), node("/jobs"), node("/jobs/jid0000000007")]);
    let with = |lines: &[&str]| {
        dump(&[&[node("/")], lines.iter().map(|path| node(path)).collect::<Vec<_>>().as_slice()].concat())
    };
    let raw = |line: &str| dump(&[node("/"), line.to_owned()]);
    let cut = |lines: usize| good.split_inclusive('\n').take(lines).collect::<String>();
    let table = [
        (String::new(), "line 1 is missing: the dump was cut off"),
        ("PK\x03\x04\u{0}".to_owned(), "line 1 is not the first line of a dump"),
        (r#"{"path":"/"}"#.to_owned(), "line 1 is not the first line of a dump"),
        (good.replace(r#""queuekeeper_dump":1"#, r#""queuekeeper_dump":2"#), "line 1 says that the dump has format 2"),
        (good.replace(r#""next":{}"#, r#""next":{"/jobs":2000000000}"#), "the number 1999999999 for /jobs"),
        (cut(1), "line 2 is missing"),
        (cut(4), "line 5 is missing"),
        (good[..good.len() - 30].to_owned(), "line 5 is no line of a dump"),
        (
            good.replace(&format!("{}\n", node("/jobs/jid0000000007")), ""),
            "says that there are 3 znodes, and 2 were read",
        ),
        (good.clone() + &node("/odd"), "line 6 follows the last line"),
        (with(&["/jobs", "/jobs"]), "line 4 has the path /jobs a second time"),
        (with(&["/jobs", "/batches"]), "line 4 has the path /batches, which should have come earlier"),
        (with(&["/jobs/jid0000000007"]), "line 3 has the path /jobs/jid0000000007, whose parent"),
        (with(&["/jobs", "/jobsy/x"]), "whose parent did not come before"),
        (with(&["/../etc"]), "line 3 has a path that no znode can have"),
        (with(&["jobs"]), "a path begins with a slash"),
        (with(&["/zookeeper"]), "/zookeeper, which is no part of the queue"),
        (with(&["/queuekeeper"]), "which is no part of the queue"),
        (with(&["/jobs", "/jobs/jid2147483647"]), "line 4 has the number 2147483647 for /jobs, above 10000000"),
        (with(&[&"/a".repeat(300)]), "whose parent did not come"),
        (raw(r#"{"path":"/x","text":"a","base64":"YQ=="}"#), "line 3 has its value both as text and as base64"),
        (raw(r#"{"path":"/x","base64":"?"}"#), "line 3 has a value that is not base64"),
        (raw(r#"{"path":"/x","acl":"none"}"#), "line 3 is no line of a dump: unknown field `acl`"),
        (raw(r#"{"ctime":1}"#), "line 3 is neither a znode's line nor the last one"),
        (raw(&format!(r#"{{"path":"/x","text":"{}"}}"#, "x".repeat(9 << 20))), "line 3 is longer than 8 MiB"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("odd.jsonl");
    let (_, address) = World::nowhere().await;
    let load = async |file: &Path| queuekeeper(&["load", "--zookeeper", &address, file.to_str().unwrap()]).await;
    for (text, expected) in table {
        std::fs::write(&file, text).unwrap();
        let output = load(&file).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{expected}: {told}");
        assert!(told.contains(expected) && told.starts_with("error: "), "{expected:?} is not in: {told}");
        assert!(!told.contains("made the chroot"), "{told}");
    }
    std::fs::write(&file, &good).unwrap();
    let output = load(&file).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = load(&file).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("there is something below the chroot already: /jobs"), "{told}");
}

#[tokio::test]
async fn what_cannot_be_read_or_written_is_told_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("queue.jsonl");
    let (_, nowhere) = World::nowhere().await;
    let output = queuekeeper(&["dump", "--zookeeper", &nowhere, "--output", file.to_str().unwrap()]).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("does not exist"), "{told}");

    let world = odd().await;
    let secret = zookeeper_client::Acls::creator_all();
    let other = world.client.clone();
    other.auth("digest", b"me:secret").await.unwrap();
    other
        .create("/locks/queue/ingest", b"", &zookeeper_client::CreateMode::Persistent.with_acls(secret))
        .await
        .unwrap();
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--output", file.to_str().unwrap()]).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && told.contains("cannot read /locks/queue/ingest"), "{told}");
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--output", "/dev/full"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let auth = directory.path().join("auth");
    std::fs::write(&auth, "digest:me:secret\n").unwrap();
    let auth = auth.to_str().unwrap();
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--zookeeper.auth-file", auth]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
