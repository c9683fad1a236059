//! Foreign data in our own znodes, and invalid calls.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use jiff::Timestamp;
use queuekeeper::alerts::{NotReceived, Rules};
use queuekeeper_queue::state::JobState;
use serde_json::json;
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};

use super::changes::{answered, changed};
use super::world::{LIMIT, PERSISTENT, World, failed_jobs, resume};
use queuekeeper_testkit::wait::eventually;

const ALL: &str = "mode: enforce\nselect: {limit: 100}\nbudget: {items: 200, per: 1h}\ncooldown: 1m";

#[tokio::test(flavor = "multi_thread")]
async fn foreign_znodes_among_ours_trigger_nothing() {
    let world = World::new().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let jobs = world.failed(3).await;
    keeper.sees(JobState::Failed, 3).await;
    let forged = |name: &str| {
        format!(
            r#"{{"id":"01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90","kind":"act","rule":"{name}","cause":{{"alert":"A","fingerprint":"ff","starts_at":"2026-11-21T10:00:00Z"}},"scope":{{}},"at":"2026-11-21T10:00:00Z"}}"#
        )
    };
    for (name, data) in [
        ("again.act.junk", "{".to_owned()),
        ("again.act.0000000000000000", forged("again")),
        ("nothing.act.e3b0c44298fc1c14", forged("nothing")),
        // With a date at the end of time, which must not cause an overflow.
        ("later.act.e3b0c44298fc1c14", forged("later").replace("2026-11-21T10:00:00Z", "9999-12-30T22:00:00Z")),
        ("UPPER", forged("again")),
    ] {
        world.raw.create(&format!("/queuekeeper/pending/{name}"), data.as_bytes(), &PERSISTENT).await.unwrap();
    }
    // Invalid ones are removed; the decision of an unknown rule has waited for an hour already. A znode with another
    // name is not touched.
    eventually(LIMIT, "they are removed", async || world.pending().await == ["UPPER"]).await;
    assert_eq!(world.count(&jobs, JobState::Failed).await, 3);

    // An invalid state stops its rule, and the error has the fix.
    world.raw.set_data("/queuekeeper/rules", b"", None).await.unwrap();
    let path = "/queuekeeper/rules/again";
    if world.raw.check_stat(path).await.unwrap().is_none() {
        world.raw.create(path, b"", &PERSISTENT).await.unwrap();
    }
    world.raw.set_data(path, b"garbage", None).await.unwrap();
    let received = keeper.send(&[failed_jobs("01")]).await;
    assert_eq!(received.decisions[0].outcome, "failed");
    assert!(received.decisions[0].detail.contains("delete /queuekeeper/rules/again"), "{received:?}");
    world.raw.delete(path, None).await.unwrap();
    // So does an invalid shared budget: Alertmanager retries.
    world.raw.set_data("/queuekeeper/rules", b"[1", None).await.unwrap();
    let refused = keeper.receive(&[failed_jobs("00")]).await.unwrap_err();
    assert!(
        matches!(&refused, NotReceived::Unrecorded(why) if why.contains("/queuekeeper/rules is not valid")),
        "{refused}"
    );
    assert_eq!(world.count(&jobs, JobState::Failed).await, 3);
    world.raw.set_data("/queuekeeper/rules", b"", None).await.unwrap();
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "accepted");
    eventually(LIMIT, "it is done", async || world.count(&jobs, JobState::Failed).await == 0).await;
    eventually(LIMIT, "it has finished", async || world.pending().await == ["UPPER"]).await;

    // The parent znode of pending decisions is removed manually: it is created again when needed.
    for name in world.pending().await {
        world.raw.delete(&format!("/queuekeeper/pending/{name}"), None).await.unwrap();
    }
    world.raw.delete("/queuekeeper/pending", None).await.unwrap();
    let more = world.failed(1).await;
    keeper.sees(JobState::Failed, 1).await;
    world.raw.delete(path, None).await.unwrap();
    assert_eq!(keeper.outcome(failed_jobs("06")).await, "accepted");
    eventually(LIMIT, "it is done", async || world.count(&more, JobState::Failed).await == 0).await;
    // Until it has finished, its rule's state would be written after the removal.
    keeper.settled(&world).await;

    // The whole subtree is removed manually: it is created again, and nothing is executed twice.
    for name in world.raw.list_children("/queuekeeper/election").await.unwrap() {
        world.raw.delete(&format!("/queuekeeper/election/{name}"), None).await.unwrap();
    }
    let more = world.failed(2).await;
    keeper.sees(JobState::Failed, 2).await;
    world.raw.delete(path, None).await.unwrap();
    eventually(LIMIT, "it leads again and acts", async || {
        let _ = keeper.receive(&[failed_jobs("07")]).await;
        world.count(&more, JobState::Failed).await == 0
    })
    .await;
    keeper.end().await;
}

