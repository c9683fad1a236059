//! Each fault, made on a real tree: it is named with its nodes, and goes when it is repaired.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use queuekeeper::mirror::FoundFault;
use queuekeeper_queue::fault::{Fault, Limits, Provisioning};
use queuekeeper_queue::path::Path;

use super::table::CASES;
use super::table::Do::{self, Delete, Make, MakeEphemeral, Set};
use super::world::{LIMIT, Mirror, World, status, without_daemons};
use queuekeeper_testkit::wait::{eventually, eventually_some};

pub(super) async fn change(world: &World, changes: &[Do]) {
    for change in changes {
        match change {
            Make(path, data) => world.create(path, data).await,
            MakeEphemeral(path) => world.ephemeral(path).await,
            Set(path, data) => world.set(path, data).await,
            Delete(path) => world.delete(path).await,
        }
    }
}

pub(super) const TEN_MINUTES: i64 = 600;

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_is_named_with_its_nodes_and_goes_when_it_is_repaired() {
    let world = World::new("cases").await;
    let mirror = Mirror::start(&world, without_daemons()).await;
    assert_eq!(mirror.labels_after(TEN_MINUTES).await, [""; 0]);
    for (faults, make, repair, item, node) in CASES {
        let labels: Vec<_> = faults.iter().map(|fault| fault.label()).collect();
        let before = Timestamp::now();
        change(&world, make).await;
        eventually(LIMIT, &format!("{make:?} is {labels:?}"), async || {
            mirror.labels_after(TEN_MINUTES).await == labels
        })
        .await;
        let all = mirror.after(TEN_MINUTES).await;
        let node = Path::parse(node);
        assert!(all.iter().any(|found| found.nodes.contains(&node)), "{all:?} name {node}");
        for found in all {
            assert_eq!(found.item.to_string(), *item);
            assert!(!found.nodes.is_empty());
            assert!(found.since.duration_since(before).as_secs_f64() > -1.0 && found.since <= Timestamp::now());
            assert_eq!(found.effect, found.fault.effect());
            // A fault of several forms has a fix for each.
            let forms = [Fault::OverdueBatch, Fault::ContradictingBatch, Fault::UnfinishedCreation];
            let has_forms = forms.contains(&found.fault);
            let is_of_item = found.fix == found.fault.fix_of(&found.item);
            assert!(is_of_item || has_forms && found.fix.ends_with('.'), "{found:?}");
            assert!(found.how.ends_with('.'));
            let later = Timestamp::now() + SignedDuration::from_secs(TEN_MINUTES);
            assert!(mirror.store.faults_of(&found.item, later, None).unwrap().contains(&found));
        }
        change(&world, repair).await;
        eventually(LIMIT, &format!("{make:?} is repaired"), async || mirror.after(TEN_MINUTES).await.is_empty()).await;
    }
    let named: BTreeSet<_> = CASES.iter().flat_map(|(faults, ..)| faults.iter()).collect();
    let by_time = [Fault::StuckState, Fault::ForgottenPause, Fault::FolderNearLimit, Fault::NoDaemon];
    assert_eq!(named.len() + by_time.len(), Fault::ALL.len(), "every fault is made here or below");
}

