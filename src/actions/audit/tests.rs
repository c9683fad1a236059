use std::path::Path;

use jiff::Timestamp;

use super::*;

fn ordered(at: i64, actor: &str, subject: &str) -> Record {
    let at = Timestamp::from_second(at).unwrap();
    Record::Ordered {
        id: OrderId::new(at),
        at,
        actor: actor.to_owned(),
        role: "operator".to_owned(),
        source: "web".to_owned(),
        from: Some("127.0.0.1".to_owned()),
        action: "resume".to_owned(),
        subjects: vec![subject.to_owned()],
        count: 1,
        reason: "disk replaced".to_owned(),
        before: Some("failed".to_owned()),
        after: Some("downloading".to_owned()),
        operations: Vec::new(),
    }
}

fn outcome(of: &Record, outcome: &str) -> Record {
    let (id, at) = (of.id(), Timestamp::from_second(9).unwrap());
    let detail = (outcome != "done").then(|| "why not".to_owned());
    Record::Outcome {
        id,
        at,
        subject: None,
        outcome: outcome.to_owned(),
        detail,
        after: None,
        cancelled_by: None,
        duration_seconds: 0.25,
    }
}

fn open(path: &Path, size_bytes: u64, files: u32) -> (Audit, AuditWriter) {
    Audit::open(Destination::File(path.to_owned(), Rotation { size_bytes, files })).unwrap()
}

/// Runs `work` beside a writer, which is ended and awaited.
async fn beside<T>(writer: AuditWriter, work: impl Future<Output = T>) -> T {
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(writer.run(shutdown.clone()));
    let done = work.await;
    shutdown.cancel();
    running.await.unwrap();
    done
}

fn lines(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| Record::read(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[tokio::test]
async fn whatever_texts_are_in_it_a_record_is_one_line_and_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    // Small enough that it is put aside between the two.
    let (audit, writer) = open(&path, 1, 2);
    let forged = ordered(9, "mallory", "jid0000000009").line();
    let evil = format!("x\r\n{forged}\u{85}\u{2028}\u{1b}[2J");
    let record = ordered(1, &evil, &evil);
    beside(writer, async {
        audit.write(record.clone()).await.unwrap();
        audit.write(record.clone()).await.unwrap();
    })
    .await;
    for path in [&path, &folder.path().join("audit.jsonl.1")] {
        assert_eq!(lines(path), std::slice::from_ref(&record));
        assert!(!std::fs::read_to_string(path).unwrap().contains('\u{1b}'));
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart_and_is_found_by_everything_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 1 << 20, 2);
    let records = [ordered(1, "alice", "jid0000000001"), ordered(2, "bob", "bid0000000002"), ordered(3, "alice", "x")];
    beside(writer, async {
        // Many at once share their syncs, and each is told.
        let writes = records.iter().cloned().map(|record| audit.write(record));
        futures::future::try_join_all(writes).await.unwrap();
        audit.write(outcome(&records[0], "done")).await.unwrap();
        audit.write(outcome(&records[1], "conflict")).await.unwrap();
    })
    .await;
    assert_eq!(lines(&path).len(), 5);
    assert!(audit.write(ordered(4, "late", "x")).await.unwrap_err().to_string().contains("is ending"));

    // A line that was cut by the end of the process hides none of the others, and the next begins anew.
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| {
            use std::io::Write as _;
            file.write_all(b"{\"record\":\"ord")
        })
        .unwrap();
    let (again, writer) = open(&path, 1 << 20, 2);
    beside(writer, async { again.write(ordered(5, "carol", "jid0000000009")).await.unwrap() }).await;
    let ids = |query: AuditQuery| -> Vec<String> {
        again
            .find(&AuditQuery { limit: 10, ..query })
            .entries
            .into_iter()
            .map(|entry| entry.subjects[0].clone())
            .collect()
    };
    assert_eq!(ids(AuditQuery::default()), ["jid0000000009", "x", "bid0000000002", "jid0000000001"]);
    assert_eq!(ids(AuditQuery { actor: Some("alice".to_owned()), ..Default::default() }), ["x", "jid0000000001"]);
    assert_eq!(ids(AuditQuery { text: Some("WHY NOT".to_owned()), ..Default::default() }), ["bid0000000002"]);
    assert_eq!(ids(AuditQuery { outcome: Some("done".to_owned()), ..Default::default() }), ["jid0000000001"]);
    assert_eq!(ids(AuditQuery { outcome: Some("going_on".to_owned()), ..Default::default() }), ["jid0000000009"]);
    // Of what was going on when the process ended nobody knows.
    assert_eq!(ids(AuditQuery { outcome: Some("unknown".to_owned()), ..Default::default() }), ["x"]);
    let page = again.find(&AuditQuery { limit: 1, before: Some(records[2].id()), ..Default::default() });
    assert_eq!((page.entries[0].id, page.total, page.has_more), (records[1].id(), 4, true));
    assert_eq!(page.entries[0].detail.as_deref(), Some("why not"));
}

#[tokio::test]
async fn a_full_file_is_put_aside_and_only_so_many_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 1_000, 2);
    beside(writer, async {
        for at in 1..=20 {
            audit.write(ordered(at, "alice", &format!("jid{at:010}"))).await.unwrap();
        }
    })
    .await;
    let mut names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
    assert!(names.iter().all(|name| folder.path().join(name).metadata().unwrap().len() <= 1_000));
    assert_eq!(
        lines(&path).last().unwrap().id(),
        audit.find(&AuditQuery { limit: 1, ..Default::default() }).entries[0].id
    );
    // What was put aside is read back too.
    let (again, _writer) = open(&path, 1_000, 2);
    let kept = lines(&path).len()
        + lines(&folder.path().join("audit.jsonl.1")).len()
        + lines(&folder.path().join("audit.jsonl.2")).len();
    assert_eq!(again.find(&AuditQuery { limit: 100, ..Default::default() }).total, kept);
}

#[tokio::test]
async fn who_cannot_be_written_down_is_told_and_the_next_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none").join("audit.jsonl");
    let refused = Audit::open(Destination::File(missing, Rotation::default())).unwrap_err();
    assert!(refused.to_string().starts_with("cannot open the audit file"), "{refused}");

    // The folder is gone when the file is full, and comes back.
    let path = folder.path().join("logs").join("audit.jsonl");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let (audit, writer) = open(&path, 10, 1);
    beside(writer, async {
        audit.write(ordered(1, "alice", "a")).await.unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let refused = audit.write(ordered(2, "alice", "b")).await.unwrap_err();
        assert!(refused.to_string().contains("cannot write the audit file"), "{refused}");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        audit.write(ordered(3, "alice", "c")).await.unwrap();
    })
    .await;
    assert_eq!(audit.find(&AuditQuery { limit: 10, ..Default::default() }).total, 2);
    assert_eq!(lines(&path).len(), 1);
}
