//! Orders over many.

use super::world::World;

const SURE: [&str; 3] = ["--yes", "--reason", "the disk is replaced"];

#[tokio::test]
async fn all_that_match_are_done_and_those_that_cannot_be_are_named() {
    let world = World::new("bulk").await;
    world.batch(1, "Reporting").await;
    for number in 100..400 {
        world.job(number, 1, "Failed", "no space left on device 7").await;
    }
    world.ephemeral("/jobs/jid0000000150/lock").await;
    world.run_with("jobs resume", &SURE).await.is(2, &["say which jobs, or --all"]);
    world.run_with("jobs resume --state failed --limit 5", &SURE).await.is(2, &["--limit", "all that match"]);
    world.run_with("jobs resume --state deleted --text nowhere", &SURE).await.is(0, &["no jobs match"]);

    let failures = world.run("failures -o json").await.json();
    let group = failures["items"][0]["group"].as_str().unwrap();
    assert_eq!(failures["items"][0]["count"], 300);
    let ran = world.run_with(&format!("jobs --state failed --group {group} resume"), &SURE).await;
    ran.is(6, &["299 done, 1 not done", "jid0000000150"]);
    for number in [100, 250, 399] {
        assert_eq!(world.state(number).await["status"], "Storing");
    }
    // The one that is locked, and the one of another group.
    assert_eq!(
        [world.state(150).await["status"].clone(), world.state(9).await["status"].clone()],
        ["Failed", "Failed"]
    );
    let (ordered, outcomes): (Vec<_>, Vec<_>) = world.audit().into_iter().partition(|line| line["record"] == "ordered");
    assert_eq!((ordered.len(), &ordered[0]["count"]), (1, &300.into()));
    assert_eq!(outcomes.len(), 301, "one for each and one for all");

    let view = world.run_with("jobs --batch 1 --state storing priority 1 -o json", &SURE).await.json();
    assert_eq!((&view["done"], &view["not_done"]), (&299.into(), &0.into()));
    let tree = world.tree().await;
    assert_eq!(tree.keys().filter(|path| path.starts_with("/jobs/states/storing/01-")).count(), 299);
}

#[tokio::test]
async fn a_collection_is_released_with_its_jobs_in_that_order() {
    let world = World::new("release").await;
    world.run("collection release c10 --dry-run").await.is(0, &["1 of its jobs are Held"]);
    world
        .run_with("collection release c10 --with-jobs", &SURE)
        .await
        .is(0, &["release collection:c10: done", "1 done"]);
    assert_eq!(world.state(10).await["status"], "Pending");
    assert!(!world.tree().await.contains_key("/locks/collections/c10"));
}
