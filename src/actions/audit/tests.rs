use std::path::Path;

use jiff::Timestamp;

use super::*;
use crate::actions::parameters::WrittenParameters;
use queuekeeper_zookeeper::files;

mod alerts;
mod find;
mod versions;

fn requested(at: i64, actor: &str, target: &str) -> Record {
    let at = Timestamp::from_second(at).unwrap();
    Record::Requested {
        id: ActionId::new(at),
        at,
        actor: actor.to_owned(),
        role: "operator".to_owned(),
        source: "web".to_owned(),
        from: Some("127.0.0.1".to_owned()),
        action: "resume".to_owned(),
        targets: vec![target.to_owned()],
        count: 1,
        reason: "disk replaced".to_owned(),
        before: Some("failed".to_owned()),
        after: Some("downloading".to_owned()),
        before_each: Vec::new(),
        parameters: WrittenParameters::default(),
        operations: Vec::new(),
        decision: None,
    }
}

impl Record {
    /// The same action, requested by a rule.
    fn by_rule(mut action: Self) -> Self {
        if let Self::Requested { source, .. } = &mut action {
            "alert".clone_into(source);
        }
        action
    }
}

fn outcome(of: &Record, outcome: &str) -> Record {
    let (id, at) = (of.id(), Timestamp::from_second(9).unwrap());
    let detail = (outcome != "done").then(|| "why not".to_owned());
    Record::Outcome {
        id,
        at,
        target: None,
        outcome: outcome.to_owned(),
        detail,
        before: None,
        after: None,
        cancelled_by: None,
        duration_seconds: 0.25,
        by_alert: matches!(of, Record::Requested { source, .. } if source == "alert"),
    }
}

fn open(path: &Path, size_bytes: u64, files: u32) -> (Audit, AuditWriter) {
    Audit::open(Destination::File(path.to_owned(), Rotation { size_bytes, files })).unwrap()
}

/// Runs a future next to a writer, which is then stopped and awaited.
async fn with_writer<T>(writer: AuditWriter, execution: impl Future<Output = T>) -> T {
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(writer.run(shutdown.clone()));
    let done = execution.await;
    shutdown.cancel();
    running.await.unwrap();
    done
}

