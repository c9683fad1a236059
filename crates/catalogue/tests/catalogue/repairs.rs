//! Repairs of copies: one at a time, and not too many a day.

use futures::future::join_all;
use queuekeeper_catalogue::repair_stops::RepairStarted;
use queuekeeper_catalogue::repairs::{NewRepair, Repair, RepairEnd};
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskQueue, TaskSubject, Tasks};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, StoreName};

use super::support::{LEASE, World, on_both};

fn main() -> StoreName {
    "main".parse().unwrap()
}

fn item(name: &str) -> Item {
    Item::new("account.space-a".parse().unwrap(), Key::new(name.as_bytes()).unwrap())
}

fn subject(name: &str, store: &StoreName) -> TaskSubject {
    TaskSubject {
        kind: TaskKind::Repair,
        account: "account".to_owned(),
        space: "space-a".parse().unwrap(),
        key: Some(item(name).key),
        destination: Some(store.clone()),
    }
}

/// The repairs of a copy, the newest first.
async fn repairs_of(world: &World, name: &str, store: &StoreName) -> Vec<Repair> {
    let all = world.catalogue.repairs("account", None, 10).await.unwrap();
    all.into_iter().filter(|repair| repair.store == *store && repair.item == item(name)).collect()
}

async fn start(world: &World, name: &str, store: &StoreName, most_a_day: Option<u64>) -> RepairStarted {
    begin(world, name, store, (most_a_day, "repair_from_copy")).await
}

async fn begin(
    world: &World,
    name: &str,
    store: &StoreName,
    (most_a_day, remedy): (Option<u64>, &str),
) -> RepairStarted {
    let (of, reason, content) = (item(name), "content\ndamaged", Some("{}"));
    let new = NewRepair { account: "account", store, item: &of, user: "ada", reason, remedy, content, most_a_day };
    let task = NewTask { queue: TaskQueue::BitError, subject: subject(name, store), source: None };
    world.catalogue.start_repair(&new, task).await.unwrap()
}

/// How many repairs wait for a worker.
async fn waiting(world: &World) -> usize {
    let tasks = Tasks { queue: TaskQueue::BitError, account: "account", kinds: &[TaskKind::Repair], limit: 10 };
    world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().len()
}

/// Has findings of these copies wait for a day.
async fn put_off_findings(world: &World, of: &[TaskSubject]) {
    let task = |subject: &TaskSubject| {
        let subject = TaskSubject { kind: TaskKind::BitError, ..subject.clone() };
        NewTask { queue: TaskQueue::BitError, subject, source: None }
    };
    world.catalogue.put_tasks(&of.iter().map(task).collect::<Vec<_>>()).await.unwrap();
    world.tamper("UPDATE tasks SET visible = visible + 86400000 WHERE kind = 'BIT_ERROR' AND holder IS NULL").await;
}

/// The findings that a worker may look at, which it does.
async fn findings(world: &World) -> Vec<String> {
    let tasks = Tasks { queue: TaskQueue::BitError, account: "account", kinds: &[TaskKind::BitError], limit: 10 };
    let taken = world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap();
    let name = |task: TakenTask| format!("{}/{}", task.subject.destination.unwrap(), task.subject.key.unwrap());
    taken.into_iter().map(name).collect()
}

