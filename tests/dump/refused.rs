use std::path::Path;

use queuekeeper_queue::load::{self, LoadLimits};

use super::world::{World, odd, queuekeeper, with_checksum, with_input};

fn node(path: &str) -> String {
    format!(r#"{{"path":"{path}","ctime":1}}"#)
}

/// A dump with these lines between its first and its last.
pub(super) fn dump(lines: &[String]) -> String {
    let header = r#"{"queuekeeper_dump":2,"id":"i","taken":"2026-03-02T18:17:05Z","program":"0","redacted":false,"left_out":[],"next":{}}"#;
    let end = format!(
        r#"{{"end":{{"nodes":{},"ephemeral":0,"vanished":0,"jobs":0,"batches":0,"requests":0,"data_bytes":0,"newest_zxid":0}}}}"#,
        lines.len()
    );
    with_checksum([&[header.to_owned()], lines, &[end]].concat().join("\n") + "\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_dump_is_refused_by_line_before_anything_is_written() {
    let good = dump(&[node("/"), node("/jobs"), node("/jobs/jid0000000007")]);
    let with = |lines: &[&str]| {
        dump(&[&[node("/")], lines.iter().map(|path| node(path)).collect::<Vec<_>>().as_slice()].concat())
    };
    let raw = |line: &str| dump(&[node("/"), line.to_owned()]);
    let cut = |lines: usize| good.split_inclusive('\n').take(lines).collect::<String>();
    let of_format = |format: u32| good.replace("\"queuekeeper_dump\":2", &format!("\"queuekeeper_dump\":{format}"));
    let of_size =
        |path: &str, bytes: usize| raw(&format!(r#"{{"path":"{path}","text":"{}"}}"#, "x".repeat(bytes - path.len())));
    // Of 1,048,575 bytes that ZooKeeper takes, chroot, ACL and the request itself need a hundred.
    let table = [
        (String::new(), "line 1 is missing: the dump was cut off"),
        ("PK\x03\x04\u{0}".to_owned(), "line 1 is not the first line of a dump"),
        (r#"{"path":"/"}"#.to_owned(), "line 1 is not the first line of a dump"),
        (of_format(3), "line 1 says that the dump has format 3; this version reads 2"),
        (of_format(1), "format 1; this version reads 2, and the older ones have no checksum: write the dump again"),
        (good.replace(r#""next":{}"#, r#""next":{"/jobs":2000000000}"#), "the number 1999999999 for /jobs"),
        (cut(1), "line 2 is missing"),
        (cut(4), "line 5 is missing"),
        (cut(5), "line 6 is missing"),
        (good[..good.len() - 30].to_owned(), "line 6 is not a line of a dump"),
        (good.replace("jid0000000007", "jid0000000008"), "line 6 says that the lines before it have the SHA-256 "),
        (good.replace(r#""newest_zxid":0"#, r#""newest_zxid":1"#), "the dump was changed or damaged"),
        (with_checksum(cut(4)), "line 5 has the checksum, and no line with the counts before it"),
        (cut(5) + &node("/odd"), "line 6 is not the last line, with the checksum"),
        (of_size("/x", 1_048_553), "line 3 has the path /x, whose value takes a request of 10486"),
        (of_size("/x", 2_000_000), "above 1048575: it cannot be loaded"),
        // What pauses the daemons, and what is above it, gets its values in one transaction at the end.
        (
            of_size("/locks", 1_000_000),
            "line 3 has the path /locks, whose value is set in the last request, which takes 1000",
        ),
        (
            good.replace(&format!("{}\n", node("/jobs/jid0000000007")), ""),
            "says that there are 3 znodes, but 2 were read",
        ),
        (good.clone() + &node("/odd"), "line 7 follows the last line"),
        (with(&["/jobs", "/jobs"]), "line 4 has the path /jobs a second time"),
        (with(&["/jobs", "/batches"]), "line 4 has the path /batches, which should have come earlier"),
        (with(&["/jobs/jid0000000007"]), "line 3 has the path /jobs/jid0000000007, whose parent"),
        (with(&["/jobs", "/jobsy/x"]), "whose parent did not come before"),
        (with(&["/../etc"]), "line 3 has a path that no znode can have"),
        (with(&["jobs"]), "a path begins with a slash"),
        (with(&["/zookeeper"]), "/zookeeper, which is not part of the queue"),
        (with(&["/queuekeeper"]), "which is not part of the queue"),
        (with(&["/jobs", "/jobs/jid2147483647"]), "line 4 has the number 2147483647 for /jobs, above 10000000"),
        (with(&[&"/a".repeat(300)]), "whose parent did not come"),
        (raw(r#"{"path":"/x","text":"a","base64":"YQ=="}"#), "line 3 has a value both as text and as base64"),
        (raw(r#"{"path":"/x","base64":"?"}"#), "line 3 has a value that is not base64"),
        (raw(r#"{"path":"/x","acl":"none"}"#), "line 3 is not a line of a dump: unknown field `acl`"),
        (raw(r#"{"ctime":1}"#), "line 3 is neither a line of a znode nor one of the last two lines"),
        (raw(&format!(r#"{{"path":"/x","text":"{}"}}"#, "x".repeat(9 << 20))), "line 3 is longer than 8 MiB"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("odd.jsonl");
    let (_, address) = World::nowhere().await;
    let load = async |file: &Path| queuekeeper(&["load", "--zookeeper", &address, file.to_str().unwrap()]).await;
    for (text, expected) in table {
        std::fs::write(&file, text).unwrap();
        let output = load(&file).await;
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{expected}: {reported}");
        assert!(reported.contains(expected) && reported.starts_with("error: "), "{expected:?} is not in: {reported}");
        assert!(!reported.contains("created the chroot"), "{reported}");
    }
    // What comes from a pipe is read to its end, too.
    std::fs::write(&file, of_size("/x", 2_000_000)).unwrap();
    let output = with_input(&["load", "--zookeeper", &address], &file).await;
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && reported.contains("standard input: line 3 has the path /x"),
        "{reported}"
    );
    assert!(!reported.contains("created the chroot"), "{reported}");
    std::fs::write(&file, &good).unwrap();
    let output = load(&file).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = load(&file).await;
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(reported.contains("the chroot is not empty: /jobs"), "{reported}");
}

#[tokio::test]
async fn how_far_the_jobs_of_another_trees_batch_are_is_not_taken_for_that_of_a_loaded_one() {
    let (source, copy) = (odd().await, World::new().await);
    let dump = source.dump(None).await;
    let stale = "/queuekeeper/expansions/bid0000000003";
    copy.make(&[("/queuekeeper", b""), ("/queuekeeper/expansions", b""), (stale, b"{}")]).await;
    let refused = copy.load(&dump, None, false).await.unwrap_err().to_string();
    assert_eq!(refused, format!("the chroot is not empty: {stale}"));
    copy.client.delete(stale, None).await.unwrap();
    let names: Vec<_> = (0..7).map(|number| format!("/other-{number}")).collect();
    for (name, more) in names.iter().zip(["", "", "", "", "", ", and 1 more", ", and 2 more"]) {
        copy.make(&[(name, b"")]).await;
        let refused = copy.load(&dump, None, false).await.unwrap_err().to_string();
        let reported: Vec<_> = names.iter().take_while(|other| *other <= name).take(5).map(String::as_str).collect();
        assert_eq!(refused, format!("the chroot is not empty: {}{more}", reported.join(", ")));
    }
    for name in &names {
        copy.client.delete(name, None).await.unwrap();
    }
    copy.load(&dump, None, false).await.unwrap();

    let text = String::from_utf8(dump).unwrap();
    let (lines, _) = text.split_once("{\"sha256\"").unwrap();
    let checked = |from: &str, to: &str| {
        let dump = with_checksum(lines.replacen(from, to, 1));
        load::check(dump.as_bytes(), LoadLimits::new(100_000, "", &[])).map(|_| ()).map_err(|error| error.to_string())
    };
    checked("bid0000000003", "bid0000000003").unwrap();
    for (from, to) in
        [("{\"bid0000000003\"", "{\"bid3\""), ("\"next\":900", "\"next\":-1"), ("jid0000000041\"", "jid41\"")]
    {
        assert!(checked(from, to).unwrap_err().starts_with("line 1 is not the first line of a dump"), "{to}");
    }
}

#[test]
fn no_bit_of_a_dump_may_flip() {
    let good = dump(&[node("/"), node("/jobs"), r#"{"path":"/jobs/jid0000000007","text":"Größe"}"#.to_owned()]);
    let limits = LoadLimits::new(100, "", &[]);
    assert_eq!(load::check(good.as_bytes(), limits).unwrap().read.nodes, 3);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut flipped = good.clone().into_bytes();
            flipped[at] ^= 1 << bit;
            let checked = load::check(&*flipped, limits);
            assert!(checked.is_err(), "bit {bit} of byte {at}: {}", String::from_utf8_lossy(&flipped));
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_or_written_is_reported_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("queue.jsonl");
    let (_, nowhere) = World::nowhere().await;
    let output = queuekeeper(&["dump", "--zookeeper", &nowhere, "--output", file.to_str().unwrap()]).await;
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(1)
            && reported.contains("ZooKeeper has no znode /t")
            && reported.contains("create it (zkCli.sh "),
        "{reported}"
    );

    let world = odd().await;
    let secret = zookeeper_client::Acls::creator_all();
    let other = world.client.clone();
    other.auth("digest", b"me:secret").await.unwrap();
    other
        .create("/locks/queue/ingest", b"", &zookeeper_client::CreateMode::Persistent.with_acls(secret))
        .await
        .unwrap();
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--output", file.to_str().unwrap()]).await;
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && reported.contains("cannot read /locks/queue/ingest"), "{reported}");
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--output", "/dev/full"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let auth = directory.path().join("auth");
    std::fs::write(&auth, "digest:me:secret\n").unwrap();
    let auth = auth.to_str().unwrap();
    let output = queuekeeper(&["dump", "--zookeeper", &world.address, "--zookeeper.auth-file", auth]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