/// The credentials of another user, who alone has access.
const CLOSED: &str = "digest:somebody:oJnmVJLuRFqMwmM7pCLqFyGUMeM=";

#[tokio::test(flavor = "multi_thread")]
async fn foreign_data_in_our_znodes_is_reported_and_stops_nothing_else() {
    let world = World::new().await;
    let put = async |path: &str, data: &[u8]| {
        world.raw.create(path, data, &PERSISTENT).await.unwrap();
    };
    let uuid = "01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90";
    for folder in ["election", "held", "pending", "rules"] {
        world.raw.mkdir(&format!("/queuekeeper/{folder}"), &PERSISTENT).await.unwrap();
    }
    // Each of these sorts before the znodes of our processes.
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    put("/queuekeeper/election/candidate-0000000000", b"").await;
    put("/queuekeeper/election/candidate-0000000000/child", b"").await;
    put(&format!("/queuekeeper/election/_c_{uuid}-candidate-0000000000"), &vec![b'x'; 900_000]).await;
    world.raw.create("/queuekeeper/election/0-candidate-0000000000", b"", &ephemeral).await.unwrap();
    // A znode that blocks workers for ever; beside it that of a worker, and one that is not an item.
    put("/queuekeeper/held/jid0000000042", b"").await;
    world.raw.create("/queuekeeper/held/small-qid0000000043", b"7", &ephemeral).await.unwrap();
    put("/queuekeeper/held/junk", b"").await;
    put("/queuekeeper/odd", b"").await;
    // Znodes that cannot be deleted or read; and a decision at the end of time, in the place of the next one of the
    // rule.
    put("/queuekeeper/pending/garbage", b"{").await;
    put("/queuekeeper/pending/garbage/child", b"").await;
    let other_user = Acl::new(Permission::ALL, AuthId::new("digest", CLOSED.strip_prefix("digest:").unwrap()));
    let closed = CreateMode::Persistent.with_acls(Acls::from(std::slice::from_ref(&other_user)));
    world.raw.create("/queuekeeper/pending/closed", b"", &closed).await.unwrap();
    world.raw.create("/queuekeeper/rules/another", b"", &closed).await.unwrap();
    let end = "9999-12-30T22:00:00Z";
    let later = format!(
        r#"{{"id":"{uuid}","kind":"act","rule":"again","cause":{{"alert":"A","fingerprint":"ff","starts_at":"{end}"}},"scope":{{}},"at":"{end}","not_before":"{end}"}}"#
    );
    put("/queuekeeper/rules/ghost", b"boo").await;
    put("/queuekeeper/rules/Not Ours", &vec![b'x'; 900_000]).await;
    // Also without a rule.
    let idle = world.keeper(Rules::default()).await;
    idle.ready(false).await;
    let found = idle.alerts.overview(Timestamp::now()).foreign;
    assert!(found.iter().any(|found| found.path == "/queuekeeper/held/jid0000000042" && found.stops), "{found:#?}");
    idle.end().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let jobs = world.failed(3).await;
    keeper.sees(JobState::Failed, 3).await;
    put("/queuekeeper/pending/again.act.e3b0c44298fc1c14", later.as_bytes()).await;
    eventually(LIMIT, "the decision is carried out", async || world.count(&jobs, JobState::Failed).await == 0).await;
    eventually(LIMIT, "it has finished", async || world.pending().await.len() == 2).await;
    // The rule continues with its state, which has no date at the end of time.
    world.raw.set_data("/queuekeeper/rules/again", &memory_of(end), None).await.unwrap();
    let more = world.failed(1).await;
    keeper.sees(JobState::Failed, 1).await;
    assert_eq!(keeper.outcome(failed_jobs("01")).await, "accepted");
    eventually(LIMIT, "it is done", async || world.count(&more, JobState::Failed).await == 0).await;
    keeper.settled_but(&world, 2).await;

    let expected = [
        ("/queuekeeper/election/0-candidate-0000000000", "has a name", false),
        ("/queuekeeper/election/_c_01938f5e-6c2a-7c3b-9d6e-2f0d1c5b7a90-candidate-0000000000", "not ephemeral", false),
        ("/queuekeeper/election/candidate-0000000000", "has a name", false),
        ("/queuekeeper/held/jid0000000042", "not ephemeral", true),
        ("/queuekeeper/held/junk", "not ephemeral", true),
        ("/queuekeeper/odd", "has a name", false),
        ("/queuekeeper/pending/closed", "cannot be read", true),
        ("/queuekeeper/pending/garbage", "has children", true),
        ("/queuekeeper/rules/Not Ours", "has a name", false),
        ("/queuekeeper/rules/another", "cannot be read", true),
        ("/queuekeeper/rules/ghost", "not the state", true),
    ];
    let mut found = keeper.alerts.overview(Timestamp::now()).foreign;
    found.sort();
    let is_expected = found.iter().zip(expected).all(|(found, (path, what, stops))| {
        found.path == path && found.what.contains(what) && found.stops == stops && found.fix.contains(path)
    });
    assert!(is_expected && found.len() == expected.len(), "{found:#?}");
    assert_eq!(keeper.series("queuekeeper_alert_foreign_znodes "), Some(11.0));
    // What cannot succeed is not retried each second.
    assert_eq!(keeper.counted("invalid"), 0);

    // The pause is removed together with znodes below it.
    for path in ["", "/a", "/a/b", "/a/b/c", "/d"] {
        put(&format!("/queuekeeper/paused{path}"), b"").await;
    }
    eventually(LIMIT, "it is named", async || {
        let found = keeper.alerts.overview(Timestamp::now()).foreign;
        found.iter().any(|found| found.path == "/queuekeeper/paused")
    })
    .await;
    let (actor, reason) = super::world::operator();
    let unpause = async || keeper.alerts.unpause(&actor, &reason, Timestamp::now()).await;
    changed(unpause).await;
    assert!(world.raw.check_stat("/queuekeeper/paused").await.unwrap().is_none());
    // Unless there are too many of them: then they stay, and the fix is shown.
    put("/queuekeeper/paused", b"").await;
    for number in 0..50 {
        put(&format!("/queuekeeper/paused/{number}"), b"").await;
        put(&format!("/queuekeeper/paused/{number}/child"), b"").await;
    }
    put("/queuekeeper/paused/0/child/more", b"").await;
    let refused = answered(unpause).await.unwrap_err().to_string();
    assert!(refused.contains("more than 100") && refused.contains("deleteall /queuekeeper/paused"), "{refused}");
    assert_eq!(world.raw.list_children("/queuekeeper/paused").await.unwrap().len(), 50, "nothing was deleted");
    world.raw.delete("/queuekeeper/paused/0/child/more", None).await.unwrap();
    changed(unpause).await;
    let again = answered(unpause).await.unwrap_err().to_string();
    assert!(again.contains("not paused"), "{again}");

    // A znode without access stops all rules, and is reported.
    world.raw.set_acl("/queuekeeper/pending", std::slice::from_ref(&other_user), None).await.unwrap();
    eventually(LIMIT, "it is named", async || {
        let found = keeper.alerts.overview(Timestamp::now()).foreign;
        found.iter().any(|found| found.path == "/queuekeeper/pending" && found.stops)
    })
    .await;
    keeper.end().await;
}

