//! Each row of the table, planted for real.

use std::time::Duration;

use queuekeeper_catalogue::audit::Events;
use queuekeeper_catalogue::tasks::{TaskKind, TaskOutcome};
use queuekeeper_mill::audit::Auditor;
use queuekeeper_mill::policy::Policies;
use queuekeeper_mill::producer::Step;
use queuekeeper_store::Digests;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement, Subject};
use queuekeeper_store::error::Operation;
use queuekeeper_store::ocfl::Root;
use queuekeeper_testkit::faulty::{Fault, Rule};
use uuid::Uuid;

use super::world::Bit;
use crate::duplicate::world::{World, item, main, on_all, replica};

/// Content with the name of its item.
async fn write(world: &World, keys: &[&str]) {
    for key in keys {
        world.put(&main(), true, &item(key), &format!("content of {key}"), "text/plain").await;
    }
}

const OTHER: &str = r#"{"md5":"00000000000000000000000000000000"}"#;

/// What is planted, and what is to be found.
const PLANTED: [(&str, &[&str]); 11] = [
    ("rotten", &["content_damaged"]),
    ("checksum", &["store_checksum_wrong"]),
    ("index", &["index_wrong"]),
    ("noindex", &["index_wrong"]),
    ("audit", &["audit_wrong"]),
    ("noaudit", &["audit_absent"]),
    ("missing", &["content_missing"]),
    ("gone", &["index_wrong", "content_missing"]),
    ("foreign", &["not_recorded"]),
    ("outside", &["changed_outside"]),
    ("both", &["content_damaged", "index_wrong"]),
];

async fn plant(world: &World) {
    write(world, &["rotten", "checksum", "index", "noindex", "audit", "noaudit", "missing", "gone", "outside", "both"])
        .await;
    write(world, &["good", "deleted"]).await;
    world.stores[&main()].delete(&item("deleted"), None).await.unwrap();
    world.rot("rotten");
    world.rot("both");
    world.misstate("checksum");
    world.change_record("copies", "index", Some(OTHER)).await;
    world.change_record("audit_head", "audit", Some(OTHER)).await;
    for key in ["noindex", "gone", "both"] {
        world.change_record("copies", key, None).await;
    }
    world.change_record("audit_head", "noaudit", None).await;
    for key in ["missing", "gone"] {
        world.bare[&main()].delete(&item(key), None).await.unwrap();
    }
    for key in ["foreign", "outside"] {
        world.put(&main(), false, &item(key), "written around it", "text/plain").await;
    }
}

