//! How many items have which proof, day by day.

use std::collections::BTreeSet;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, Evidence};
use queuekeeper_catalogue::loops::Lead;
use queuekeeper_catalogue::proofs::{CheckRules, DAY, ProofFigure, UNPROVEN};
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement};
use queuekeeper_store::noted::NotedChange;
use queuekeeper_store::store::{Item, Written};
use queuekeeper_store::{Digests, Key, StoreName};
use uuid::Uuid;

use super::support::{LEASE, World, digests, done, etag, grant, intent, on_both, subject};

/// What the figures are to be, by a count that shares nothing with the catalogue.
const COUNTED: &str =
    "SELECT store || ' ' || space || ' ' || proof || ' ' || CAST(COUNT(*) AS TEXT) || ' ' || CAST(MIN(day) AS TEXT)
    FROM (SELECT store, space, CASE WHEN proof IS NULL THEN 'none' ELSE proof END AS proof,
            (CASE WHEN proof IS NULL THEN written ELSE proven END) / 86400000 AS day
        FROM copies, items WHERE items.id = copies.item AND NOT is_deleted) AS copies
    GROUP BY store, space, proof ORDER BY store, space, proof";

async fn assert_exact(world: &World) {
    let line = |of: &ProofFigure| {
        let day = of.oldest.as_second() / 86_400;
        format!("{} {} {} {} {day}", of.store, of.space, of.proof, of.items)
    };
    let figures: Vec<_> = world.catalogue.proof_figures().await.unwrap().iter().map(line).collect();
    assert_eq!(figures, world.look(COUNTED).await);
    assert_eq!(world.catalogue.check().await.unwrap(), []);
}

async fn change(catalogue: &Catalogue, (store, space): (&str, &str), key: &[u8], settlement: &Settlement) {
    let intent = Intent { subject: subject(store, space, key), ..intent(key) };
    catalogue.begin(&intent, LEASE).await.unwrap();
    catalogue.settle(&intent, settlement).await.unwrap();
}

fn settled(change: Change) -> Settlement {
    Settlement::Done { change, etag: None, size: None, digests: Digests::default() }
}

/// Says that a copy was checked; nothing where it is not there.
async fn prove(catalogue: &Catalogue, (store, space): (&str, &str), keys: &[&[u8]], proof: &'static str) {
    let store: StoreName = store.parse().unwrap();
    let mut items = Vec::new();
    for key in keys {
        let item = Item::new(space.parse().unwrap(), Key::new(*key).unwrap());
        let Some(records) = catalogue.records_of_item(&store, &item).await.unwrap() else { continue };
        let seq = records.index.map(|index| index.seq);
        let evidence = Evidence::default();
        let (id, proof) = (Some(records.id), Some(proof));
        items.push(CheckedItem {
            item,
            id,
            bytes: 1,
            result: "success",
            proof,
            seq,
            evidence,
            wrong: None,
            is_missing: false,
            unread: None,
        });
    }
    let account = "account".to_owned();
    let part = CheckedPart::of(account, store, items);
    catalogue.record_checks(&part, Vec::new()).await.unwrap();
}

/// Lets all there is become so many days older, as if it had been counted then.
async fn age(world: &World, days: u32) {
    let millis = u128::from(days) * DAY.as_millis();
    world.tamper(&format!("UPDATE copies SET written = written - {millis}, proven = proven - {millis}")).await;
    while world.catalogue.fold().await.unwrap() > 0 {}
    world.tamper("UPDATE proof_counts SET day = -day").await;
    world.tamper(&format!("UPDATE proof_counts SET day = -day - {days}")).await;
}

/// Numbers that look as if they were drawn: the same for each seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];

const PLACES: [(&str, &str); 3] = [("main", "space-a"), ("main", "space-b"), ("replica", "space-a")];

