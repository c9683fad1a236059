//! The mill's tasks.

use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::{
    Decided, Decision, EndedTask, MillProcess, NewTask, QueueFigures, TakenTask, TaskKind, TaskOutcome, TaskQueue,
    TaskState, TaskSubject, Tasks,
};
use queuekeeper_store::Key;

use super::support::{LEASE, World, on_both};

fn subject(key: &str) -> TaskSubject {
    TaskSubject {
        kind: TaskKind::Duplicate,
        account: "account".to_owned(),
        space: "space".parse().unwrap(),
        key: Key::new(key.as_bytes()).ok(),
        destination: Some("replica".parse().unwrap()),
    }
}

fn request(queue: TaskQueue, key: &str) -> NewTask {
    NewTask { queue, subject: subject(key), source: Some("main".parse().unwrap()) }
}

async fn take(catalogue: &Catalogue, queue: TaskQueue, limit: u32) -> Vec<TakenTask> {
    let tasks = Tasks { queue, account: "account", kinds: &[TaskKind::Duplicate, TaskKind::Noop], limit };
    catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap()
}

async fn end(catalogue: &Catalogue, task: &TakenTask, outcome: TaskOutcome) -> bool {
    let ended = EndedTask { task: task.clone(), outcome, follow_ups: Vec::new(), checked: None };
    catalogue.end_tasks(&[ended]).await.unwrap()[0]
}

async fn decide(catalogue: &Catalogue, id: u64, what: Decided) -> bool {
    catalogue.decide_task(id, &Decision { what, of: &TaskState::ALL, user: "ada", reason: "looked at" }).await.unwrap()
}

fn keys(tasks: &[TakenTask]) -> Vec<String> {
    tasks.iter().map(|task| task.subject.key.as_ref().map_or_else(String::new, ToString::to_string)).collect()
}

/// The queue that has tasks, with waiting, taken, held and dead ones; none where no queue has any.
async fn figures(catalogue: &Catalogue) -> Vec<(TaskQueue, [u64; 4])> {
    let numbers = |of: &QueueFigures| [of.waiting, of.taken, of.held, of.dead];
    let figures = catalogue.task_figures().await.unwrap();
    figures.iter().map(|of| (of.queue, numbers(of))).filter(|(_, numbers)| *numbers != [0; 4]).collect()
}

/// Lets all times of waiting and of leases end.
async fn wait_out(world: &World) {
    world.tamper("UPDATE tasks SET visible = 0 WHERE state = 'waiting'").await;
}

const LOW: TaskQueue = TaskQueue::DuplicationLow;
const HIGH: TaskQueue = TaskQueue::DuplicationHigh;

