//! The audit file for records caused by alerts.

use super::*;

#[tokio::test]
async fn records_caused_by_alerts_have_a_file_of_their_own_and_unchanged_calls_are_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (audit, writer) = open(&path, 2_000, 1);
    let at = Timestamp::from_second(1).unwrap();
    let call = |number: i64| Record::Alerts {
        id: ActionId::new(Timestamp::from_second(number).unwrap()),
        at,
        actor: "alertmanager".to_owned(),
        from: None,
        receiver: "x".repeat(500),
        group: String::new(),
        truncated: 0,
        unmatched: 0,
        decisions: Vec::new(),
        more: 0,
    };
    let mine = requested(1, "alice", "jid0000000001");
    let rules = [2, 3].map(|at| Record::by_rule(requested(at, "rule:again", &format!("jid{at:010}"))));
    with_writer(writer, async {
        audit.write(mine.clone()).await.unwrap();
        audit.write(rules[0].clone()).await.unwrap();
        audit.write(outcome(&rules[0], "done")).await.unwrap();
        for number in 0..100 {
            audit.write(call(number)).await.unwrap();
        }
        for count in 1..=100 {
            let counted = |outcome: &str| Counted {
                rule: "again".to_owned(),
                outcome: outcome.to_owned(),
                count,
                detail: "x".repeat(100),
            };
            let decisions = vec![counted("duplicate"), counted("cooldown")];
            let actor = "alertmanager".to_owned();
            audit.count(Unchanged { actor, unmatched: 2, truncated: 1, decisions, is_call: true }, at);
        }
    })
    .await;
    assert_eq!(lines(&path), std::slice::from_ref(&mine));
    let of_alerts = lines(&folder.path().join("audit.jsonl.alerts"));
    // The sums are written at shutdown.
    let Some(Record::AlertsUnchanged { calls: 100, unmatched: 200, truncated: 100, decisions, .. }) = of_alerts.last()
    else {
        panic!("{of_alerts:?}")
    };
    let counts: Vec<_> = decisions.iter().map(|counted| (&*counted.outcome, counted.count)).collect();
    assert_eq!(counts, [("cooldown", 5_050), ("duplicate", 5_050)]);
    assert!(folder.path().join("audit.jsonl.alerts.1").metadata().unwrap().len() <= 2_000);

    // After the next start the actions of both files are there, and unfinished ones get an outcome in their own file.
    let (again, writer) = open(&path, 1 << 20, 1);
    with_writer(writer, async { again.write(rules[1].clone()).await.unwrap() }).await;
    drop(again);
    let (again, writer) = open(&path, 1 << 20, 1);
    drop(writer);
    let found = again.find(&AuditQuery { limit: 10, ..Default::default() }).entries;
    let found: Vec<_> = found.iter().map(|entry| (&*entry.targets[0], entry.outcome.as_deref())).collect();
    assert_eq!(found, [("jid0000000003", Some("unknown")), ("jid0000000001", Some("unknown"))]);
    let unknown = |path: &Path| settled(path).0;
    assert_eq!(unknown(&path), [mine.id()]);
    assert_eq!(unknown(&folder.path().join("audit.jsonl.alerts")), [rules[1].id()]);
}

#[tokio::test]
async fn whether_records_caused_by_alerts_can_be_written_is_checked_before_a_decision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let of_alerts = folder.path().join("audit.jsonl.alerts");
    std::fs::create_dir(&of_alerts).unwrap();
    let refused = Audit::open(Destination::File(path.clone(), Rotation::default())).unwrap_err();
    assert!(refused.to_string().contains("audit.jsonl.alerts"), "{refused}");
    std::fs::remove_dir(&of_alerts).unwrap();
    // Full after the first line, and rotated before the second.
    let (audit, mut writer) = open(&path, 10, 1);
    assert!(!of_alerts.exists(), "without rules there is nothing to write");
    writer.open_alerts().unwrap();
    assert!(of_alerts.exists());
    with_writer(writer, async {
        let by_rule = || Record::by_rule(requested(1, "rule:again", "jid0000000001"));
        audit.check_alerts().await.unwrap();
        audit.write(by_rule()).await.unwrap();
        let aside = folder.path().join("audit.jsonl.alerts.1");
        std::fs::create_dir(&aside).unwrap();
        // That the rotation will fail is known only after the first attempt.
        audit.check_alerts().await.unwrap();
        for attempt in [audit.write(by_rule()).await, audit.check_alerts().await, audit.check_alerts().await] {
            assert!(attempt.unwrap_err().to_string().contains("cannot write the audit file"));
        }
        // The records of operators are not affected.
        audit.write(requested(2, "alice", "jid0000000002")).await.unwrap();
        std::fs::remove_dir(&aside).unwrap();
        audit.check_alerts().await.unwrap();
        audit.write(by_rule()).await.unwrap();
    })
    .await;
    assert_eq!(lines(&path).len(), 1);
    assert_eq!(lines(&of_alerts).len(), 1);
}