on_all! {
    async fn a_loop_finds_every_row_of_the_table_and_changes_neither_content_nor_record(world: World) {
        let bit = Bit::new(&world, "read");
        plant(&world).await;
        let before = world.catalogue.item_records(&main(), &item("a").space, (None, None), 1000).await.unwrap();
        // One page; then four of these are looked at in three rounds, and the others in one.
        assert_eq!(bit.run_loop().await, (1, 7 + 3 * 4));
        let errors = bit.errors().await;
        assert_eq!(errors.len(), PLANTED.len());
        for (key, findings) in PLANTED {
            assert_eq!(errors[key].findings, findings, "{key}");
        }
        let counts = bit.counts().await;
        assert_eq!((counts["success"], counts["failure"], counts.len()), (1, 11, 2));
        for (key, _) in PLANTED {
            let open = world.open_tasks(&[key]).await;
            let kinds: Vec<_> = open.iter().map(|open| open.task.subject.kind).collect();
            assert_eq!(kinds, [TaskKind::BitError], "{key}");
        }
        // Who copies hears nothing of what no operator has accepted.
        let observed = world.catalogue.events(&Events::Observed, None, 10).await.unwrap();
        let keys: Vec<_> = observed.iter().map(|event| event.subject.key.as_ref().unwrap().to_string()).collect();
        assert_eq!(keys.len(), 2, "{keys:?}");
        let auditor = Auditor { accounts: world.duplicator.accounts.clone(), policies: Policies::default() };
        assert!(observed.iter().all(|event| auditor.task(event).is_none()));
        let mut after = world.catalogue.item_records(&main(), &item("a").space, (None, None), 1000).await.unwrap();
        after.retain(|records| records.index.is_some() || records.audit.is_some());
        assert_eq!(after, before);

        // The next loop finds the same, observes nothing anew, and ends what is right again.
        world.rot("rotten");
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        bit.run_loop().await;
        let errors = bit.errors().await;
        assert_eq!(errors.len(), 10);
        assert!(errors.values().all(|error| error.times == 2), "{errors:?}");
        assert_eq!(world.catalogue.events(&Events::Observed, None, 10).await.unwrap().len(), 2);
        assert_eq!(bit.counts().await["success"], 2);
        let proven = world.catalogue.copy(&main(), &item("rotten")).await.unwrap().unwrap().proven;
        assert_eq!(proven.map(|(_, proof)| proof).as_deref(), Some("read"));
    }

    async fn what_is_changed_while_it_is_checked_is_no_finding(world: World) {
        let bit = Bit::new(&world, "read");
        write(&world, &["busy", "gone", "new", "raced", "short"]).await;
        while bit.producer.step().await.unwrap() != Step::Checking {}
        // Between the listing of the producer and the check.
        world.stores[&main()].delete(&item("gone"), None).await.unwrap();
        world.put(&main(), true, &item("new"), "another content", "text/plain").await;
        // A change that the store has and the record has not yet.
        let under_way = Intent {
            id: Uuid::now_v7(),
            holder: Uuid::now_v7(),
            user: "depositor".to_owned(),
            subject: Subject { store: main(), space: item("busy").space, key: Some(item("busy").key) },
            change: Change::Update,
            seen: None,
            size: None,
            digests: Digests::default(),
            source: None,
            upload: None,
            properties: None,
        };
        world.put(&main(), false, &item("busy"), "under way", "text/plain").await;
        world.catalogue.begin(&under_way, Duration::from_mins(1)).await.unwrap();
        // The third that is read is changed meanwhile, and of the fourth the end is missing, this once.
        bit.faults.add(Rule::new(Fault::StallAt(1)).on(Operation::Get).one_in(3).times(1));
        bit.faults.add(Rule::new(Fault::EndAt(3)).on(Operation::Get).one_in(3).times(1));
        let (page, ()) = tokio::join!(bit.process(TaskKind::BitPage), async {
            bit.faults.until_stalled(1).await;
            world.put(&main(), true, &item("raced"), "written meanwhile", "text/plain").await;
            bit.faults.release();
        });
        let page = page.unwrap();
        let alone: Vec<_> = page.follow_ups.iter().map(|task| task.subject.key.as_ref().unwrap().to_string()).collect();
        assert!(alone.contains(&"busy".to_owned()) && alone.contains(&"raced".to_owned()), "{alone:?}");
        let look = bit.process(TaskKind::Bit).await.unwrap();
        assert!(matches!(look.outcome, TaskOutcome::PutOff(_)) && look.checked.is_none(), "{look:?}");
        assert_eq!(bit.errors().await.len(), 0);

        // It was nothing: what the store has is what no record explains.
        world.catalogue.settle(&under_way, &Settlement::NotDone).await.unwrap();
        bit.run_loop().await;
        let errors = bit.errors().await;
        assert_eq!(errors.keys().map(String::as_str).collect::<Vec<_>>(), ["busy"]);
        assert_eq!(errors["busy"].findings, ["changed_outside"]);
        let counts = bit.counts().await;
        assert_eq!((counts["success"], counts["failure"], counts.len()), (3, 1, 2));
    }

    async fn what_a_job_has_not_recorded_yet_is_no_finding_and_a_day_later_it_is(world: World) {
        let (bit, job, ark) = (Bit::new(&world, "read"), Uuid::now_v7(), "ark:/99999/fk4abc");
        let place = ("main".to_owned(), item("a").space.to_string());
        world.catalogue.store_content(job, ark, &place, Duration::ZERO).await.unwrap();
        let content = item(&format!("{}/v1/content/a", Root::folder_of(ark).unwrap()));
        world.put(&main(), false, &content, "of a job", "text/plain").await;
        bit.run_loop().await;
        assert_eq!(bit.counts().await, [("being_stored".to_owned(), 1)].into());
        assert_eq!(bit.errors().await.len(), 0);
        let copied = world.duplicate(content.key.as_str()).await;
        assert!(matches!(copied.outcome, TaskOutcome::PutOff(_)), "{copied:?}");
        assert_eq!(world.text(&replica(), &content).await, None);

        world.tamper("UPDATE object_intents SET begun = begun - 86400001".to_owned()).await;
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        bit.run_loop().await;
        assert_eq!(bit.errors().await[content.key.as_str().unwrap()].findings, ["not_recorded"]);
    }

    async fn what_was_recorded_is_a_finding_whatever_a_job_stores_beside_it(world: World) {
        let (bit, ark) = (Bit::new(&world, "read"), "ark:/99999/fk4abc");
        let folder = Root::folder_of(ark).unwrap();
        let recorded = item(&format!("{folder}/v1/content/a"));
        world.put(&main(), true, &recorded, "recorded", "text/plain").await;
        // What a job stores elsewhere is none of this store's.
        let other = "ark:/99999/fk4xyz";
        let foreign = item(&format!("{}/v1/content/a", Root::folder_of(other).unwrap()));
        let stored = item(&format!("{folder}/v2/content/b"));
        for (ark, store) in [(ark, "main"), (other, "elsewhere")] {
            let place = (store.to_owned(), item("a").space.to_string());
            world.catalogue.store_content(Uuid::now_v7(), ark, &place, Duration::ZERO).await.unwrap();
        }
        for written in [&recorded, &stored, &foreign] {
            world.put(&main(), false, written, "changed!", "text/plain").await;
        }
        bit.run_loop().await;
        let errors = bit.errors().await;
        assert_eq!(errors[recorded.key.as_str().unwrap()].findings, ["changed_outside"]);
        assert_eq!(errors[foreign.key.as_str().unwrap()].findings, ["not_recorded"]);
        assert_eq!(bit.counts().await, [("failure".to_owned(), 2), ("being_stored".to_owned(), 1)].into());
    }

    async fn what_no_record_vouches_for_is_written_over_no_copy(world: World) {
        for key in ["noindex", "nothing", "index", "audit", "flipped", "undeleted", "unmarked"] {
            world.put(&main(), true, &item(key), "the content", "text/plain").await;
            assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
        }
        for (table, key, digests) in [
            ("copies", "noindex", None),
            ("copies", "nothing", None),
            ("audit_head", "nothing", None),
            ("copies", "index", Some(OTHER)),
            ("audit_head", "audit", Some(OTHER)),
            ("audit_head", "undeleted", None),
            ("copies", "unmarked", None),
        ] {
            world.change_record(table, key, digests).await;
        }
        for key in ["flipped", "undeleted"] {
            let id = world.catalogue.records_of_item(&main(), &item(key)).await.unwrap().unwrap().id;
            world.tamper(format!("UPDATE copies SET is_deleted = TRUE WHERE item = {id} AND store = 'main'")).await;
            world.bare[&main()].delete(&item(key), None).await.unwrap();
        }
        for key in ["noindex", "nothing", "index", "audit"] {
            world.put(&main(), false, &item(key), "damaged one", "text/plain").await;
        }
        for (key, why) in [
            ("noindex", "differs from its record"),
            ("nothing", "has no record, so the copy"),
            ("index", "differs from its record"),
            ("audit", "differs from its record"),
            ("flipped", "has lost"),
        ] {
            let processed = world.duplicate(Some(key)).await;
            let TaskOutcome::Failed(said) = &processed.outcome else { panic!("{key}: {processed:?}") };
            assert!(said.contains(why) && processed.follow_ups[0].subject.kind == TaskKind::Bit, "{key}: {said}");
            let copy = world.text(&replica(), &item(key)).await;
            assert_eq!(copy.map(|(text, _)| text).as_deref(), Some("the content"), "{key}");
        }

        // An event that is no deletion makes none.
        let processed = world.duplicate(Some("undeleted")).await;
        let is_said = matches!(&processed.outcome, TaskOutcome::Failed(why) if why.contains("is not in the audit log"));
        assert!(is_said && world.text(&replica(), &item("undeleted")).await.is_some(), "{processed:?}");
        // Without its row, and without a checksum of the store, nothing says that content of the same size is the same.
        if let Some(top) = world.bare[&main()].directory() {
            std::fs::write(top.join(item("unmarked").space.as_str()).join("unmarked"), "damaged one").unwrap();
            let processed = world.duplicate(Some("unmarked")).await;
            assert!(matches!(processed.outcome, TaskOutcome::Failed(_)), "{processed:?}");
            assert_eq!(world.text(&replica(), &item("unmarked")).await.unwrap().0, "the content");
        }

        // What only the audit log has is enough where the content is that; a copy that was lost is not replaced by
        // anything else.
        for (key, is_copied) in [("noindex", true), ("nothing", false)] {
            if is_copied {
                world.put(&main(), false, &item(key), "the content", "text/plain").await;
            }
            world.bare[&replica()].delete(&item(key), None).await.unwrap();
            assert_eq!(world.duplicate(Some(key)).await.outcome == TaskOutcome::Done, is_copied, "{key}");
            assert_eq!(world.text(&replica(), &item(key)).await.is_some(), is_copied, "{key}");
        }

        // What nobody ever recorded is copied until a check has found it.
        for key in ["new", "found"] {
            world.put(&main(), false, &item(key), "from outside", "text/plain").await;
        }
        assert_eq!(world.duplicate(Some("new")).await.outcome, TaskOutcome::Done);
        Bit::new(&world, "read").run_loop().await;
        let processed = world.duplicate(Some("found")).await;
        assert!(matches!(&processed.outcome, TaskOutcome::Failed(why) if why.contains("until bit error")), "{processed:?}");
        assert_eq!(world.text(&replica(), &item("found")).await, None);
    }

    async fn a_store_that_fails_is_no_finding_and_what_was_checked_before_is_kept(world: World) {
        let bit = Bit::new(&world, "read");
        let keys: Vec<String> = (10..25).map(|number| format!("item-{number}")).collect();
        write(&world, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
        while bit.producer.step().await.unwrap() != Step::Checking {}
        bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Get));
        let page = bit.process(TaskKind::BitPage).await.unwrap();
        assert!(matches!(page.outcome, TaskOutcome::Failed(_)) && page.follow_ups.is_empty(), "{page:?}");
        // One that cannot be read among others is checked alone; where the store goes away, the rest is a page of its
        // own.
        bit.faults.clear();
        world.tamper("UPDATE tasks SET visible = 0".to_owned()).await;
        bit.faults.add(Rule::new(Fault::StallAt(1)).on(Operation::Get).one_in(4).times(1));
        bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Get).one_in(2).times(1));
        let (page, ()) = tokio::join!(bit.process(TaskKind::BitPage), async {
            bit.faults.until_stalled(1).await;
            bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Get));
            bit.faults.release();
        });
        let page = page.unwrap();
        let alone: Vec<_> = page.follow_ups.iter().map(|task| task.subject.key.as_ref().unwrap().to_string()).collect();
        assert_eq!(alone, ["item-11"]);
        let checked = page.checked.unwrap();
        assert_eq!((checked.items.len(), checked.page.unwrap().rest), (3, Some(item("item-13").key)));
        bit.faults.clear();
        bit.run_loop().await;
        assert_eq!(bit.errors().await.len(), 0);
        assert_eq!(bit.counts().await["success"], 15);
    }
}
