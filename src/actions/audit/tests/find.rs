//! What is found in the actions of late, and how they are grouped.

use super::*;

#[test]
fn an_action_is_found_by_each_of_its_targets_and_by_its_time() {
    let recent = Recent::default();
    let bulk = |at, range: std::ops::Range<u32>| {
        let mut record = requested(at, "alice", "none");
        if let Record::Requested { targets, count, .. } = &mut record {
            *targets = range.map(|number| format!("jid{number:010}")).collect();
            *count = targets.len() as u64;
        }
        record
    };
    let (first, second) = (bulk(100, 0..500), bulk(200, 400..410));
    recent.add(first.clone());
    // A bulk action may take several lines of the file.
    let Record::Requested { id, .. } = &first else { unreachable!("it is one") };
    let mut further = bulk(100, 500..600);
    if let Record::Requested { id: of, .. } = &mut further {
        *of = *id;
    }
    recent.add(further);
    recent.add(second);
    let found = |query: AuditQuery| -> Vec<i64> {
        recent.find(&AuditQuery { limit: 10, ..query }).entries.iter().map(|entry| entry.at.as_second()).collect()
    };
    let on = |number: u32| found(AuditQuery { targets: vec![format!("jid{number:010}")], ..Default::default() });
    assert_eq!((on(0), on(19), on(20), on(499), on(599)), (vec![100], vec![100], vec![100], vec![100], vec![100]));
    assert_eq!((on(405), on(600)), (vec![200, 100], Vec::new()));
    let at = |second| Some(Timestamp::from_second(second).unwrap());
    let between = |since, until| found(AuditQuery { since, until, ..Default::default() });
    assert_eq!(between(at(100), at(200)), [100]);
    assert_eq!(between(at(101), None), [200]);
    assert_eq!(between(None, at(100)), [0_i64; 0]);
}

#[test]
fn the_actions_of_a_decision_are_one_entry_and_an_operators_own_stays_visible() {
    let recent = Recent::default();
    let decision = ActionId::new(Timestamp::from_second(50).unwrap());
    let of_rule = |at: i64| Record::by_rule(requested(at, "rule again", &format!("jid{at:010}"))).of_decision(decision);
    let records: Vec<_> = (100..305).map(of_rule).collect();
    recent.add(requested(90, "alice", "collection:maps"));
    for record in &records {
        recent.add(record.clone());
        if record.id() != records[204].id() {
            recent.add(outcome(record, "done"));
        }
    }
    recent.add(requested(400, "bob", "jid0000000100"));
    let find = |query: AuditQuery| recent.find(&AuditQuery { limit: query.limit.max(2), ..query });
    let page = find(AuditQuery::default());
    assert_eq!((page.total, page.entries.len(), page.has_more), (3, 2, true));
    let rule = &page.entries[1];
    assert_eq!((rule.id, rule.decision, rule.actions, rule.count), (records[204].id(), Some(decision), 205, 205));
    assert_eq!((rule.targets.len(), rule.outcome.as_deref()), (20, None), "one is running");
    assert_eq!(rule.detail.as_deref(), Some("1 running, 204 done"));
    assert_eq!((rule.before.as_deref(), rule.after.as_deref()), (Some("failed"), Some("downloading")));
    // The next page begins behind all of them, wherever they were requested.
    let next = find(AuditQuery { after: Some(rule.id), ..AuditQuery::default() });
    assert_eq!((next.before, next.entries.len(), &*next.entries[0].actor), (2, 1, "alice"));

    recent.add(outcome(&records[204], "conflict"));
    let rule = &find(AuditQuery::default()).entries[1];
    assert_eq!(rule.outcome.as_deref(), Some("in_part"));
    assert_eq!(rule.detail.as_deref(), Some("1 conflict, 204 done"));
    assert_eq!(rule.duration_seconds, Some(204.25), "from the first to the end of the last");

    // What is filtered is grouped as far as it matches, and a decision alone is listed action by action.
    let on = find(AuditQuery { targets: vec!["jid0000000100".to_owned()], ..AuditQuery::default() });
    let on: Vec<_> = on.entries.iter().map(|entry| (&*entry.actor, entry.actions)).collect();
    assert_eq!(on, [("bob", 1), ("rule again", 1)]);
    let alone = find(AuditQuery { decision: Some(decision), limit: 50, ..AuditQuery::default() });
    assert_eq!((alone.total, alone.entries.len()), (205, 50));
    let oldest = find(AuditQuery { order: AuditOrder::Oldest, ..AuditQuery::default() });
    let oldest: Vec<_> = oldest.entries.iter().map(|entry| entry.at.as_second()).collect();
    assert_eq!(oldest, [90, 100]);
    assert_eq!(find(AuditQuery { text: Some(decision.to_string()), ..AuditQuery::default() }).entries[0].actions, 205);
}

#[test]
fn a_target_is_found_by_its_name_alone_in_single_and_in_bulk_actions() {
    let recent = Recent::default();
    let mut bulk = requested(5, "alice", "none");
    if let Record::Requested { targets, count, .. } = &mut bulk {
        *targets = (0..30).map(|number| format!("fault:orphan_entry:/jobs/jid{number:010}")).collect();
        *count = 30;
    }
    for record in [
        requested(1, "alice", "collection:open_datasets"),
        requested(2, "alice", "queue:ingest"),
        requested(3, "alice", "lock:/locks/storage/ark_1"),
        requested(4, "alice", "small/qid0000000042"),
        bulk,
    ] {
        recent.add(record);
    }
    let found = |targets: &[&str]| -> Vec<i64> {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        let page = recent.find(&AuditQuery { targets, limit: 10, ..AuditQuery::default() });
        page.entries.iter().map(|entry| entry.at.as_second()).collect()
    };
    for (target, at) in [
        ("open_datasets", 1),
        ("collection:open_datasets", 1),
        ("ingest", 2),
        ("ark_1", 3),
        ("/locks/storage/ark_1", 3),
        ("qid0000000042", 4),
        ("jid0000000001", 5),
        // Beyond those that the entry names.
        ("jid0000000029", 5),
    ] {
        assert_eq!(found(&[target]), [at], "{target}");
    }
    assert_eq!(found(&["open"]), [0_i64; 0], "no part of a name");
    assert_eq!(found(&["bid0000000007", "jid0000000029", "ingest"]), [5, 2], "any of them");
}
