//! Writers that are killed at each write.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use queuekeeper_store::Item;
use queuekeeper_store::ocfl::{Abandoned, Object, Repaired};

use crate::helpers::{Files, ID, export, files, job, make, memory, read_all, validate};
use crate::memory::{MemoryStore, StoreKind};
use crate::steps::Steps;

fn kinds() -> [StoreKind; 2] {
    [StoreKind::default(), StoreKind { tags_by_content: true, ..StoreKind::default() }]
}

fn first() -> Files {
    files([("a", "1"), ("b/c", "2"), ("b/d", "3")])
}

fn second() -> Files {
    files([("a", "changed"), ("b/c", "2"), ("b/é", "4")])
}

/// What a run that is stopped after so many steps leaves; `None` where it ends before.
async fn stopped(
    kind: StoreKind,
    has_first: bool,
    steps_taken: usize,
) -> Option<(std::sync::Arc<MemoryStore>, Steps, Object)> {
    let (store, steps, root) = memory(kind).await;
    let object = root.object(ID).unwrap();
    if has_first {
        make(&object, job(1), &first()).await.unwrap();
    }
    steps.stop_after(steps_taken);
    let ended = steps.run(make(&object, job(2), &second())).await;
    steps.go_on();
    match ended {
        Some(version) => {
            assert_eq!(version.unwrap(), if has_first { 2 } else { 1 });
            None
        }
        None => Some((store, steps, object)),
    }
}

/// Trees to be validated at the end, all in one run of the validator.
#[derive(Default)]
struct Trees(Vec<(String, BTreeMap<Item, Bytes>)>);

impl Trees {
    fn add(&mut self, name: String, store: &MemoryStore) {
        self.0.push((name, store.contents()));
    }

    fn assert_valid(&self) {
        let top = tempfile::tempdir().unwrap();
        let roots: Vec<PathBuf> = self.0.iter().map(|(name, _)| top.path().join(name)).collect();
        for ((_, contents), root) in self.0.iter().zip(&roots) {
            export(contents, root);
        }
        validate(&roots).unwrap();
    }
}

async fn assert_sound(object: &Object, what: &str) {
    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{what}: {:#?}", verified.findings);
}

#[tokio::test]
async fn killed_at_any_write_a_writer_leaves_the_old_version_or_the_new_one_and_its_job_ends_it() {
    let mut trees = Trees::default();
    for (number, kind) in kinds().into_iter().enumerate() {
        for has_first in [false, true] {
            let before = if has_first { vec![first()] } else { Vec::new() };
            let after = [before.clone(), vec![second()]].concat();
            let (mut step, mut clean) = (0, None);
            while let Some((store, _, object)) = stopped(kind.clone(), has_first, step).await {
                let what = format!("kind-{number}-{has_first}-step-{step}");
                let seen = read_all(&object).await;
                assert!(seen == before || seen == after, "{what}: {seen:?}");
                let version = make(&object, job(2), &second()).await.unwrap();
                assert_eq!(version as usize, after.len(), "{what}");
                assert_eq!(read_all(&object).await, after, "{what}");
                assert_sound(&object, &what).await;
                // It ends in the same state, to the byte, wherever it was killed.
                let contents = store.contents();
                assert!(*clean.get_or_insert_with(|| contents.clone()) == contents, "{what}");
                trees.add(what, &store);
                step += 1;
            }
            assert!(step >= 12, "{step} steps: each write has two");
        }
    }
    trees.assert_valid();
}

#[tokio::test]
async fn killed_at_any_write_a_writer_is_repaired_or_followed_by_another_and_the_object_is_valid() {
    let mut trees = Trees::default();
    for has_first in [false, true] {
        let before = if has_first { vec![first()] } else { Vec::new() };
        let after = [before.clone(), vec![second()]].concat();
        let third = files([("other", "5")]);
        let mut step = 0;
        while let Some((store, _, object)) = stopped(StoreKind::default(), has_first, step).await {
            let what = format!("repaired-{has_first}-step-{step}");
            let seen = read_all(&object).await;
            let unplanned = store.contents();
            let planned = object.plan_repair(&Abandoned::Folders(vec![job(2)])).await.unwrap();
            assert!(store.contents() == unplanned, "{what}: a plan changes nothing");
            let repaired = object.repair(&Abandoned::Folders(vec![job(2)])).await.unwrap();
            assert_eq!(repaired, planned, "{what}");
            assert!(!repaired.restored && repaired.left.is_empty(), "{what}");
            let is_made = read_all(&object).await;
            assert!(is_made == before || is_made == after, "{what}");
            assert!(seen != after || is_made == after, "{what}: what was seen is there no more");
            if is_made.is_empty() {
                // Nothing of the object is left, not even a folder.
                assert!(store.contents().keys().all(|item| !item.key.to_string().contains("ark")), "{what}");
            } else {
                assert_sound(&object, &what).await;
            }
            assert_eq!(object.repair(&Abandoned::All).await.unwrap(), Repaired::default(), "{what}");
            trees.add(what, &store);

            // Another writer, without a repair, finishes or replaces what was left.
            let (store, _, object) = stopped(StoreKind::default(), has_first, step).await.unwrap();
            let what = format!("followed-{has_first}-step-{step}");
            make(&object, job(3), &third).await.unwrap();
            let made = read_all(&object).await;
            assert!(
                [&before, &after].iter().any(|seen| made == [seen.as_slice(), std::slice::from_ref(&third)].concat()),
                "{what}"
            );
            assert_sound(&object, &what).await;
            trees.add(what, &store);
            step += 1;
        }
    }
    trees.assert_valid();
}

#[tokio::test]
async fn a_repair_and_a_follower_that_are_killed_at_any_write_can_be_repeated() {
    for has_first in [false, true] {
        let mut step = 0;
        while stopped(StoreKind::default(), has_first, step).await.is_some() {
            for repairs in [true, false] {
                let mut second_step = 0;
                loop {
                    let (_, steps, object) = stopped(StoreKind::default(), has_first, step).await.unwrap();
                    steps.stop_after(second_step);
                    let wanted = files([("other", "5")]);
                    let ended = if repairs {
                        steps.run(object.repair(&Abandoned::All)).await.is_some()
                    } else {
                        steps.run(make(&object, job(3), &wanted)).await.is_some()
                    };
                    steps.go_on();
                    object.repair(&Abandoned::All).await.unwrap();
                    if !read_all(&object).await.is_empty() {
                        assert_sound(&object, &format!("{has_first} {step} {repairs} {second_step}")).await;
                    }
                    if ended {
                        break;
                    }
                    second_step += 1;
                }
            }
            step += 1;
        }
    }
}

#[tokio::test]
async fn content_of_a_writer_that_may_be_alive_is_left_alone() {
    let (store, _, object) = stopped(StoreKind::default(), true, 3).await.unwrap();
    let before = store.contents();
    let an_hour_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    assert!(object.idle_since(an_hour_ago).await.unwrap().is_empty());
    for abandoned in [Abandoned::None, Abandoned::Folders(vec![job(1)])] {
        let repaired = object.repair(&abandoned).await.unwrap();
        assert_eq!((repaired.left, repaired.removed), (vec![job(2)], 0));
        assert!(store.contents() == before);
    }
    let in_an_hour = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let idle = object.idle_since(in_an_hour).await.unwrap();
    assert_eq!(idle, [job(2)]);
    let repaired = object.repair(&Abandoned::Folders(idle)).await.unwrap();
    assert!(repaired.removed > 0 && repaired.left.is_empty());
    assert_sound(&object, "repaired").await;
}