/// The state of a rule in which all budgets, attempts and alerts have the same date.
fn memory_of(at: &str) -> Vec<u8> {
    let at_ms = at.parse::<Timestamp>().unwrap().as_millisecond();
    let seen = json!({"scope": "", "fingerprint": "01", "starts_at": "2026-11-21T10:00:00Z", "at": at});
    let attempts: serde_json::Map<_, _> =
        (0..4_000).map(|job| (format!("jid{:010}", 100_000 + job), json!([1, at_ms]))).collect();
    json!({"spent": [[at_ms, 200]], "seen": [seen], "attempts": attempts, "last_action": at}).to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_leader_if_no_process_can_be_a_candidate_and_that_is_reported() {
    let world = World::new().await;
    world.raw.mkdir("/queuekeeper", &PERSISTENT).await.unwrap();
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    // An ephemeral znode cannot have children.
    world.raw.create("/queuekeeper/election", b"", &ephemeral).await.unwrap();
    let keeper = world.keeper(resume(ALL)).await;
    eventually(LIMIT, "it is said", async || {
        let problem = keeper.alerts.overview(Timestamp::now()).problem;
        problem.is_some_and(|problem| problem.starts_with("/queuekeeper/election: "))
    })
    .await;
    world.raw.delete("/queuekeeper/election", None).await.unwrap();
    keeper.ready(true).await;
    assert_eq!(keeper.alerts.overview(Timestamp::now()).problem, None);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_call_is_refused_and_counted() {
    let world = World::new().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let caller = super::world::operator().0;
    for body in [&b""[..], b"{}", br#"{"version":"5"}"#, br#"{"version":"4"}"#, b"\xff\xfe", b"[1,2"] {
        let refused = keeper.alerts.receive(body, &caller, Timestamp::now()).await.unwrap_err();
        assert!(matches!(refused, NotReceived::Invalid(_)), "{refused:?}");
    }
    assert_eq!(keeper.counted("invalid"), 6);
    keeper.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_recorded_is_neither_decided_nor_executed() {
    let world = World::new().await;
    let keeper = world.keeper(resume(ALL)).await;
    keeper.ready(true).await;
    let other = world.answering(resume(ALL)).await;
    let jobs = world.failed(3).await;
    keeper.sees(JobState::Failed, 3).await;
    other.sees(JobState::Failed, 3).await;
    keeper.block_trail(true);
    eventually(LIMIT, "it says so", async || keeper.alerts.overview(Timestamp::now()).is_audit_unwritable).await;
    for _ in 0..3 {
        let refused = keeper.receive(&[failed_jobs("00")]).await.unwrap_err();
        let why = refused.to_string();
        assert!(matches!(refused, NotReceived::NotWritten(_)), "{why}");
        assert!(
            why.contains("audit.jsonl.alerts") && why.contains("nothing was decided") && !why.contains('\n'),
            "{why}"
        );
    }
    assert_eq!(world.pending().await, [""; 0]);

    // A decision that another process has accepted waits until it can be recorded here.
    assert_eq!(other.outcome(failed_jobs("00")).await, "accepted");
    let look = async || {
        let before = keeper.alerts.overview(Timestamp::now()).read;
        eventually(LIMIT, "it looks again", async || keeper.alerts.overview(Timestamp::now()).read > before).await;
    };
    look().await;
    look().await;
    assert_eq!((world.pending().await.len(), world.count(&jobs, JobState::Failed).await), (1, 3));
    keeper.block_trail(false);
    eventually(LIMIT, "it is done", async || world.count(&jobs, JobState::Failed).await == 0).await;
    keeper.settled(&world).await;
    assert!(!keeper.alerts.overview(Timestamp::now()).is_audit_unwritable);
    // Actions of rules are in the file for alerts, and not in that of operators.
    eventually(LIMIT, "it is written down", async || keeper.done() == 3).await;
    assert_eq!(keeper.read(""), "");
    keeper.end().await;
}
