//! Pauses of the mill's work.

use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_catalogue::tasks::{
    Decided, Decision, EndedTask, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskState, TaskSubject, Tasks,
};
use queuekeeper_store::{Key, StoreName};

use super::support::{LEASE, on_both};

const LOW: TaskQueue = TaskQueue::DuplicationLow;
const HIGH: TaskQueue = TaskQueue::DuplicationHigh;

fn store(name: &str) -> StoreName {
    name.parse().unwrap()
}

fn copy(queue: TaskQueue, key: &str, from: &str, to: &str) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Duplicate,
        account: "account".to_owned(),
        space: "space".parse().unwrap(),
        key: Key::new(key.as_bytes()).ok(),
        destination: Some(store(to)),
    };
    NewTask { queue, subject, source: Some(store(from)) }
}

async fn take(catalogue: &Catalogue, queue: TaskQueue) -> Vec<TakenTask> {
    let tasks = Tasks { queue, account: "account", kinds: &[TaskKind::Duplicate, TaskKind::Audit], limit: 10 };
    catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap()
}

async fn end(catalogue: &Catalogue, task: &TakenTask, outcome: TaskOutcome) {
    let ended = EndedTask { task: task.clone(), outcome, follow_ups: Vec::new(), checked: None };
    assert_eq!(catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

fn keys(tasks: &[TakenTask]) -> Vec<String> {
    let mut keys: Vec<_> = tasks.iter().map(|task| task.subject.key.as_ref().unwrap().to_string()).collect();
    keys.sort();
    keys
}

/// How many tasks of a queue wait for a worker, and how many are paused.
async fn figures(catalogue: &Catalogue, queue: TaskQueue) -> (u64, u64) {
    let figures = catalogue.task_figures().await.unwrap();
    figures.iter().find(|of| of.queue == queue).map(|of| (of.waiting, of.paused)).unwrap()
}

on_both! {
    async fn what_a_pause_stops_is_not_begun_and_goes_on_as_it_was_once_the_pause_ends(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[copy(LOW, "a", "main", "replica")]).await.unwrap();
        for outcome in [TaskOutcome::Later(Duration::ZERO), TaskOutcome::Failed("once".to_owned())] {
            end(catalogue, &take(catalogue, LOW).await[0], outcome).await;
        }
        // That waits for a minute.
        catalogue.put_tasks(&[copy(LOW, "under way", "main", "replica")]).await.unwrap();
        let under_way = take(catalogue, LOW).await;
        assert_eq!(keys(&under_way), ["under way"]);
        world.tamper("UPDATE tasks SET visible = 0 WHERE errors <> '[]'").await;

        let replica = PauseScope::Store(store("replica"));
        assert!(catalogue.pause(&replica, "ada", "it moves").await.unwrap());
        assert!(!catalogue.pause(&replica, "bob", "again").await.unwrap());
        let mut look = copy(LOW, "looked at", "main", "replica");
        (look.subject.kind, look.source) = (TaskKind::Audit, None);
        let others = [copy(LOW, "b", "main", "other"), copy(LOW, "c", "replica", "main"), look];
        catalogue.put_tasks(&others).await.unwrap();
        // What reads from it is stopped, too; what is only looked at in the catalogue is not.
        let taken = take(catalogue, LOW).await;
        assert_eq!(keys(&taken), ["b", "looked at"]);
        assert_eq!((take(catalogue, LOW).await, figures(catalogue, LOW).await), (Vec::new(), (3, 2)));
        let all = Tasks { queue: LOW, account: "account", kinds: &[TaskKind::Duplicate], limit: 10 };
        assert!(catalogue.next_task(&all).await.unwrap().is_some_and(|next| next > LEASE / 2));

        // Neither a request nor a decision lets it go on.
        assert_eq!(catalogue.put_tasks(&[copy(HIGH, "a", "main", "replica")]).await.unwrap(), 0);
        assert_eq!((take(catalogue, HIGH).await, figures(catalogue, HIGH).await), (Vec::new(), (0, 1)));
        let key = Key::new(b"a".as_slice()).unwrap();
        let open = catalogue.tasks_of_item("account", &"space".parse().unwrap(), &key).await.unwrap();
        assert_eq!((open[0].state, open[0].visible, open[0].attempts), (TaskState::Paused, None, 1));
        let decision = Decision { what: Decided::Drop, of: &TaskState::ALL, user: "ada", reason: "no" };
        assert!(!catalogue.decide_task(open[0].task.id, &decision).await.unwrap());
        // What is under way ends.
        end(catalogue, &under_way[0], TaskOutcome::Done).await;
        assert_eq!(catalogue.check().await.unwrap(), []);

        let in_force = catalogue.pauses().await.unwrap();
        assert_eq!((in_force.len(), &in_force[0].scope), (1, &replica));
        assert_eq!((in_force[0].user.as_str(), in_force[0].reason.as_str()), ("ada", "it moves"));
        let account = PauseScope::Account("account".to_owned());
        assert_eq!(catalogue.resume(&account).await.unwrap(), None);
        assert_eq!(catalogue.resume(&replica).await.unwrap().as_ref(), in_force.first());
        assert_eq!(catalogue.resume(&replica).await.unwrap(), None);
        let again = take(catalogue, HIGH).await;
        assert_eq!((keys(&again), again[0].attempts, again[0].rounds), (vec!["a".to_owned()], 2, 1));
        assert_eq!(again[0].errors.len(), 1);
        assert_eq!(keys(&take(catalogue, LOW).await), ["c"]);
        assert_eq!((catalogue.check().await.unwrap(), catalogue.pauses().await.unwrap()), (Vec::new(), Vec::new()));
    }

    async fn of_two_pauses_each_stops_what_it_is_of_until_it_ends_itself(world: World) {
        let catalogue = &world.catalogue;
        let of_account = PauseScope::Account("account".to_owned());
        let in_replica = PauseScope::AccountIn("account".to_owned(), store("replica"));
        for scope in [&of_account, &in_replica, &PauseScope::AccountIn("other".to_owned(), store("main"))] {
            assert!(catalogue.pause(scope, "ada", "both").await.unwrap());
        }
        catalogue.put_tasks(&[copy(LOW, "a", "main", "replica"), copy(LOW, "b", "main", "other")]).await.unwrap();
        assert_eq!(take(catalogue, LOW).await, []);
        assert!(catalogue.resume(&of_account).await.unwrap().is_some());
        assert_eq!(keys(&take(catalogue, LOW).await), ["b"]);
        assert!(catalogue.resume(&in_replica).await.unwrap().is_some());
        assert_eq!(keys(&take(catalogue, LOW).await), ["a"]);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_a_process_left_paused_that_died_while_it_ended_the_pause_goes_on_by_others(world: World) {
        let catalogue = &world.catalogue;
        let replica = PauseScope::Store(store("replica"));
        catalogue.pause(&replica, "ada", "it moves").await.unwrap();
        let many: Vec<_> = (0..1500).map(|number| copy(LOW, &number.to_string(), "main", "replica")).collect();
        catalogue.put_tasks(&many).await.unwrap();
        assert_eq!((take(catalogue, LOW).await, figures(catalogue, LOW).await), (Vec::new(), (0, 1500)));
        assert_eq!(catalogue.release_paused().await.unwrap(), 0);
        world.tamper("UPDATE mill_pauses SET is_ended = TRUE").await;
        assert_eq!(catalogue.release_paused().await.unwrap(), 1000);
        // A new pause of the same has tasks of its own.
        assert!(catalogue.pause(&replica, "ada", "again").await.unwrap());
        assert_eq!((take(catalogue, LOW).await, figures(catalogue, LOW).await), (Vec::new(), (0, 1500)));
        assert_eq!(catalogue.release_paused().await.unwrap(), 500);
        assert_eq!(catalogue.release_paused().await.unwrap(), 0);
        assert!(catalogue.resume(&replica).await.unwrap().is_some());
        assert_eq!(figures(catalogue, LOW).await, (1500, 0));
        assert_eq!(world.number("SELECT COUNT(*) FROM mill_pauses").await, 0);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn no_task_stays_behind_where_pauses_begin_and_end_while_tasks_are_taken(world: World) {
        let catalogue = &world.catalogue;
        let many: Vec<_> = (0..100).map(|number| copy(LOW, &number.to_string(), "main", "replica")).collect();
        catalogue.put_tasks(&many).await.unwrap();
        let work = async || {
            for _ in 0..40 {
                for task in take(catalogue, LOW).await {
                    end(catalogue, &task, TaskOutcome::GivenBack).await;
                }
            }
        };
        let pause = async |scope: PauseScope| {
            for _ in 0..40 {
                catalogue.pause(&scope, "ada", "often").await.unwrap();
                tokio::task::yield_now().await;
                catalogue.resume(&scope).await.unwrap();
            }
        };
        let account = PauseScope::Account("account".to_owned());
        tokio::join!(work(), work(), work(), pause(PauseScope::Store(store("replica"))), pause(account));
        while catalogue.release_paused().await.unwrap() > 0 {}
        assert_eq!(figures(catalogue, LOW).await, (100, 0));
        assert_eq!(catalogue.check().await.unwrap(), []);
    }
}