async fn step(world: &World, dice: &mut Dice) {
    let catalogue = &world.catalogue;
    let (place, key) = (PLACES[dice.below(3)], KEYS[dice.below(6)]);
    match dice.below(10) {
        0 | 1 => change(catalogue, place, key, &done(Change::Update, 1)).await,
        2 => change(catalogue, place, key, &settled(Change::Delete)).await,
        3 => change(catalogue, place, key, &settled(Change::Properties)).await,
        4 => {
            let (store, space) = (place.0.parse::<StoreName>().unwrap(), place.1.parse().unwrap());
            let keys = KEYS.iter().skip(dice.below(6)).map(|key| Key::new(*key).unwrap());
            let mut changes = Vec::new();
            for key in keys {
                let seen = catalogue.copy(&store, &Item::new(Clone::clone(&space), key.clone())).await.unwrap();
                let living = seen.filter(|copy| !copy.is_deleted);
                let is_gone = living.is_some() && dice.below(3) == 0;
                let (change, number) = match (&living, is_gone) {
                    (Some(_), true) => (Change::Delete, None),
                    (Some(_), false) => (Change::Update, Some(2)),
                    (None, _) => (Change::Add, Some(3)),
                };
                let after =
                    number.map(|number| Written { size: number.into(), etag: etag(number), digests: digests(number) });
                let seen = living.and_then(|copy| copy.etag);
                changes.push(NotedChange { space: Clone::clone(&space), key: Some(key), change, seen, after });
            }
            catalogue.record_changes(&store, "ingest", &changes).await.unwrap();
        }
        5 => prove(catalogue, place, &KEYS[dice.below(6)..], "read").await,
        6 => prove(catalogue, place, &KEYS[dice.below(6)..], "provider").await,
        7 => prove(catalogue, place, &[key], "read").await,
        8 => age(world, u32::try_from(dice.below(3)).unwrap()).await,
        _ => drop(catalogue.fold().await.unwrap()),
    }
}

