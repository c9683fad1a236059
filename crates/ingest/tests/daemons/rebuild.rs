//! The inventory, made again from the stores.

use std::sync::Arc;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::counters::{Counter, Figures};
use queuekeeper_catalogue::identifiers::{Request, Reserved};
use queuekeeper_catalogue::inventory::{File, Object, Version};
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::rebuild::{NamedRoot, Note, RebuildError, Totals, rebuild};
use queuekeeper_queue::state::BatchState;
use queuekeeper_store::error::Operation;
use queuekeeper_store::ocfl::Root;
use queuekeeper_testkit::faulty::{Fault, Faulty, Rule};
use queuekeeper_testkit::postgres::Postgres;
use serde_json::{Value, json};

use super::contents::{manifest, zip};
use super::world::World;

const OWNER: &str = "ark:/99999/owner";

/// Deposits, and waits; the ARKs of the objects.
async fn deposited(world: &World, say: Value) -> Vec<String> {
    let (batch, _) = world.deposit(say).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let mut arks = Vec::new();
    for job in report.completed {
        arks.push(world.ark(job).await);
    }
    arks
}

/// All rows of the inventory but for times, and the media types of deposited files, which no store has.
async fn rows(catalogue: &Catalogue) -> Vec<(Object, Vec<String>, Vec<(Version, Vec<File>)>)> {
    let never = jiff::Timestamp::UNIX_EPOCH;
    let mut all = Vec::new();
    for object in catalogue.objects(None, "", 1_000).await.unwrap() {
        let mut versions = Vec::new();
        for version in catalogue.versions(&object.ark, None, 1_000).await.unwrap() {
            let mut files = catalogue.files(&object.ark, version.number, "", 1_000).await.unwrap();
            for file in files.iter_mut().filter(|file| file.path.starts_with("producer/")) {
                file.media_type = None;
            }
            versions.push((Version { ingested: never, ..version }, files));
        }
        let local_ids = catalogue.local_ids(&object.owner, &object.ark, "", 1_000).await.unwrap();
        all.push((Object { created: never, modified: never, ..object }, local_ids, versions));
    }
    all
}

/// The counters of the inventory.
async fn inventory(catalogue: &Catalogue) -> Figures {
    let of = [Counter::Objects, Counter::Versions, Counter::Files, Counter::FileBytes];
    let all = catalogue.counters().await.unwrap();
    all.into_iter().filter(|((counter, _), _)| of.contains(counter)).collect()
}

async fn rebuilt(catalogue: &Catalogue, roots: &[NamedRoot]) -> (Totals, Vec<Note>) {
    let mut notes = Vec::new();
    let totals = rebuild(catalogue, roots, |note| notes.push(note)).await.unwrap();
    let findings = catalogue.check().await.unwrap();
    assert!(findings.is_empty(), "{findings:?}");
    (totals, notes)
}