fn lines(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| Record::read(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[tokio::test]
async fn a_record_is_one_line_whatever_texts_it_holds_and_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    // Small enough that the file is rotated between the two records.
    let (audit, writer) = open(&path, 1, 2);
    let forged = requested(9, "mallory", "jid0000000009").line(None);
    let evil = format!("x\r\n{forged}\u{85}\u{2028}\u{1b}[2J");
    let record = requested(1, &evil, &evil);
    with_writer(writer, async {
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
async fn records_are_there_after_a_restart_and_can_be_found_by_every_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 1 << 20, 2);
    let records =
        [requested(1, "alice", "jid0000000001"), requested(2, "bob", "bid0000000002"), requested(3, "alice", "x")];
    with_writer(writer, async {
        // Concurrent records share their syncs, and each caller gets a result.
        let writes = records.iter().cloned().map(|record| audit.write(record));
        futures::future::try_join_all(writes).await.unwrap();
        audit.write(outcome(&records[0], "done")).await.unwrap();
        audit.write(outcome(&records[1], "conflict")).await.unwrap();
    })
    .await;
    assert_eq!(lines(&path).len(), 5);
    assert!(audit.write(requested(4, "late", "x")).await.unwrap_err().to_string().contains("is shutting down"));

    // A line that was cut by the end of the process does not hide the others, and the next starts a new line.
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| {
            use std::io::Write as _;
            file.write_all(b"{\"record\":\"ord")
        })
        .unwrap();
    let (again, writer) = open(&path, 1 << 20, 2);
    with_writer(writer, async { again.write(requested(5, "carol", "jid0000000009")).await.unwrap() }).await;
    let ids = |query: AuditQuery| -> Vec<String> {
        again
            .find(&AuditQuery { limit: 10, ..query })
            .entries
            .into_iter()
            .map(|entry| entry.targets[0].clone())
            .collect()
    };
    assert_eq!(ids(AuditQuery::default()), ["jid0000000009", "x", "bid0000000002", "jid0000000001"]);
    assert_eq!(ids(AuditQuery { actor: Some("alice".to_owned()), ..Default::default() }), ["x", "jid0000000001"]);
    assert_eq!(ids(AuditQuery { text: Some("WHY NOT".to_owned()), ..Default::default() }), ["bid0000000002"]);
    assert_eq!(ids(AuditQuery { outcome: Some("done".to_owned()), ..Default::default() }), ["jid0000000001"]);
    assert_eq!(ids(AuditQuery { outcome: Some("running".to_owned()), ..Default::default() }), ["jid0000000009"]);
    // The outcome of what was running when the process ended is not known.
    assert_eq!(ids(AuditQuery { outcome: Some("unknown".to_owned()), ..Default::default() }), ["x"]);
    let page = again.find(&AuditQuery { limit: 1, after: Some(records[2].id()), ..Default::default() });
    assert_eq!((page.entries[0].id, page.total, page.before, page.has_more), (records[1].id(), 4, 2, true));
    assert_eq!(page.entries[0].detail.as_deref(), Some("why not"));
    let oldest = AuditQuery { order: AuditOrder::Oldest, ..Default::default() };
    assert_eq!(ids(oldest.clone()), ["jid0000000001", "bid0000000002", "x", "jid0000000009"]);
    let page = again.find(&AuditQuery { limit: 1, after: Some(records[1].id()), ..oldest });
    assert_eq!((page.entries[0].id, page.total, page.before, page.has_more), (records[2].id(), 4, 2, true));
}

#[tokio::test]
async fn a_full_file_is_rotated_and_the_number_of_files_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 1_000, 2);
    with_writer(writer, async {
        for at in 1..=20 {
            let action = requested(at, "alice", &format!("jid{at:010}"));
            audit.write(action.clone()).await.unwrap();
            audit.write(outcome(&action, "done")).await.unwrap();
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
    // Rotated files are read back too.
    let (again, _writer) = open(&path, 1_000, 2);
    let of = |path: &Path| lines(path).iter().filter(|record| matches!(record, Record::Requested { .. })).count();
    let kept = of(&path) + of(&folder.path().join("audit.jsonl.1")) + of(&folder.path().join("audit.jsonl.2"));
    assert_eq!(again.find(&AuditQuery { limit: 100, ..Default::default() }).total, kept);
}

#[tokio::test]
async fn a_record_that_cannot_be_written_is_an_error_and_the_next_may_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none").join("audit.jsonl");
    let refused = Audit::open(Destination::File(missing, Rotation::default())).unwrap_err();
    assert!(refused.to_string().starts_with("cannot open the audit file"), "{refused}");

    // The directory is missing when the file is full, and comes back.
    let path = folder.path().join("logs").join("audit.jsonl");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let (audit, writer) = open(&path, 10, 1);
    with_writer(writer, async {
        audit.write(requested(1, "alice", "a")).await.unwrap();
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let refused = audit.write(requested(2, "alice", "b")).await.unwrap_err();
        assert!(refused.to_string().contains("cannot write the audit file"), "{refused}");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        audit.write(requested(3, "alice", "c")).await.unwrap();
    })
    .await;
    assert_eq!(audit.find(&AuditQuery { limit: 10, ..Default::default() }).total, 2);
    assert_eq!(lines(&path).len(), 1);
}

/// The actions in a file that got an outcome at startup, and the number of its lines.
fn settled(path: &Path) -> (Vec<ActionId>, usize) {
    let lines = lines(path);
    let unknown = lines.iter().filter_map(|record| match record {
        Record::Outcome { id, target: None, outcome, .. } if outcome == "unknown" => Some(*id),
        _ => None,
    });
    (unknown.collect(), lines.len())
}

#[tokio::test]
async fn an_action_that_the_last_process_left_without_an_outcome_gets_one_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    // So small that the two records of an action are in different files.
    let (audit, writer) = open(&path, 700, 20);
    let actions: Vec<_> = (1..=6).map(|at| requested(at, "alice", &format!("jid{at:010}"))).collect();
    let item = |of: &Record| match outcome(of, "done") {
        Record::Outcome { id, at, outcome, duration_seconds, .. } => Record::Outcome {
            id,
            at,
            target: Some("jid0000000001".to_owned()),
            outcome,
            // A text that looks like the search pattern.
            detail: Some("\",\"target\":\"".to_owned()),
            before: Some("failed".to_owned()),
            after: Some("pending".to_owned()),
            cancelled_by: None,
            duration_seconds,
            by_alert: false,
        },
        other => panic!("{other:?}"),
    };
    with_writer(writer, async {
        for action in &actions {
            audit.write(action.clone()).await.unwrap();
        }
        // The outcome of one item is not the outcome of the action.
        audit.write(item(&actions[1])).await.unwrap();
        for done in [0, 2, 4] {
            audit.write(outcome(&actions[done], "done")).await.unwrap();
        }
    })
    .await;
    drop(audit);
    let left: Vec<_> = [1, 3, 5].map(|number: usize| actions[number].id()).into();

    // Another process that has the file open may be executing them.
    let held = files::append(&path).unwrap();
    held.lock_shared().unwrap();
    let (_audit, writer) = open(&path, 1 << 20, 20);
    drop(writer);
    assert_eq!(settled(&path).0, []);
    drop(held);

    let (again, writer) = open(&path, 1 << 20, 20);
    drop(writer);
    let (found, count) = settled(&path);
    assert_eq!(found, left);
    let of = |id| again.entry(id).unwrap().outcome;
    assert_eq!([of(actions[0].id()), of(left[0])], ["done", "unknown"].map(|label| Some(label.to_owned())));
    // Once only.
    let (_audit, writer) = open(&path, 1 << 20, 20);
    drop(writer);
    assert_eq!(settled(&path), (left, count));
}

