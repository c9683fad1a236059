//! Deposits from their batch to their report.

use queuekeeper_queue::state::BatchState;
use queuekeeper_store::ocfl::Root;
use serde_json::json;

use super::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_becomes_an_object_with_an_identifier_an_inventory_row_and_a_report() {
    let world = World::new().await;
    world.origin.serve("/a.txt", "content");
    let daemons = world.start();
    let (batch, _) =
        world.deposit(json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/a.txt")})).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let job = world.job(report.completed[0]).await;
    let ark = job.identifiers().value.ark.into_owned();
    assert!(ark.starts_with("ark:/99999/fk4"), "{ark}");

    let object = world.services.catalogue.object(&ark).await.unwrap().unwrap();
    assert_eq!((object.current_version, object.title.as_deref()), (1, Some("A title")));
    let files = world.services.catalogue.files(&ark, 1, "", 100).await.unwrap();
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    let system = ["mrt-dc.xml", "mrt-erc.txt", "mrt-ingest.txt", "mrt-membership.txt", "mrt-mom.txt", "mrt-owner.txt"];
    let expected: Vec<_> =
        ["producer/a.txt".to_owned()].into_iter().chain(system.map(|name| format!("system/{name}"))).collect();
    assert_eq!(paths, expected);
    assert_eq!(files[0].size, 7);

    let store = world.services.stores.values().next().unwrap().clone();
    let root = Root::open(store, "demo".parse().unwrap()).await.unwrap();
    let verified = root.object(&ark).unwrap().verify().await.unwrap();
    assert!(verified.is_valid(), "{verified:?}");
    assert_eq!(world.left(), Vec::<String>::new());
    daemons.stop().await;
}