async fn found(mirror: &Mirror, seconds: i64, fault: Fault, item: &str) -> FoundFault {
    eventually_some(LIMIT, &format!("{fault} of {item}"), async || {
        mirror.after(seconds).await.into_iter().find(|found| found.fault == fault && found.item.to_string() == item)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_by_time_count_from_their_limit_on() {
    const HOUR: i64 = 3600;
    let world = World::new("time").await;
    let limits = Limits { folder_children: 13, ..Limits::default() };
    let mirror = Mirror::start(&world, limits).await;

    world.create("/locks/queue/ingest", "").await;
    found(&mirror, 25 * HOUR, Fault::ForgottenPause, "/locks/queue/ingest").await;
    assert!(!mirror.labels_after(23 * HOUR).await.contains(&"forgotten_pause"));
    let stuck = mirror.after(30 * HOUR).await.into_iter().filter(|found| found.fault == Fault::StuckState);
    let stuck: Vec<_> = stuck.map(|found| found.item.to_string()).collect();
    assert_eq!(stuck, ["/jobs/states/recording"], "a pause stops all states but one");
    world.delete("/locks/queue/ingest").await;

    // A store's hold is no znode of the queue, and is forgotten as a pause is.
    let hold = "/queuekeeper/stores/main/held";
    for (end, _) in hold.match_indices('/').skip(1) {
        world.create(&hold[..end], "").await;
    }
    world.create(hold, r#"{"who":"anna","why":"disks"}"#).await;
    let held = found(&mirror, 25 * HOUR, Fault::ForgottenPause, hold).await;
    assert_eq!(held.nodes.iter().map(ToString::to_string).collect::<Vec<_>>(), [hold]);
    assert!(!mirror.labels_after(23 * HOUR).await.contains(&"forgotten_pause"));
    // A mirror that begins anew finds it, too.
    let later = Mirror::start(&world, Limits::default()).await;
    found(&later, 25 * HOUR, Fault::ForgottenPause, hold).await;
    drop(later);
    world.delete(hold).await;
    eventually(LIMIT, "the hold is released", async || {
        mirror.after(25 * HOUR).await.iter().all(|found| found.item.to_string() != hold)
    })
    .await;

    let provisioning = "/jobs/states/provisioning";
    let stuck = found(&mirror, 7 * HOUR, Fault::StuckState, provisioning).await;
    assert_eq!((stuck.how, stuck.fix), (Provisioning::NoDaemon.how(), Provisioning::NoDaemon.fix()));
    assert!(stuck.nodes.contains(&Path::parse("/jobs/jid0000000002/status")));
    let all = mirror.after(90 * 60).await;
    let of = |fault: Fault| all.iter().filter(move |found| found.fault == fault);
    let items = |fault: Fault| of(fault).map(|found| found.item.to_string()).collect::<BTreeSet<_>>();
    let stuck = items(Fault::StuckState);
    let states = ["estimating", "notify", "pending"].map(|state| format!("/jobs/states/{state}"));
    assert_eq!(stuck, BTreeSet::from(states));
    // Jobs wait in eight states, and no daemon has taken one since the first look. No head is to blame for that.
    assert_eq!(items(Fault::NoDaemon).len(), 8, "{all:?}");
    assert!(!mirror.labels_after(4 * 60).await.contains(&"no_daemon"));
    world.create("/jobs/states/estimating/00-jid0000000005", "").await;
    found(&mirror, TEN_MINUTES, Fault::OrphanEntry, "/jobs/jid0000000005").await;
    found(&mirror, TEN_MINUTES, Fault::NoDaemon, "/jobs/states/estimating").await;
    world.ephemeral("/jobs/jid0000000002/lock").await;
    eventually(LIMIT, "somebody works, and the head may be to blame", async || {
        let of_all = mirror.after(TEN_MINUTES).await;
        !of_all
            .iter()
            .any(|found| found.fault == Fault::NoDaemon && found.item == Path::parse("/jobs/states/estimating"))
    })
    .await;
    world.delete("/jobs/states/estimating/00-jid0000000005").await;
    eventually(LIMIT, "a daemon works in one of them", async || {
        let of_all = mirror.after(TEN_MINUTES).await;
        let idle: Vec<_> = of_all.iter().filter(|found| found.fault == Fault::NoDaemon).collect();
        idle.len() == 7 && idle.iter().all(|found| found.item.to_string() != provisioning)
    })
    .await;
    eventually(LIMIT, "it is locked, and needs 1,000 bytes of 500", async || {
        let stuck = mirror.after(7 * HOUR).await.into_iter().find(|found| found.item.to_string() == provisioning);
        stuck.is_some_and(|found| found.how == Provisioning::WaitingForSpace.how())
    })
    .await;

    found(&mirror, 49 * HOUR, Fault::LeakedLock, "/jobs/jid0000000002").await;
    assert!(!mirror.labels_after(47 * HOUR).await.contains(&"leaked_lock"));

    world.batch(1, "Processing").await;
    world.ephemeral("/batches/bid0000000001/lock").await;
    found(&mirror, 5 * HOUR, Fault::OverdueBatch, "/batches/bid0000000001").await;
    assert!(!mirror.labels_after(3 * HOUR).await.contains(&"overdue_batch"));

    world.job(12, "Pending").await;
    found(&mirror, 10, Fault::FolderNearLimit, "/jobs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_walk_finds_the_same_faults_since_the_same_time() {
    let world = World::new("walks").await;
    change(
        &world,
        &[
            Make("/jobs/jid0000000003/lock", ""),
            Set("/jobs/jid0000000009/status", r#"{"status":"Failed","retry_count":3}"#),
            Make("/locks/storage/ark_1_99", ""),
        ],
    )
    .await;
    world.set("/jobs/jid0000000008/status", &status("Deleted", 0)).await;
    // Of these a walk learns the names only.
    for path in ["/jobs/states/notify/06-jid0000000009", "/jobs/states/pending/zz"] {
        world.create(path, "").await;
    }
    let first = Mirror::start(&world, without_daemons()).await;
    let second = Mirror::start(&world, without_daemons()).await;
    let labels = [
        "orphan_entry",
        "orphan_entry",
        "missing_reference",
        "malformed_name",
        "leaked_lock",
        "leaked_storage_lock",
        "retries_exhausted",
    ];
    for mirror in [&first, &second] {
        eventually(LIMIT, "all are found", async || mirror.labels_after(TEN_MINUTES).await == labels).await;
    }
    let sorted = async |mirror: &Mirror| {
        let mut all = mirror.after(TEN_MINUTES).await;
        all.sort_by(|one, other| one.item.cmp(&other.item));
        all
    };
    assert_eq!(sorted(&first).await, sorted(&second).await);
    let all = first.after(TEN_MINUTES).await;
    let since = |item: &str, fault: Fault| {
        let found = all.iter().find(|found| found.fault == fault && found.item.to_string() == item).unwrap();
        found.since.as_millisecond()
    };
    let (_, stat) = world.client.get_data("/jobs/jid0000000008/status").await.unwrap();
    assert_eq!(since("/jobs/jid0000000008", Fault::OrphanEntry), stat.mtime, "since its status contradicts it");
    let (_, stat) = world.client.get_data("/jobs/states/notify/06-jid0000000009").await.unwrap();
    assert_eq!(since("/jobs/jid0000000009", Fault::OrphanEntry), stat.ctime, "since the entry is there");
    let (_, stat) = world.client.get_data("/jobs/states/pending/zz").await.unwrap();
    assert_eq!(since("/jobs/states/pending/zz", Fault::MalformedName), stat.ctime);
    // Nothing counts at once but what lasts by the znodes' own times.
    eventually(LIMIT, "they count by themselves after a while", async || {
        let summary = first.store.summary(Timestamp::now(), None).unwrap();
        summary.faults(Fault::OrphanEntry).count == 2 && summary.faults(Fault::LeakedLock).count == 1
    })
    .await;
}
