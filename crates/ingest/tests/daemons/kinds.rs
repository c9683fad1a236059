//! Packages of each kind, and the versions of objects that exist.

use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_queue::state::BatchState;
use serde_json::{Value, json};

use super::contents::{manifest, sha256, tar_gz, zip};
use super::settings::quick;
use super::world::{SESSION, World};

/// Deposits what becomes one job; the answer is its object.
async fn completed(world: &World, say: Value) -> String {
    let (batch, _) = world.deposit(say).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed.len()), (BatchState::Completed, 1), "{:?}", world.jobs(batch).await);
    world.ark(report.completed[0]).await
}

/// Deposits what becomes one job that fails; the answer is its message.
async fn failed(world: &World, say: Value) -> String {
    let (batch, _) = world.deposit(say).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.failed.len()), (BatchState::Failed, 1), "{:?}", world.jobs(batch).await);
    let message = world.message(report.failed[0]).await;
    assert!(!message.contains('\n') && message.len() <= 1_024, "{message}");
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_package_becomes_an_object_and_later_deposits_its_next_versions() {
    let world = World::with(quick()).await;
    let url = |path: &str| world.origin.url(path);
    world.origin.serve("/one.zip", zip(&[("a.txt", "alpha"), ("b/c.txt", "gamma")]));
    world.origin.serve("/two.zip", zip(&[("d.txt", "delta"), ("mrt-delete.txt", "producer/b/c.txt\n")]));
    world.origin.serve("/one.tar.gz", tar_gz(&[("x.txt", "xi"), ("y/z.txt", "zeta")]));
    for (path, content) in [("/p", "pi"), ("/q", "koppa"), ("/r", "rho")] {
        world.origin.serve(path, content);
    }
    let row = |path: &str, content: &str, name: &str| {
        format!("{} | sha256 | {} | {} | | {name} | text/plain", url(path), sha256(content), content.len())
    };
    let rows = [row("/p", "pi", "p.txt"), row("/q", "koppa", "dir/q.txt"), row("/r", "rho", "r.txt")];
    world.origin.serve("/good.checkm", manifest(ManifestProfile::Ingest, rows.clone()));
    let wrong = row("/r", "sigma!!", "r.txt").replace(" | 7 | ", " | 3 | ");
    world.origin.serve("/bad.checkm", manifest(ManifestProfile::Ingest, [rows[0].clone(), wrong]));
    let twins = ["p", "q"].map(|name| format!("{} | | | | | {name}.txt | | twin", url(&format!("/{name}"))));
    let manifest_of_twins = manifest(ManifestProfile::SingleFileBatch, twins);
    world.origin.serve("/twins.checkm", manifest_of_twins.clone());
    world.add_profile("sibling", "");
    let daemons = world.start_anew(quick(), SESSION).await;

    let container = |name: &str, update: bool| {
        json!({"type": "container", "filename": name, "payload_url": url(&format!("/{name}")), "localID": "obj-1",
               "update": update})
    };
    let ark = completed(&world, container("one.zip", false)).await;
    assert_eq!(world.producer(&ark, 1).await, ["a.txt", "b/c.txt"]);
    world.check_object(&ark, 1).await;

    // An update carries over what it neither brings nor leaves out.
    assert_eq!(completed(&world, container("two.zip", true)).await, ark);
    assert_eq!(world.producer(&ark, 2).await, ["a.txt", "d.txt", "mrt-delete.txt"]);
    let files = world.services.catalogue.files(&ark, 2, "", 100).await.unwrap();
    let kept = files.iter().find(|file| file.path == "producer/a.txt").unwrap();
    assert!(kept.content_path.starts_with("v1/content/") && kept.size == 5 && !kept.is_billable, "{kept:?}");
    world.check_object(&ark, 2).await;

    // What is added is all that the next version has.
    let add = json!({"type": "file", "filename": "p.txt", "payload_url": url("/p"), "localID": "obj-1"});
    assert_eq!(completed(&world, add).await, ark);
    assert_eq!(world.producer(&ark, 3).await, ["p.txt"]);
    let named = json!({"type": "file", "filename": "q.txt", "payload_url": url("/q"), "objectID": ark});
    assert_eq!(completed(&world, named.clone()).await, ark);
    world.check_object(&ark, 4).await;

    // But another collection cannot add to it.
    let mut foreign = named;
    for collection in ["other", "sibling"] {
        foreign["profile"] = collection.into();
        let message = failed(&world, foreign.clone()).await;
        assert_eq!(message, format!("{ark} is not an object of collection {collection}"));
    }
    // Nor does a local id lead to an ARK of another collection.
    foreign = json!({"type": "file", "filename": "p.txt", "payload_url": url("/p"), "localID": "obj-1"});
    foreign["profile"] = "sibling".into();
    let message = failed(&world, foreign).await;
    assert_eq!(message, "the local ids \"obj-1\" belong to an object that is not in collection sibling");
    world.check_object(&ark, 4).await;

    let tarred = json!({"type": "container", "filename": "one.tar.gz", "payload_url": url("/one.tar.gz")});
    let tarred = completed(&world, tarred).await;
    assert_eq!(world.producer(&tarred, 1).await, ["x.txt", "y/z.txt"]);
    world.check_object(&tarred, 1).await;

    let listed =
        |name: &str| json!({"type": "object-manifest", "filename": name, "payload_url": url(&format!("/{name}"))});
    let good = completed(&world, listed("good.checkm")).await;
    assert_eq!(world.producer(&good, 1).await, ["dir/q.txt", "p.txt", "r.txt"]);
    world.check_object(&good, 1).await;
    let message = failed(&world, listed("bad.checkm")).await;
    for part in [url("/r"), sha256("sigma!!"), sha256("rho"), "sha256".to_owned()] {
        assert!(message.contains(&part), "{message} does not name {part}");
    }

    // A batch's manifest that is not the one which was deposited becomes no job.
    let twins = |digest: &str| {
        json!({"type": "single-file-batch-manifest", "filename": "twins.checkm", "payload_url": url("/twins.checkm"),
               "digestType": "sha256", "digestValue": digest})
    };
    let (batch, _) = world.deposit(twins(&sha256("another"))).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.len()), (BatchState::Failed, 0));
    let message = world.queue.load_batch(batch).await.unwrap().status().value.message.into_owned();
    assert!(message.contains("manifest \"twins.checkm\": expected the sha256 digest"), "{message}");
    let (batch, _) = world.deposit(twins(&sha256(&manifest_of_twins))).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed.len()), (BatchState::Completed, 2), "{:?}", world.jobs(batch).await);
    let (first, second) = (world.ark(report.completed[0]).await, world.ark(report.completed[1]).await);
    assert_eq!(first, second);
    world.check_object(&first, 2).await;
    daemons.stop().await;
    // Of the jobs that failed the files are kept, of the batch that failed its manifest, of all others none.
    assert_eq!(world.left().len(), 5, "{:?}", world.left());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_is_what_the_manifest_in_it_says_or_fails_for_good() {
    let world = World::with(quick()).await;
    let alpha = format!("a.txt | sha256 | {} | 5 | | text/plain", sha256("alpha"));
    // Not an algorithm that is computed while unpacking.
    let gamma = "b/c%20d.txt | md5 | 05b048d7242cb7b8b57cfa3b1d65ecea | 5".to_owned();
    let of = |rows: &[&String]| manifest(ManifestProfile::Object, rows.iter().map(|row| (*row).clone()));
    let right = of(&[&alpha, &gamma]);
    let serve = |name: &str, manifest: &str| {
        let files = [("mrt-manifest.txt", manifest), ("a.txt", "alpha"), ("b/c d.txt", "gamma")];
        world.origin.serve(&format!("/{name}"), zip(&files));
        json!({"type": "container", "filename": name, "payload_url": world.origin.url(&format!("/{name}"))})
    };
    let daemons = world.start();

    let ark = completed(&world, serve("right.zip", &right)).await;
    assert_eq!(world.producer(&ark, 1).await, ["a.txt", "b/c d.txt", "mrt-manifest.txt"]);
    world.check_object(&ark, 1).await;

    let (first, second) = ("none/1.txt".to_owned(), "none/2.txt".to_owned());
    let differs = "the container differs from its mrt-manifest.txt: ";
    let md5 = "05b048d7242cb7b8b57cfa3b1d65ecea";
    let other = md5.replace("05", "06");
    for (name, manifest, expected) in [
        (
            "missing.zip",
            of(&[&first, &alpha, &gamma, &second]),
            format!(
                "{differs}file \"none/1.txt\" of line 3 of the manifest is not in the container; \
                 file \"none/2.txt\" of line 6 of the manifest is not in the container"
            ),
        ),
        ("unlisted.zip", of(&[&alpha]), format!("{differs}file \"b/c d.txt\" of the container is not in its manifest")),
        (
            "size.zip",
            right.replacen(" | 5 |", " | 6 |", 1),
            format!("{differs}file \"a.txt\" has 5 bytes, but 6 in the manifest"),
        ),
        (
            "digest.zip",
            right.replace(md5, &other),
            format!("{differs}file \"b/c d.txt\" does not have the md5 digest {other} of the manifest, but {md5}"),
        ),
        (
            "garbage.zip",
            "\u{0}PK garbage |||".to_owned(),
            "mrt-manifest.txt of the container: invalid manifest: line 1, column 1: the name has a control character; \
             line 1, column 1: the manifest does not end with '#%eof': it was cut off; send all of it"
                .to_owned(),
        ),
    ] {
        assert_eq!(failed(&world, serve(name, &manifest)).await, expected);
    }
    daemons.stop().await;
}