on_both! {
    async fn a_repair_is_open_until_it_ends_and_there_is_one_of_a_copy(world: World) {
        let (catalogue, world) = (&world.catalogue, &world);
        assert_eq!(start(world, "a", &main(), None).await, RepairStarted::Started);
        assert_eq!(start(world, "a", &main(), None).await, RepairStarted::Open);
        assert_eq!(start(world, "a", &"replica".parse().unwrap(), None).await, RepairStarted::Started);
        assert_eq!(waiting(world).await, 2);
        // One whose task has failed for good, or was dropped, goes on once it is requested again.
        world
            .tamper("UPDATE tasks SET state = 'dead', queue = 'dead-letter', holder = NULL WHERE destination = 'main'")
            .await;
        assert_eq!(start(world, "a", &main(), None).await, RepairStarted::Started);
        assert_eq!((waiting(world).await, start(world, "a", &main(), None).await), (1, RepairStarted::Open));
        world.tamper("DELETE FROM tasks WHERE destination = 'main'").await;
        assert_eq!(start(world, "a", &main(), None).await, RepairStarted::Started);
        assert_eq!(waiting(world).await, 1);
        let open = catalogue.open_repair(&main(), &item("a")).await.unwrap().unwrap();
        assert_eq!((open.user.as_str(), open.is_automatic, open.reason.as_str()), ("ada", false, "content damaged"));
        assert_eq!((open.source, open.kept_as, open.ended), (None, None, None));

        let replica = "replica".parse().unwrap();
        assert!(catalogue.begin_repair(&main(), &item("a"), &replica, Some("aside-1")).await.unwrap());
        // A process that begins again has nothing to put aside any more.
        assert!(catalogue.begin_repair(&main(), &item("a"), &replica, None).await.unwrap());
        assert!(!catalogue.begin_repair(&main(), &item("b"), &replica, None).await.unwrap());
        catalogue.end_repair(&main(), &item("a"), RepairEnd::Repaired, "proven").await.unwrap();
        assert_eq!(catalogue.open_repair(&main(), &item("a")).await.unwrap(), None);
        assert!(!catalogue.begin_repair(&main(), &item("a"), &replica, None).await.unwrap());
        // It ends once.
        catalogue.end_repair(&main(), &item("a"), RepairEnd::Refused, "late").await.unwrap();

        assert_eq!(start(world, "a", &main(), None).await, RepairStarted::Started);
        let all = repairs_of(world, "a", &main()).await;
        let [second, first] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&second.ended, first.kept_as.as_deref()), (&None, Some("aside-1")));
        let (_, end, detail) = first.ended.clone().unwrap();
        assert_eq!((end, detail.as_str(), &first.source), (RepairEnd::Repaired, "proven", &Some(replica)));
        let page = catalogue.repairs("account", Some(second.id), 10).await.unwrap();
        assert_eq!((page.len(), page.last().map(|repair| repair.id)), (2, Some(first.id)));
        assert_eq!(catalogue.repairs("account", None, 1).await.unwrap(), std::slice::from_ref(second));
        assert_eq!(catalogue.repairs("other", None, 10).await.unwrap(), []);
    }

    async fn another_one_takes_the_place_of_one_that_no_worker_will_end_and_a_dropped_error_ends_it(world: World) {
        let (catalogue, world, store) = (&world.catalogue, &world, main());
        let task = subject("a", &store);
        assert_eq!(start(world, "a", &store, None).await, RepairStarted::Started);
        assert_eq!(begin(world, "a", &store, (None, "accept_change")).await, RepairStarted::Open);
        world.tamper("UPDATE tasks SET state = 'dead', queue = 'dead-letter', holder = NULL").await;
        assert_eq!(begin(world, "a", &store, (None, "accept_change")).await, RepairStarted::Started);
        let all = repairs_of(world, "a", &store).await;
        let [second, first] = &all[..] else { panic!("{all:?}") };
        assert_eq!((second.remedy.as_str(), second.content.as_deref()), ("accept_change", Some("{}")));
        assert_eq!((&second.ended, first.ended.as_ref().map(|ended| ended.1)), (&None, Some(RepairEnd::Dropped)));

        world
            .tamper(
                "INSERT INTO bit_errors (account, store, space, key, result, findings, detail, found, seen, times)
                SELECT account, store, space, key, 'failure', '', 'content damaged', 1, 1, 1 FROM repairs WHERE ended IS NULL",
            )
            .await;
        let error = catalogue.bit_error(&store, &item("a")).await.unwrap().unwrap();
        // A worker has it.
        assert!(!catalogue.drop_bit_error(&error, &task, "a test").await.unwrap());
        world.tamper("DELETE FROM tasks").await;
        // What is looked at tomorrow is looked at now that there is nothing to wait for; what is about another copy is
        // not.
        let others = [subject("b", &store), subject("a", &"replica".parse().unwrap())];
        put_off_findings(world, &[std::slice::from_ref(&task), &others[..]].concat()).await;
        assert_eq!(findings(world).await, [""; 0]);
        assert!(catalogue.drop_bit_error(&error, &task, "a test").await.unwrap());
        assert_eq!(findings(world).await, ["main/a"]);
        assert_eq!(catalogue.bit_error(&store, &item("a")).await.unwrap(), None);
        let newest = repairs_of(world, "a", &store).await.remove(0);
        let (_, end, detail) = newest.ended.unwrap();
        assert_eq!((end, detail.as_str()), (RepairEnd::Dropped, "a test"));
        assert!(!catalogue.drop_bit_error(&error, &task, "again").await.unwrap());
    }

    async fn an_operator_failures_and_a_wave_stop_what_starts_by_itself_until_an_operator_resumes_it(world: World) {
        let (catalogue, world, store) = (&world.catalogue, &world, main());
        assert!(catalogue.stop_repairs(None, "ada", "a test").await.unwrap());
        assert!(!catalogue.stop_repairs(None, "ada", "again").await.unwrap());
        assert_eq!(start(world, "a", &store, Some(9)).await, RepairStarted::Stopped);
        assert_eq!(start(world, "p", &store, None).await, RepairStarted::Started);
        // What was found meanwhile is not looked at before it would have been by itself, unless repairs are resumed.
        put_off_findings(world, &[subject("f", &store)]).await;
        assert!(catalogue.resume_repairs(None).await.unwrap());
        assert_eq!(findings(world).await, ["main/f"]);
        put_off_findings(world, &[subject("g", &store)]).await;
        assert!(!catalogue.resume_repairs(None).await.unwrap());
        assert_eq!(findings(world).await, [""; 0]);

        // Two that were refused, and one whose task is a dead letter.
        for name in ["a", "b", "c"] {
            assert_eq!(start(world, name, &store, Some(9)).await, RepairStarted::Started, "{name}");
        }
        for name in ["a", "b"] {
            catalogue.end_repair(&store, &item(name), RepairEnd::Refused, "a test").await.unwrap();
        }
        let replica: StoreName = "replica".parse().unwrap();
        assert_eq!(start(world, "d", &replica, Some(9)).await, RepairStarted::Started);
        world.tamper("UPDATE tasks SET state = 'dead', queue = 'dead-letter', holder = NULL").await;
        assert_eq!(start(world, "e", &store, Some(9)).await, RepairStarted::Stopped);
        let [stop] = catalogue.repair_stops().await.unwrap().try_into().unwrap();
        assert_eq!((stop.store, stop.reason.contains("3 automatic repairs")), (Some(store.clone()), true));
        assert_eq!(start(world, "e", &replica, Some(9)).await, RepairStarted::Started);
        assert!(catalogue.resume_repairs(Some(&store)).await.unwrap());
        assert_eq!(start(world, "e", &store, Some(9)).await, RepairStarted::Started);

        // One of the mill that no worker will end is none of the person who asks for the same.
        world.tamper("UPDATE tasks SET state = 'dead', queue = 'dead-letter', holder = NULL").await;
        assert_eq!(start(world, "d", &replica, None).await, RepairStarted::Started);
        assert!(!catalogue.open_repair(&replica, &item("d")).await.unwrap().unwrap().is_automatic);

        // What is wrong again soon is for an operator.
        catalogue.end_repair(&store, &item("e"), RepairEnd::Repaired, "a test").await.unwrap();
        assert_eq!(start(world, "e", &store, Some(9)).await, RepairStarted::Cooling);
        world.tamper("UPDATE repairs SET ended = ended - 604800001 WHERE outcome = 'repaired'").await;
        assert_eq!(start(world, "e", &store, Some(9)).await, RepairStarted::Started);

        for number in 0..30 {
            assert_eq!(start(world, &format!("wave-{number}"), &store, None).await, RepairStarted::Started);
        }
        world
            .tamper(
                "INSERT INTO bit_errors (account, store, space, key, result, findings, detail, found, seen, times)
                SELECT account, store, space, key, 'failure', '', 'a test', started, started, 1 FROM repairs
                WHERE ended IS NULL AND store = 'main'",
            )
            .await;
        assert_eq!(start(world, "f", &store, Some(9)).await, RepairStarted::Stopped);
        let [stop] = catalogue.repair_stops().await.unwrap().try_into().unwrap();
        assert!(stop.reason.contains("within 1 hour"), "{stop:?}");
        assert_eq!(start(world, "f", &replica, Some(9)).await, RepairStarted::Started);
    }

    async fn no_more_are_started_automatically_in_a_store_within_a_day_than_may_be(world: World) {
        let (names, world) = (["a", "b", "c", "d", "e"], &world);
        // An operator starts as many as they want, and these do not count.
        assert_eq!(start(world, "z", &main(), None).await, RepairStarted::Started);
        let store = main();
        let started = join_all(names.iter().map(|name| start(world, name, &store, Some(2)))).await;
        let number = |of| started.iter().filter(|started| **started == of).count();
        assert_eq!((number(RepairStarted::Started), number(RepairStarted::TooMany)), (2, 3), "{started:?}");
        assert_eq!(world.catalogue.automatic_repairs_today(&main()).await.unwrap(), 2);
        assert_eq!(waiting(world).await, 3);
        assert_eq!(start(world, "a", &"replica".parse().unwrap(), Some(2)).await, RepairStarted::Started);
        assert_eq!(start(world, "y", &main(), None).await, RepairStarted::Started);
        // What was started a day ago does not count any more, whether it has ended or not.
        world.tamper("UPDATE repairs SET started = started - 86400001 WHERE store = 'main'").await;
        assert_eq!(world.catalogue.automatic_repairs_today(&main()).await.unwrap(), 0);
        assert_eq!(start(world, "f", &main(), Some(2)).await, RepairStarted::Started);
    }
}