on_both! {
    async fn a_proof_counts_on_its_day_until_the_content_changes(world: World) {
        let (catalogue, place) = (&world.catalogue, PLACES[0]);
        change(catalogue, place, b"a", &done(Change::Add, 1)).await;
        change(catalogue, place, b"b", &done(Change::Add, 1)).await;
        age(&world, 70).await;
        prove(catalogue, place, &[b"a"], "read").await;
        let kinds = |figures: Vec<ProofFigure>| -> Vec<_> {
            figures.into_iter().map(|of| (of.proof, of.items, of.oldest)).collect()
        };
        let figures = kinds(catalogue.proof_figures().await.unwrap());
        let [(never, 1, unproven), (read, 1, proven)] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!((never.as_str(), read.as_str()), (UNPROVEN, "read"));
        // A day may have begun between the two.
        let apart = proven.duration_since(*unproven).unsigned_abs();
        assert!([DAY * 70, DAY * 71].contains(&apart), "{apart:?}");
        assert_exact(&world).await;
        // New properties leave the bytes as they were, and their proof with them.
        change(catalogue, place, b"a", &settled(Change::Properties)).await;
        assert_eq!(kinds(catalogue.proof_figures().await.unwrap()), figures);
        change(catalogue, place, b"a", &done(Change::Update, 2)).await;
        let [(never, 2, _)] = &kinds(catalogue.proof_figures().await.unwrap())[..] else { panic!() };
        assert_eq!(never, UNPROVEN);
        change(catalogue, place, b"b", &settled(Change::Delete)).await;
        change(catalogue, place, b"a", &settled(Change::Delete)).await;
        assert_eq!(catalogue.proof_figures().await.unwrap(), []);
        while catalogue.fold().await.unwrap() > 0 {}
        assert_eq!(world.number("SELECT COUNT(*) FROM proof_counts").await, 0, "what is none is no row");
        assert_exact(&world).await;
    }

    async fn the_figures_are_those_of_a_full_count_after_any_changes(world: World) {
        let mut kinds = BTreeSet::new();
        for seed in 1..=4 {
            let mut dice = Dice(seed);
            for _step in 0..25 {
                step(&world, &mut dice).await;
            }
            assert_exact(&world).await;
            kinds.extend(world.catalogue.proof_figures().await.unwrap().into_iter().map(|of| of.proof));
        }
        assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), [UNPROVEN, "provider", "read"]);
    }

    async fn checks_and_changes_of_the_same_items_at_once_leave_exact_figures(world: World) {
        let workers = (0..6u8).map(|worker| {
            let catalogue = world.catalogue.clone();
            tokio::spawn(async move {
                for round in 0..12u8 {
                    let key = KEYS[usize::from(worker + round) % KEYS.len()];
                    match worker {
                        // One changes each item, as the intent of another one keeps it from that.
                        0 => change(&catalogue, PLACES[0], key, &done(Change::Update, round)).await,
                        1 => drop(catalogue.fold().await.unwrap()),
                        _ => prove(&catalogue, PLACES[0], &KEYS, if worker == 2 { "provider" } else { "read" }).await,
                    }
                }
            })
        });
        futures::future::join_all(workers.collect::<Vec<_>>()).await.into_iter().for_each(Result::unwrap);
        assert_exact(&world).await;
    }

    async fn what_was_there_before_is_counted_when_the_catalogue_comes_to_this_schema(world: World) {
        let mut dice = Dice(7);
        for _step in 0..40 {
            step(&world, &mut dice).await;
        }
        change(&world.catalogue, PLACES[0], b"a", &done(Change::Update, 9)).await;
        let before = world.catalogue.proof_figures().await.unwrap();
        for sql in [
            // What later versions made.
            "DROP TABLE bit_items",
            "ALTER TABLE bit_pages DROP COLUMN is_unread",
            "ALTER TABLE bit_pages DROP COLUMN is_checked",
            "ALTER TABLE bit_runs DROP COLUMN origin",
            "DROP TABLE budget_uses",
            "DROP TABLE restores",
            "DROP INDEX tasks_restore",
            "ALTER TABLE tasks DROP COLUMN waits_for",
            "DROP TABLE comparisons",
            "DROP TABLE asked_items",
            "DROP TABLE asked_checks",
            "DROP TABLE proof_counts",
            "DROP TABLE proof_deltas",
            "ALTER TABLE copies DROP COLUMN written",
            "ALTER TABLE loops DROP COLUMN max_age",
            "ALTER TABLE loops DROP COLUMN include",
            "ALTER TABLE loops DROP COLUMN exclude",
            "DELETE FROM queuekeeper_schema WHERE version >= 16",
        ] {
            world.tamper(sql).await;
        }
        let migrated = Catalogue::open(&world.url).await.unwrap();
        let after = migrated.proof_figures().await.unwrap();
        let items = |figures: &[ProofFigure]| -> Vec<_> {
            figures.iter().map(|of| (of.store.clone(), of.space.clone(), of.proof.clone(), of.items)).collect()
        };
        assert_eq!(items(&after), items(&before));
        assert!(after.len() > 2, "{after:?}");
        assert_eq!(world.number("SELECT COUNT(*) FROM copies WHERE written = 0").await, 0);
        migrated.close().await;
        if world.url.starts_with("postgres:") {
            grant(&world.url).await;
        }
        assert_exact(&world).await;
    }

    async fn a_figure_that_deviates_is_found(world: World) {
        change(&world.catalogue, PLACES[0], b"a", &done(Change::Add, 1)).await;
        world.catalogue.fold().await.unwrap();
        world.tamper("UPDATE proof_counts SET items = 2").await;
        let findings = world.catalogue.check().await.unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].what.starts_with("the number of items in main/space-a with proof none of day "), "{findings:?}");
        assert!(findings[0].what.ends_with(" is 2, but there are 1"), "{findings:?}");
    }

    async fn the_rules_of_checks_are_those_of_the_last_leader(world: World) {
        let catalogue = &world.catalogue;
        let lead = catalogue.lead("bit", Uuid::now_v7(), LEASE).await.unwrap().unwrap();
        assert_eq!(catalogue.check_rules("bit").await.unwrap(), None);
        let rules = CheckRules { max_age: DAY * 60, include: String::new(), exclude: "/*/*/tmp\n".to_owned() };
        catalogue.keep_check_rules(&lead, &rules).await.unwrap();
        let former = Lead { epoch: lead.epoch - 1, ..lead };
        catalogue.keep_check_rules(&former, &CheckRules { max_age: DAY, ..rules.clone() }).await.unwrap();
        assert_eq!(catalogue.check_rules("bit").await.unwrap(), Some(rules));
        assert_eq!(catalogue.check_rules("duplication").await.unwrap(), None);
    }
}
