//! Bit integrity: what checks found, and the runs that they belong to.

use std::time::Duration;

use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::bit::{
    CheckedAmount, CheckedItem, CheckedPart, Evidence, NewPage, NewReport, NewRequestedCheck, Observed, PageEnd,
    Reports, UnsuccessfulReports, Wrong,
};
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::loops::{Advance, Lead, Morsel};
use queuekeeper_catalogue::proofs::CheckRules;
use queuekeeper_catalogue::tasks::{
    EndedTask, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks,
};
use queuekeeper_store::audit::{AuditSink as _, Change};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, StoreName};
use uuid::Uuid;

use super::support::{LEASE, World, digests, done, intent, on_both};

fn key(key: &str) -> Key {
    Key::new(key.as_bytes()).unwrap()
}

fn item(name: &str) -> Item {
    Item::new("space-a".parse().unwrap(), key(name))
}

fn main() -> StoreName {
    "main".parse().unwrap()
}

fn morsel() -> Morsel {
    Morsel {
        account: "account".to_owned(),
        space: "space-a".parse().unwrap(),
        source: main(),
        destination: main(),
        marker: None,
        error: None,
        items: 3,
        scanned: 0,
    }
}

/// A loop of one space that has begun.
async fn begin(world: &World) -> Lead {
    let (catalogue, holder) = (&world.catalogue, Uuid::now_v7());
    let lead = catalogue.lead("bit", holder, LEASE).await.unwrap().unwrap();
    assert!(catalogue.begin_loop(&lead, &[morsel()], LEASE).await.unwrap());
    catalogue.lead("bit", holder, LEASE).await.unwrap().unwrap()
}

async fn write(world: &World, name: &str, number: u8) {
    let intent = intent(name.as_bytes());
    world.catalogue.begin(&intent, LEASE).await.unwrap();
    world.catalogue.settle(&intent, &done(Change::Add, number)).await.unwrap();
}

async fn take(world: &World, kind: TaskKind) -> TakenTask {
    let kinds = [kind];
    let tasks = Tasks { queue: TaskQueue::BitIntegrity, account: "account", kinds: &kinds, limit: 1 };
    world.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0)
}

fn request(name: &str) -> NewTask {
    let subject = TaskSubject {
        kind: TaskKind::Bit,
        account: "account".to_owned(),
        space: morsel().space,
        key: Some(key(name)),
        destination: Some(main()),
    };
    NewTask { queue: TaskQueue::BitIntegrity, subject, source: None }
}

async fn checked(world: &World, name: &str, wrong: Option<Wrong>) -> CheckedItem {
    let records = world.catalogue.records_of_item(&main(), &item(name)).await.unwrap();
    CheckedItem {
        item: item(name),
        id: records.as_ref().map(|records| records.id),
        bytes: 7,
        result: if wrong.is_some() { "failure" } else { "success" },
        proof: wrong.is_none().then_some("read"),
        seq: records.and_then(|records| records.index).map(|index| index.seq),
        evidence: Evidence { content: Some("{\"size\":7}".to_owned()), ..Evidence::default() },
        wrong,
        is_missing: false,
        unread: None,
    }
}

fn wrong(finding: &'static str, is_observed: bool) -> Wrong {
    let observed = is_observed.then(|| Observed { user: "mill".to_owned(), size: Some(7), digests: digests(7) });
    Wrong { findings: vec![finding], detail: "it is\nwrong".to_owned(), observed }
}

fn part(run: Option<u64>, page: Option<PageEnd>, items: Vec<CheckedItem>) -> CheckedPart {
    CheckedPart { run, page, ..CheckedPart::of("account".to_owned(), main(), items) }
}

async fn end(world: &World, task: TakenTask, checked: CheckedPart) {
    let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked: Some(checked) };
    assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

async fn store_report(world: &World, run: u64, result: &str, is_complete: bool) {
    let run = world.catalogue.bit_run(run).await.unwrap().unwrap();
    let report = NewReport { result, place: "main/x-duracloud-admin/report", coverage: "{}", is_complete, mail: None };
    world.catalogue.report_bit_run(&run, &report, |number, _| number.to_string()).await.unwrap();
}

async fn proof(world: &World, name: &str) -> Option<String> {
    let copy = world.catalogue.copy(&main(), &item(name)).await.unwrap();
    copy.and_then(|copy| copy.proven).map(|(_, proof)| proof)
}