#[tokio::test]
async fn a_file_that_is_moved_removed_or_replaced_is_noticed_before_the_next_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 1 << 20, 2);
    let target = |record: &Record| match record {
        Record::Requested { targets, .. } => targets[0].clone(),
        other => panic!("{other:?}"),
    };
    let targets = |path: &Path| lines(path).iter().map(target).collect::<Vec<_>>();
    with_writer(writer, async {
        let write = async |name: &str| audit.write(requested(1, "alice", name)).await;
        write("a").await.unwrap();
        let moved = folder.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        write("b").await.unwrap();
        assert_eq!([targets(&moved), targets(&path)], [["a"], ["b"]]);
        std::fs::remove_file(&path).unwrap();
        write("c").await.unwrap();
        assert_eq!(targets(&path), ["c"]);
        // As after `copytruncate`.
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        write("d").await.unwrap();
        assert_eq!(targets(&path), ["d"]);
        // Not through a symbolic link, and not into a file that other users may write.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        assert!(write("e").await.unwrap_err().to_string().contains("symbolic link"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(write("f").await.unwrap_err().to_string().contains("may write it"));
        std::fs::remove_file(&path).unwrap();
        write("g").await.unwrap();
        assert_eq!([targets(&moved), targets(&path)], [["a"], ["g"]]);
    })
    .await;
    for name in ["moved", "link"] {
        if name == "link" {
            std::os::unix::fs::symlink(folder.path().join("moved"), folder.path().join(name)).unwrap();
        } else {
            std::fs::set_permissions(folder.path().join(name), std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .unwrap();
        }
        let refused = Audit::open(Destination::File(folder.path().join(name), Rotation::default())).unwrap_err();
        assert!(refused.to_string().starts_with("cannot open the audit file"), "{refused}");
    }
}