on_both! {
    async fn a_task_is_open_once_and_is_done_again_where_it_was_requested_meanwhile(world: World) {
        let catalogue = &world.catalogue;
        let both = [request(LOW, "a"), request(LOW, "b"), request(HIGH, "a")];
        assert_eq!(catalogue.put_tasks(&both).await.unwrap(), 2);
        // The more urgent of two requests decides, whichever comes first.
        assert_eq!(catalogue.put_tasks(&[request(LOW, "a"), request(LOW, "b")]).await.unwrap(), 0);
        assert_eq!(figures(catalogue).await, [(HIGH, [1, 0, 0, 0]), (LOW, [1, 0, 0, 0])]);
        assert_eq!(catalogue.put_tasks(&[request(HIGH, "b")]).await.unwrap(), 0);
        let taken = take(catalogue, HIGH, 10).await;
        assert_eq!((keys(&taken), taken[0].attempts, taken[0].worker.as_str()), (vec!["a".into(), "b".into()], 1, "worker-1"));
        assert_eq!(taken[0].source.as_ref().map(ToString::to_string).as_deref(), Some("main"));
        assert_eq!(take(catalogue, HIGH, 10).await, []);
        assert_eq!(figures(catalogue).await, [(HIGH, [2, 2, 0, 0])]);
        catalogue.put_tasks(&[request(LOW, "a")]).await.unwrap();
        assert!(end(catalogue, &taken[0], TaskOutcome::Done).await && end(catalogue, &taken[1], TaskOutcome::Done).await);
        assert!(!end(catalogue, &taken[1], TaskOutcome::Done).await);
        let again = take(catalogue, HIGH, 10).await;
        assert_eq!((keys(&again), again[0].attempts), (vec!["a".to_owned()], 1));
        assert!(end(catalogue, &again[0], TaskOutcome::Done).await);
        assert_eq!(figures(catalogue).await, []);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn a_task_that_fails_waits_and_the_third_time_it_is_a_dead_letter_with_its_history(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[request(LOW, "a")]).await.unwrap();
        for (attempt, minutes) in [(1, 1), (2, 2)] {
            let taken = take(catalogue, LOW, 1).await;
            assert_eq!(taken[0].attempts, attempt);
            assert!(end(catalogue, &taken[0], TaskOutcome::Failed(format!("failure {attempt}"))).await);
            // It has its minutes from a time that lies between two looks at the clock.
            let wait = world.number("SELECT MAX(visible) FROM tasks").await - taken[0].created.as_millisecond();
            assert!((minutes * 60_000..minutes * 60_000 + 30_000).contains(&wait), "{wait}");
            assert_eq!(take(catalogue, LOW, 1).await, []);
            wait_out(&world).await;
        }
        let taken = take(catalogue, LOW, 1).await;
        assert!(end(catalogue, &taken[0], TaskOutcome::Failed("failure 3\n".to_owned())).await);
        assert_eq!(figures(catalogue).await, [(TaskQueue::DeadLetter, [0, 0, 0, 1])]);
        let dead = catalogue.dead_letters("account", 0, 10).await.unwrap();
        let errors: Vec<_> = dead[0].errors.iter().map(|error| (error.worker.as_str(), error.error.as_str())).collect();
        assert_eq!(errors, [("worker-1", "failure 1"), ("worker-1", "failure 2"), ("worker-1", "failure 3")]);
        assert_eq!((dead[0].home, &dead[0].subject), (LOW, &subject("a")));
        assert_eq!(catalogue.dead_letters("account", dead[0].id, 10).await.unwrap(), []);

        // An operator may let it be tried again, and so does a new request.
        assert!(decide(catalogue, dead[0].id, Decided::Retry).await && !decide(catalogue, dead[0].id, Decided::Retry).await);
        for attempt in 1..=3 {
            wait_out(&world).await;
            let taken = take(catalogue, LOW, 1).await;
            assert_eq!((taken[0].attempts, taken[0].errors.len()), (attempt, 2 + attempt as usize));
            assert!(end(catalogue, &taken[0], TaskOutcome::Failed("again".to_owned())).await);
        }
        assert_eq!(catalogue.put_tasks(&[request(HIGH, "a")]).await.unwrap(), 0);
        assert_eq!(figures(catalogue).await, [(HIGH, [1, 0, 0, 0])]);
        assert_eq!(take(catalogue, HIGH, 1).await[0].errors.len(), 6);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_ends_its_workers_is_a_dead_letter_too_and_a_lost_lease_writes_nothing(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[request(LOW, "a")]).await.unwrap();
        let first = take(catalogue, LOW, 1).await.remove(0);
        assert!(catalogue.extend_task(&first, Duration::ZERO).await.unwrap());
        wait_out(&world).await;
        // Its lease has ended, and nobody has it: it is still the worker's.
        assert!(catalogue.extend_task(&first, Duration::ZERO).await.unwrap());
        wait_out(&world).await;
        let second = take(catalogue, LOW, 1).await.remove(0);
        assert_eq!(second.attempts, 2);
        assert!(!catalogue.extend_task(&first, LEASE).await.unwrap());
        for outcome in [
            TaskOutcome::Done, TaskOutcome::Failed("late".to_owned()), TaskOutcome::Later(LEASE), TaskOutcome::PutOff(LEASE), TaskOutcome::GivenBack, TaskOutcome::Held("late".to_owned()),
        ] {
            let ended = EndedTask { task: first.clone(), outcome, follow_ups: vec![request(HIGH, "b")], checked: None };
            assert_eq!(catalogue.end_tasks(&[ended]).await.unwrap(), [false]);
        }
        assert_eq!(figures(catalogue).await, [(LOW, [1, 1, 0, 0])]);
        // One who stops gives it back as it was.
        assert!(end(catalogue, &second, TaskOutcome::GivenBack).await);
        for attempts in [2, 3] {
            wait_out(&world).await;
            assert_eq!(take(catalogue, LOW, 1).await[0].attempts, attempts);
        }
        wait_out(&world).await;
        assert_eq!(take(catalogue, LOW, 1).await, []);
        let dead = catalogue.dead_letters("account", 0, 10).await.unwrap();
        assert!(dead[0].errors[0].error.contains("its worker ended"), "{dead:?}");
        assert!(decide(catalogue, dead[0].id, Decided::Drop).await && !decide(catalogue, dead[0].id, Decided::Drop).await);
        let record = "SELECT decision || ' ' || user_name || ' ' || reason || ' ' || kind || ' ' || destination FROM decisions";
        assert_eq!(world.look(record).await, ["drop ada looked at DUP replica"]);
        assert_eq!(figures(catalogue).await, []);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_is_put_off_or_held_is_no_failure_and_what_follows_comes_with_the_end(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[request(LOW, "a"), request(LOW, "b")]).await.unwrap();
        let taken = take(catalogue, LOW, 10).await;
        assert!(end(catalogue, &taken[0], TaskOutcome::Later(LEASE)).await);
        assert!(end(catalogue, &taken[1], TaskOutcome::Held("it would delete 101 items".to_owned())).await);
        assert_eq!(take(catalogue, LOW, 10).await, []);
        let replica = "replica".parse().unwrap();
        let held = catalogue.held_tasks("account", &replica, 0, 10).await.unwrap();
        assert_eq!((held.len(), held[0].errors[0].error.as_str()), (1, "it would delete 101 items"));
        // A new request does not release it.
        catalogue.put_tasks(&[request(HIGH, "b")]).await.unwrap();
        assert_eq!(figures(catalogue).await, [(LOW, [1, 0, 1, 0])]);
        assert!(decide(catalogue, held[0].id, Decided::Retry).await);
        assert!(!decide(catalogue, taken[0].id, Decided::Drop).await);
        wait_out(&world).await;
        let again = take(catalogue, LOW, 10).await;
        assert_eq!(again.iter().map(|task| (task.attempts, task.rounds, task.is_released)).collect::<Vec<_>>(), [(1, 1, false), (1, 0, true)]);
        let follow_ups = vec![request(HIGH, "c"), request(LOW, "b")];
        let ended = again.iter().map(|task| EndedTask { task: task.clone(), outcome: TaskOutcome::Done, follow_ups: follow_ups.clone(), checked: None });
        // The second one ends in the transaction that requests it again: it is open afterwards.
        assert_eq!(catalogue.end_tasks(&ended.collect::<Vec<_>>()).await.unwrap(), [true, true]);
        assert_eq!(figures(catalogue).await, [(HIGH, [1, 0, 0, 0]), (LOW, [1, 0, 0, 0])]);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_is_put_off_is_looked_at_once_it_is_requested_again_and_a_failure_is_waited_out(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[request(LOW, "a"), request(LOW, "b"), request(LOW, "c")]).await.unwrap();
        let taken = take(catalogue, LOW, 10).await;
        // The last one is requested while its worker decides to wait.
        catalogue.put_tasks(&[request(LOW, "c")]).await.unwrap();
        for (task, outcome) in taken.iter().zip([TaskOutcome::PutOff(LEASE), TaskOutcome::Failed("no".to_owned()), TaskOutcome::PutOff(LEASE)]) {
            assert!(end(catalogue, task, outcome).await);
        }
        assert_eq!(keys(&take(catalogue, LOW, 10).await), ["c"]);
        catalogue.put_tasks(&[request(LOW, "a"), request(LOW, "b")]).await.unwrap();
        let taken = take(catalogue, LOW, 10).await;
        assert_eq!((keys(&taken), taken[0].attempts, taken[0].rounds), (vec!["a".to_owned()], 1, 0));
    }

    async fn people_see_what_is_next_who_works_what_was_done_and_what_was_decided(world: World) {
        let catalogue = &world.catalogue;
        catalogue.put_tasks(&[request(LOW, "a"), request(LOW, "b"), request(LOW, "c")]).await.unwrap();
        let key = Key::new(b"b".as_slice()).unwrap();
        let space = "space".parse().unwrap();
        assert!(catalogue.oldest_task(LOW, &["other".to_owned(), "account".to_owned()]).await.unwrap().is_some());
        assert_eq!(catalogue.oldest_task(HIGH, &["account".to_owned()]).await.unwrap(), None);
        let taken = take(catalogue, LOW, 10).await;
        assert_eq!(catalogue.oldest_task(LOW, &["account".to_owned()]).await.unwrap(), None);
        assert_eq!(catalogue.tasks_in_progress().await.unwrap(), [("worker-1".to_owned(), 3)].into());
        let open = catalogue.tasks_of_item("account", &space, &key).await.unwrap();
        assert_eq!((open[0].state, open[0].worker.as_deref(), open[0].attempts), (TaskState::Waiting, Some("worker-1"), 1));
        assert!(end(catalogue, &taken[0], TaskOutcome::Done).await);
        assert!(end(catalogue, &taken[1], TaskOutcome::Held("too many".to_owned())).await);
        assert_eq!(catalogue.done_tasks(10).await.unwrap(), [].into());
        while catalogue.fold().await.unwrap() > 0 {}
        assert_eq!(catalogue.done_tasks(10).await.unwrap(), [(LOW, 1)].into());
        let open = catalogue.tasks_of_item("account", &space, &key).await.unwrap();
        assert_eq!((open[0].state, open[0].visible), (TaskState::Held, None));
        let of_dead = Decision { what: Decided::Drop, of: &[TaskState::Dead], user: "ada", reason: "wrong" };
        assert!(!catalogue.decide_task(open[0].task.id, &of_dead).await.unwrap());
        assert!(decide(catalogue, open[0].task.id, Decided::Drop).await);
        let decided = catalogue.decisions(None, 10).await.unwrap();
        assert_eq!((decided.len(), decided[0].user.as_str(), decided[0].decision.as_str()), (1, "ada", "drop"));
        assert_eq!(catalogue.decisions_of_item("account", &space, &key, 10).await.unwrap(), decided);

        let process = MillProcess { id: uuid::Uuid::now_v7(), name: "host:1".to_owned(), workers: 3, kinds: vec![TaskKind::Noop] };
        catalogue.report_process(&process).await.unwrap();
        catalogue.report_process(&process).await.unwrap();
        let seen = catalogue.mill_processes(LEASE).await.unwrap();
        assert_eq!((seen.len(), &seen[0].process), (1, &process));
        world.tamper("UPDATE mill_processes SET seen = 0").await;
        assert_eq!(catalogue.mill_processes(LEASE).await.unwrap(), []);
        catalogue.forget_process(process.id).await.unwrap();
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn tasks_of_other_accounts_and_of_unknown_kinds_are_left(world: World) {
        let catalogue = &world.catalogue;
        let mut other = request(LOW, "a");
        "other".clone_into(&mut other.subject.account);
        let mut report = request(LOW, "a");
        (report.subject.kind, report.subject.key, report.subject.destination) = (TaskKind::BitReport, None, None);
        catalogue.put_tasks(&[other, report, request(LOW, "z")]).await.unwrap();
        assert_eq!(keys(&take(catalogue, LOW, 10).await), ["z"]);
        let tasks = Tasks { queue: LOW, account: "account", kinds: &[TaskKind::BitReport], limit: 10 };
        let taken = catalogue.take_tasks(&tasks, "worker-2", LEASE).await.unwrap();
        assert_eq!((taken.len(), &taken[0].subject.key, &taken[0].subject.destination), (1, &None, &None));
        let none = Tasks { kinds: &[], ..tasks };
        assert_eq!(catalogue.take_tasks(&none, "worker-2", LEASE).await.unwrap(), []);
    }

    async fn many_workers_take_and_end_each_task_once_while_others_request_it(world: World) {
        const TASKS: u32 = 300;
        let requests: Vec<_> = (0..TASKS).map(|number| request(LOW, &format!("{number:03}"))).collect();
        world.catalogue.put_tasks(&requests).await.unwrap();
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (catalogue, requests) = (world.catalogue.clone(), requests.clone());
            workers.spawn(async move {
                let mut done = 0u64;
                loop {
                    let taken = take(&catalogue, LOW, 10).await;
                    if taken.is_empty() {
                        return done;
                    }
                    if done == 0 {
                        // In the other order than that in which they were requested first.
                        catalogue.put_tasks(&requests.iter().rev().take(20).cloned().collect::<Vec<_>>()).await.unwrap();
                    }
                    let ended: Vec<_> = taken
                        .into_iter()
                        .map(|task| EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: None })
                        .collect();
                    let ours = catalogue.end_tasks(&ended).await.unwrap();
                    assert!(ours.iter().all(|ours| *ours));
                    done += ours.len() as u64;
                }
            });
        }
        let done: u64 = workers.join_all().await.iter().sum();
        assert!(done >= u64::from(TASKS), "{done}");
        assert_eq!(figures(&world.catalogue).await, []);
        while world.catalogue.fold().await.unwrap() > 0 {}
        assert_eq!((figures(&world.catalogue).await, world.number("SELECT COUNT(*) FROM counter_deltas").await), (vec![], 0));
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }
}