/// Deposits of several kinds, six versions of four objects; the ARK of the one that has three.
async fn deposit_all(world: &World) -> Vec<String> {
    world.origin.serve("/a.txt", "content");
    world.origin.serve("/b.txt", "more content");
    world.origin.serve("/c.zip", zip(&[("one.txt", "1"), ("two/two.txt", "2"), ("copy.txt", "1")]));
    let daemons = world.start();
    let url = |name: &str| world.origin.url(&format!("/{name}"));
    let file = |name: &str| json!({"type": "file", "filename": name, "payload_url": url(name), "localID": "x;y z"});
    let first = deposited(world, file("a.txt")).await;
    let mut update = file("b.txt");
    update["update"] = "true".into();
    update["title"] = "Another; title: with marks".into();
    assert_eq!(deposited(world, update).await, first);
    let mut replaced = file("a.txt");
    replaced["localID"] = "x;w".into();
    assert_eq!(deposited(world, replaced).await, first);
    deposited(world, json!({"type": "container", "filename": "c.zip", "payload_url": url("c.zip")})).await;
    let row = |name: &str, id: &str| format!("{} | | | | | {name} | | {id} | | {name}", url(name));
    let batch = manifest(ManifestProfile::SingleFileBatch, [row("a.txt", "m1"), row("b.txt", "m2")]);
    world.origin.serve("/batch.checkm", batch);
    let kind = "single-file-batch-manifest";
    let many = json!({"type": kind, "filename": "batch.checkm", "payload_url": url("batch.checkm")});
    assert_eq!(deposited(world, many).await.len(), 2);
    daemons.stop().await;
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inventory_that_is_lost_or_damaged_is_made_again_from_the_stores() {
    let world = World::new().await;
    let first = deposit_all(&world).await;
    let original = &world.services.catalogue;
    let expected = rows(original).await;
    assert_eq!((expected.len(), expected.iter().map(|(_, _, versions)| versions.len()).sum::<usize>()), (4, 6));
    let store = Arc::clone(world.services.stores.values().next().unwrap());
    let root = Root::open(store, "demo".parse().unwrap()).await.unwrap();
    let roots = [NamedRoot { name: "main/demo".to_owned(), root: root.clone() }];

    // Into an empty catalogue of either kind, and again.
    let postgres = Postgres::start();
    let sqlite = format!("sqlite:{}", world.directory.path().join("rebuilt.db").display());
    for target in [sqlite, postgres.create("rebuilt")] {
        let catalogue = Catalogue::open(&target).await.unwrap();
        let (totals, notes) = rebuilt(&catalogue, &roots).await;
        assert_eq!(totals, Totals { objects: 4, added: 6, ..Totals::default() }, "{target}: {notes:?}");
        assert_eq!((notes, rows(&catalogue).await), (Vec::new(), expected.clone()), "{target}");
        let (totals, _) = rebuilt(&catalogue, &roots).await;
        assert_eq!(totals, Totals { objects: 4, same: 6, ..Totals::default() }, "{target}");
        // What of it the mill knows, it finds by its loops.
        assert_eq!(inventory(&catalogue).await, inventory(original).await, "{target}");
        // The job that got the identifier, and what a later deposit with a local id gets.
        for (object, _, versions) in &expected {
            let reserve = |job, local_ids| Request {
                job,
                owner: OWNER.to_owned(),
                local_ids,
                candidate: "ark:/99999/fk4no".to_owned(),
                is_registered: false,
                place: ("main".to_owned(), "demo".to_owned()),
            };
            let is = Reserved::Ark { ark: object.ark.clone(), is_registered: true };
            let first_job = versions.last().unwrap().0.job;
            assert_eq!(catalogue.reserve(&reserve(first_job, Vec::new())).await.unwrap(), is, "{target}");
        }
        let by_id = catalogue.object_by_local_id(OWNER, "y z").await.unwrap().unwrap();
        assert_eq!(by_id.ark, first[0], "{target}");
        catalogue.close().await;
    }

    // Damage of each kind, in place.
    let ark = &first[0];
    let is_first = format!("(SELECT id FROM objects WHERE ark = '{ark}')");
    for damage in [
        format!("UPDATE objects SET current_version = 1, title = 'forged' WHERE ark = '{ark}'"),
        format!(
            "DELETE FROM files WHERE path LIKE 'producer/%' AND version IN (SELECT id FROM versions WHERE object = {is_first})"
        ),
        "UPDATE files SET size = 99 WHERE version = (SELECT MAX(id) FROM versions)".to_owned(),
        format!("UPDATE versions SET submitter = 'forged' WHERE object = {is_first} AND number = 2"),
        "DELETE FROM local_ids WHERE local_id = 'm2'".to_owned(),
        "UPDATE counters SET value = value + 5".to_owned(),
        "INSERT INTO counter_deltas (name, scope, delta) VALUES ('objects', 'none', 3)".to_owned(),
    ] {
        world.sql(&damage);
    }
    assert!(!original.check().await.unwrap().is_empty());
    let (totals, notes) = rebuilt(original, &roots).await;
    assert!(totals.corrected >= 4 && totals.added == 0 && totals.counters >= 1, "{totals:?} {notes:?}");
    assert_eq!((notes, rows(original).await), (Vec::new(), expected.clone()));

    // Content that was cut off does not become what is recorded.
    let files = original.files(ark, 1, "producer/", 1).await.unwrap();
    let object = root.object(ark).unwrap();
    let path = world.directory.path().join("objects/demo").join(object.root()).join(&files[0].content_path);
    let content = std::fs::read(&path).unwrap();
    std::fs::write(&path, &content[1..]).unwrap();
    let (_, notes) = rebuilt(original, &roots).await;
    let cut = format!("{} bytes, but {} in its row", content.len() - 1, content.len());
    let is_said = |note: &Note| matches!(note, Note::Skipped { what, why } if what == ark && why.contains(&cut));
    assert!(notes.len() == 1 && is_said(&notes[0]), "{cut}: {notes:?}");
    assert_eq!(rows(original).await, expected);
    std::fs::write(&path, &content).unwrap();

    // Rows of which the store has nothing are listed and kept; so are those that say another owner.
    world.sql(&format!("UPDATE objects SET owner = 'ark:/99999/other' WHERE ark = '{ark}'"));
    world.sql(
        "INSERT INTO objects (ark, owner, collection, created, modified, current_version)
        VALUES ('ark:/99999/fk4gone', 'o', 'demo', 1, 1, 0)",
    );
    let (_, notes) = rebuilt(original, &roots).await;
    let what = |note: &Note| match note {
        Note::Skipped { what, why } | Note::Unreadable { what, why } => (what.clone(), why.clone()),
        Note::Unfounded { ark, what } => (ark.clone(), what.clone()),
    };
    let said: Vec<_> = notes.iter().map(what).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].0 == *ark && said[0].1.contains("owner \"ark:/99999/other\""), "{said:?}");
    assert!(said[1].0 == "ark:/99999/fk4gone" && said[1].1.contains("none of the spaces"), "{said:?}");
    assert_eq!(rows(original).await.len(), 5);

    // Damaged content of ingest, and what another program made.
    world.sql(&format!("UPDATE objects SET owner = '{OWNER}' WHERE ark = '{ark}'"));
    world.sql("DELETE FROM objects WHERE ark = 'ark:/99999/fk4gone'");
    let object = root.object(ark).unwrap();
    let snapshot = object.read().await.unwrap().unwrap();
    let owner = snapshot.inventory().file(1, "system/mrt-owner.txt").unwrap().unwrap();
    let folder = world.directory.path().join("objects/demo");
    std::fs::write(folder.join(object.root()).join(owner.content_path), "ark:/99999/thief\n").unwrap();
    std::fs::write(folder.join("stray"), "x").unwrap();
    let (totals, notes) = rebuilt(original, &roots).await;
    let said: Vec<_> = notes.iter().map(what).collect();
    assert!(
        said.iter().any(|(what, why)| what == ark && why.contains("system/mrt-owner.txt: its SHA-512")),
        "{said:?}"
    );
    assert!(said.iter().any(|(what, _)| what == "main/demo/stray"), "{said:?}");
    assert_eq!((totals.objects, totals.same, said.len()), (4, 3, 2), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_cannot_be_read_is_skipped_and_twenty_of_them_in_a_row_end_the_rebuild() {
    const OBJECTS: u64 = 24;
    let world = World::new().await;
    world.origin.serve("/a.txt", "content");
    let row = |number| format!("{} | | | | | a{number}.txt", world.origin.url("/a.txt"));
    let batch = manifest(ManifestProfile::SingleFileBatch, (0..OBJECTS).map(row));
    world.origin.serve("/batch.checkm", batch);
    let daemons = world.start();
    let url = world.origin.url("/batch.checkm");
    let many = json!({"type": "single-file-batch-manifest", "filename": "batch.checkm", "payload_url": url});
    assert_eq!(deposited(&world, many).await.len() as u64, OBJECTS);
    daemons.stop().await;
    let (store, faults) = Faulty::new(Arc::clone(world.services.stores.values().next().unwrap()));
    let root = Root::open(Arc::new(store), "demo".parse().unwrap()).await.unwrap();
    let roots = [NamedRoot { name: "main/demo".to_owned(), root }];
    let target = format!("sqlite:{}", world.directory.path().join("rebuilt.db").display());
    let catalogue = Catalogue::open(&target).await.unwrap();

    // Each is ended by its first request.
    let unreadable = |notes: &[Note]| {
        let is_it = |note: &&Note| matches!(note, Note::Unreadable { what, why } if what.starts_with("ark:/99999/") && why.contains("inventory.json") && why.contains("on purpose"));
        (notes.iter().filter(is_it).count(), notes.len())
    };
    for fault in [Fault::Temporary, Fault::Permanent] {
        faults.add(Rule::new(fault).on(Operation::Get).times(20));
        let mut notes = Vec::new();
        let error = rebuild(&catalogue, &roots, |note| notes.push(note)).await.unwrap_err();
        assert!(matches!(error, RebuildError::Away(_)) && error.to_string().contains("20 objects in a row"), "{error}");
        assert_eq!(unreadable(&notes), (19, 19), "{notes:?}");
        faults.clear();
    }
    faults.add(Rule::new(Fault::Permanent).on(Operation::Get).times(19));
    let (totals, notes) = rebuilt(&catalogue, &roots).await;
    let some = Totals { objects: OBJECTS, unreadable: 19, added: OBJECTS - 19, ..Totals::default() };
    assert_eq!((totals, unreadable(&notes)), (some, (19, 19)), "{notes:?}");
    faults.clear();
    let (totals, notes) = rebuilt(&catalogue, &roots).await;
    let rest = Totals { objects: OBJECTS, added: 19, same: OBJECTS - 19, ..Totals::default() };
    assert_eq!((totals, notes), (rest, Vec::new()));

    // One that could be read first, and not when its rows are compared with the store.
    let gets = faults.calls(Operation::Get);
    rebuilt(&catalogue, &roots).await;
    let last = faults.calls(Operation::Get) - gets;
    faults.add(Rule::new(Fault::Temporary).on(Operation::Get).one_in(last));
    let (totals, notes) = rebuilt(&catalogue, &roots).await;
    let one = Totals { objects: OBJECTS, unreadable: 1, same: OBJECTS, ..Totals::default() };
    assert_eq!((totals, notes.len()), (one, 1), "{notes:?}");
    faults.clear();
    faults.add(Rule::new(Fault::Permanent).on(Operation::List));
    assert!(matches!(rebuild(&catalogue, &roots, |_| {}).await, Err(RebuildError::Store(_))));
}