async fn figure(world: &World, counter: Counter, scope: &str) -> i64 {
    world.catalogue.counters().await.unwrap().get(&(counter, scope.to_owned())).copied().unwrap_or(0)
}

on_both! {
    async fn a_run_is_cut_into_pages_and_ends_when_all_of_them_are_checked(world: World) {
        for (name, number) in [("a", 7), ("b", 7), ("c", 7)] {
            write(&world, name, number).await;
        }
        let lead = begin(&world).await;
        let pages = [
            NewPage { behind: None, last: Some(key("b")), items: 2, bytes: 14 },
            NewPage { behind: Some(key("b")), last: None, items: 1, bytes: 7 },
        ];
        let catalogue = &world.catalogue;
        let stale = Lead { epoch: lead.epoch + 1, ..lead.clone() };
        assert!(!catalogue.advance_bit(&stale, &morsel(), (&Advance::Done(3), "read"), &pages).await.unwrap());
        assert!(catalogue.advance_bit(&lead, &morsel(), (&Advance::To(key("b"), 2), "read"), &pages[..1]).await.unwrap());
        assert!(catalogue.advance_bit(&lead, &morsel(), (&Advance::Done(1), "read"), &pages[1..]).await.unwrap());
        let run = catalogue.open_bit_runs().await.unwrap().remove(0);
        assert_eq!((run.number, run.policy.as_str(), run.listed.is_some(), run.has_open_checks), (1, "read", true, true));
        assert!(!catalogue.end_bit_run(&lead, run.id, Duration::ZERO, vec![]).await.unwrap(), "its checks are open");
        assert_eq!(catalogue.bit_pages_left(run.id).await.unwrap(), (2, 3, 21));

        // The first page ends behind its first item; what is left of it is a page, up to the same key.
        let task = take(&world, TaskKind::BitPage).await;
        let behind = task.subject.key.clone();
        let page = catalogue.bit_page("account", &main(), &morsel().space, behind.as_ref()).await.unwrap().unwrap();
        assert_eq!((page.run, page.last, page.number), (run.id, Some(key("b")), 1));
        let ended = PageEnd { run: run.id, is_late: false, behind, rest: Some(key("a")), listed: (1, 7), alone: Vec::new() };
        let success = checked(&world, "a", None).await;
        end(&world, task, part(Some(run.id), Some(ended), vec![success])).await;
        assert_eq!(catalogue.bit_pages_left(run.id).await.unwrap(), (2, 2, 14));
        assert_eq!(proof(&world, "a").await.as_deref(), Some("read"));
        assert_eq!(proof(&world, "b").await, None);
        for (behind, name) in [(Some("b"), "c"), (Some("a"), "b")] {
            let task = take(&world, TaskKind::BitPage).await;
            let behind = behind.map(key);
            assert_eq!(task.subject.key, behind);
            let ended = PageEnd { run: run.id, is_late: false, behind, rest: None, listed: (1, 7), alone: Vec::new() };
            let success = checked(&world, name, None).await;
            end(&world, task, part(Some(run.id), Some(ended), vec![success])).await;
        }
        assert_eq!(catalogue.bit_pages_left(run.id).await.unwrap().0, 0);
        assert!(!catalogue.end_bit_run(&stale, run.id, Duration::ZERO, vec![]).await.unwrap());
        assert!(catalogue.end_bit_run(&lead, run.id, Duration::ZERO, vec![]).await.unwrap());
        assert_eq!(catalogue.open_bit_runs().await.unwrap(), []);
        for _folded in 0..2 {
            let counts = catalogue.bit_counts(run.id).await.unwrap();
            assert_eq!((counts.len(), counts[0].result.as_str(), counts[0].items, counts[0].bytes), (1, "success", 3, 21));
            catalogue.fold().await.unwrap();
        }
        assert_eq!(figure(&world, Counter::BitResults, "success").await, 3);
        assert_eq!(world.number("SELECT COUNT(*) FROM bit_deltas").await, 0);
        // What was checked in these minutes: a minute may have ended between two of them.
        let lately = catalogue.checked_lately(lead.number, 60).await.unwrap();
        assert_eq!(lately, [CheckedAmount { policy: "read".to_owned(), items: 3, bytes: 21 }]);
        assert_eq!(catalogue.checked_lately(lead.number + 1, 60).await.unwrap(), []);
        assert_eq!(catalogue.checks_of_run(run.id, "success", 0, 10).await.unwrap().len(), 3);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn what_is_wrong_stays_open_until_the_copy_is_proven_again_and_is_observed_once(world: World) {
        write(&world, "a", 7).await;
        let catalogue = &world.catalogue;
        for (times, finding) in [(1, "changed_outside"), (2, "changed_outside"), (3, "content_damaged")] {
            catalogue.put_tasks(&[request("a")]).await.unwrap();
            let task = take(&world, TaskKind::Bit).await;
            let failure = checked(&world, "a", Some(wrong(finding, finding == "changed_outside"))).await;
            end(&world, task, part(None, None, vec![failure])).await;
            let error = catalogue.bit_error(&main(), &item("a")).await.unwrap().unwrap();
            assert_eq!((error.times, error.findings.as_slice()), (times, &[finding.to_owned()][..]));
            assert_eq!(error.detail, "it is wrong");
        }
        // One that no record has gets a number of its own.
        catalogue.put_tasks(&[request("new")]).await.unwrap();
        let task = take(&world, TaskKind::Bit).await;
        let failure = checked(&world, "new", Some(wrong("not_recorded", true))).await;
        end(&world, task, part(None, None, vec![failure])).await;
        assert_eq!(catalogue.bit_errors("account", 0, 10).await.unwrap().len(), 2);
        assert_eq!(catalogue.bit_error_keys(&main(), &morsel().space, (None, Some(&key("b"))), 10).await.unwrap(), [key("a")]);
        assert_eq!(figure(&world, Counter::BitErrors, "account/main").await, 2);
        let observed = catalogue.events(&Events::Observed, None, 10).await.unwrap();
        assert_eq!(observed.len(), 2, "{observed:?}");
        assert_eq!(proof(&world, "a").await, None);

        catalogue.put_tasks(&[request("a")]).await.unwrap();
        let task = take(&world, TaskKind::Bit).await;
        let success = checked(&world, "a", None).await;
        end(&world, task, part(None, None, vec![success])).await;
        assert_eq!(catalogue.bit_error(&main(), &item("a")).await.unwrap(), None);
        assert_eq!(figure(&world, Counter::BitErrors, "account/main").await, 1);
        assert_eq!(proof(&world, "a").await.as_deref(), Some("read"));
        let history = catalogue.checks_of_item(&main(), &item("a"), None, 10).await.unwrap();
        let results: Vec<_> = history.iter().map(|check| check.result.as_str()).collect();
        assert_eq!(results, ["success", "failure", "failure", "failure"]);
        assert_eq!(catalogue.check().await.unwrap(), []);

        // What is gone by right has nothing wrong any more.
        catalogue.put_tasks(&[request("new")]).await.unwrap();
        let task = take(&world, TaskKind::Bit).await;
        let nothing = CheckedItem { result: "nothing", ..checked(&world, "new", None).await };
        end(&world, task, part(None, None, vec![nothing])).await;
        assert_eq!(figure(&world, Counter::BitErrors, "account/main").await, 0);
        assert_eq!(catalogue.checks_of_item(&main(), &item("new"), None, 10).await.unwrap().len(), 1);
        assert_eq!(catalogue.check().await.unwrap(), []);

        world.tamper("UPDATE bit_errors SET ended = NULL, outcome = NULL WHERE result = 'failure' AND findings = 'not_recorded'").await;
        world.tamper("DELETE FROM bit_log WHERE result = 'failure'").await;
        let findings = catalogue.check().await.unwrap();
        assert!(findings.iter().any(|finding| finding.what.contains("that is not in the log of checks: main/space-a/new")), "{findings:?}");
        assert!(findings.iter().any(|finding| finding.what.contains("counter bit_errors of \"account/main\" is 0, but there are 1")), "{findings:?}");
    }

    async fn what_was_changed_meanwhile_is_not_proven_and_a_change_ends_a_proof(world: World) {
        write(&world, "a", 7).await;
        let before = checked(&world, "a", None).await;
        for (seq_is_old, expected) in [(true, None), (false, Some("read"))] {
            if seq_is_old {
                write(&world, "a", 8).await;
            }
            world.catalogue.put_tasks(&[request("a")]).await.unwrap();
            let taken = take(&world, TaskKind::Bit).await;
            let success = if seq_is_old { before.clone() } else { checked(&world, "a", None).await };
            end(&world, taken, part(None, None, vec![success])).await;
            assert_eq!(proof(&world, "a").await.as_deref(), expected);
        }
        write(&world, "a", 9).await;
        assert_eq!(proof(&world, "a").await, None);
        world.tamper("UPDATE copies SET proof = 'read'").await;
        let findings = world.catalogue.check().await.unwrap();
        assert!(findings.iter().any(|finding| finding.what.contains("a proof without a time")), "{findings:?}");
        assert!(findings.iter().any(|finding| finding.what.contains("with proof read of day")), "{findings:?}");
    }

    async fn successes_are_forgotten_after_their_report_and_the_next_run_and_failures_never(world: World) {
        for name in ["a", "b"] {
            write(&world, name, 7).await;
        }
        let catalogue = &world.catalogue;
        let lead = begin(&world).await;
        let mut runs = Vec::new();
        for number in 1..=2 {
            if number > 1 {
                assert!(catalogue.begin_loop(&lead, &[morsel()], LEASE).await.unwrap());
            }
            let lead = Lead { number, ..lead.clone() };
            let page = NewPage { behind: None, last: None, items: 2, bytes: 14 };
            assert!(catalogue.advance_bit(&lead, &morsel(), (&Advance::Done(2), "read"), &[page]).await.unwrap());
            let run = catalogue.open_bit_run("account", &main(), &morsel().space).await.unwrap().unwrap();
            let task = take(&world, TaskKind::BitPage).await;
            let items = vec![checked(&world, "a", None).await, checked(&world, "b", Some(wrong("content_missing", false))).await];
            let ended = PageEnd { run, is_late: false, behind: None, rest: None, listed: (2, 14), alone: Vec::new() };
            end(&world, task, part(Some(run), Some(ended), items)).await;
            assert_eq!(catalogue.forget_checks().await.unwrap(), None);
            assert!(catalogue.end_bit_run(&lead, run, Duration::ZERO, vec![]).await.unwrap());
            runs.push(run);
        }
        assert_eq!(catalogue.forget_checks().await.unwrap(), None);
        for run in &runs {
            store_report(&world, *run, "failure", true).await;
        }
        assert_eq!(catalogue.forget_checks().await.unwrap(), Some(1));
        assert_eq!(catalogue.forget_checks().await.unwrap(), Some(0));
        assert_eq!(catalogue.forget_checks().await.unwrap(), None);
        let logged = |run, result| async move { catalogue.checks_of_run(run, result, 0, 10).await.unwrap().len() };
        assert_eq!((logged(runs[0], "success").await, logged(runs[0], "failure").await), (0, 1));
        assert_eq!((logged(runs[1], "success").await, logged(runs[1], "failure").await), (1, 1));
        assert_eq!(catalogue.newest_bit_run("account", &main(), &morsel().space).await.unwrap().unwrap().id, runs[1]);
        assert_eq!(catalogue.bit_counts(runs[0]).await.unwrap().len(), 2);
    }

    async fn what_was_proven_outside_of_runs_is_forgotten_when_it_is_too_old(world: World) {
        let catalogue = &world.catalogue;
        for name in ["a", "b"] {
            write(&world, name, 7).await;
        }
        for number in 0..2 {
            let items = vec![checked(&world, "a", None).await, checked(&world, "b", Some(wrong("content_missing", false))).await];
            catalogue.record_checks(&part(None, None, items), Vec::new()).await.unwrap();
            if number == 0 {
                world.tamper("UPDATE bit_log SET time = time - 5180000000").await;
            }
        }
        let (user, reason) = ("ada", "a new disk");
        for name in [None, Some("a"), Some("b")] {
            let (store, space, key) = (&main(), &morsel().space, name.map(key));
            let new = NewRequestedCheck { account: "account", store, space, key: key.as_ref(), user, reason, items: 1, bytes: 7 };
            assert!(catalogue.request_check(&new).await.unwrap());
        }
        let kept = async || {
            let of_item = async |name| catalogue.checks_of_item(&main(), &item(name), None, 10).await.unwrap().len();
            (of_item("a").await, of_item("b").await, catalogue.requested_checks("account", None, 10).await.unwrap().len())
        };
        assert_eq!((catalogue.forget_checks().await.unwrap(), kept().await), (None, (2, 2, 3)));
        world.tamper("UPDATE bit_log SET time = time - 4000000").await;
        assert_eq!((catalogue.forget_checks().await.unwrap(), kept().await), (Some(1), (1, 2, 3)));
        // Of what was requested, what has ended is; one of the items has not.
        world.tamper("DELETE FROM tasks WHERE key <> (SELECT key FROM items ORDER BY key DESC LIMIT 1)").await;
        world.tamper("DELETE FROM asked_items WHERE key = (SELECT key FROM items ORDER BY key LIMIT 1)").await;
        world.tamper("UPDATE asked_checks SET is_listed = TRUE WHERE items = 1 AND key NOT IN (SELECT key FROM items)").await;
        assert_eq!(catalogue.forget_checks().await.unwrap(), None);
        world.tamper("UPDATE asked_checks SET changed = changed - 5184000000").await;
        assert_eq!((catalogue.forget_checks().await.unwrap(), kept().await), (Some(2), (1, 2, 1)));
        // What the producer has for the age of a proof holds.
        let lead = begin(&world).await;
        let rules = CheckRules { max_age: Duration::ZERO, include: String::new(), exclude: String::new() };
        catalogue.keep_check_rules(&lead, &rules).await.unwrap();
        world.tamper("UPDATE bit_log SET time = time - 1").await;
        assert_eq!((catalogue.forget_checks().await.unwrap(), kept().await), (Some(1), (0, 2, 1)));
        assert_eq!(catalogue.forget_checks().await.unwrap(), None);
    }

    async fn reports_are_listed_the_newest_first_and_the_newest_of_a_space_says_what_it_lacks(world: World) {
        let catalogue = &world.catalogue;
        let lead = begin(&world).await;
        let mut runs = Vec::new();
        for number in 1..=3 {
            if number > 1 {
                assert!(catalogue.begin_loop(&lead, &[morsel()], LEASE).await.unwrap());
            }
            let lead = Lead { number, ..lead.clone() };
            assert!(catalogue.advance_bit(&lead, &morsel(), (&Advance::Done(0), "read"), &[]).await.unwrap());
            let run = catalogue.open_bit_run("account", &main(), &morsel().space).await.unwrap().unwrap();
            assert!(catalogue.end_bit_run(&lead, run, Duration::ZERO, vec![]).await.unwrap());
            runs.push(run);
        }
        let list = |of: Reports<'static>, before, limit| async move {
            let found = catalogue.bit_reports(of, before, limit).await.unwrap();
            found.into_iter().map(|run| (run.number, run.report.unwrap().is_newest)).collect::<Vec<_>>()
        };
        let counted = |number| catalogue.unsuccessful_bit_reports(number);
        assert_eq!(list(Reports::default(), None, 10).await, []);

        // The one of the second loop is written last.
        for (number, result, is_complete) in [(1, "incomplete", false), (3, "failure", true), (2, "incomplete", false)] {
            store_report(&world, runs[number - 1], result, is_complete).await;
        }
        assert_eq!(list(Reports::default(), None, 10).await, [(3, true), (2, false), (1, false)]);
        assert_eq!(list(Reports::default(), Some(runs[2]), 1).await, [(2, false)]);
        for (account, store, space, found) in [
            ("account", "", "", 3), ("account", "main", "space-a", 3), ("", "main", "", 3), ("", "", "space-a", 3),
            ("other", "", "", 0), ("account", "other", "", 0), ("", "other", "", 0), ("", "", "space-b", 0),
            ("other", "", "space-a", 0), ("account", "other", "space-a", 0),
        ] {
            for (unsuccessful, found) in [(None, found), (Some(3), found / 3), (Some(4), 0)] {
                let of = Reports { account, store, space, unsuccessful };
                assert_eq!(list(of, None, 10).await.len(), found, "{of:?}");
            }
        }
        let of_main = |incomplete, failed| [UnsuccessfulReports { account: "account".to_owned(), store: main(), incomplete, failed }];
        assert_eq!(counted(3).await.unwrap(), of_main(0, 1));
        assert_eq!(counted(4).await.unwrap(), []);
        // What is recorded stays as it was sealed.
        store_report(&world, runs[2], "success", true).await;
        assert_eq!(counted(1).await.unwrap(), of_main(0, 1));
        let stored = catalogue.bit_run(runs[0]).await.unwrap().unwrap().report.unwrap();
        assert_eq!((&*stored.result, stored.coverage.as_deref(), stored.is_complete), ("incomplete", Some("{}"), Some(false)));
    }
}
