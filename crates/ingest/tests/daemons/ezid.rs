//! Identifiers that are registered with EZID.

use std::time::Duration;

use queuekeeper_ingest::spec::JobSpec;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_testkit::ezid::{Ezid, EzidFault, Metadata};
use queuekeeper_testkit::wait::eventually_some;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::settings::quick;
use super::world::{Daemons, SESSION, World, services};

const LIMIT: Duration = Duration::from_mins(5);

/// The password, which nothing may show.
const SECRET: &str = "very-secret";

/// A world with a profile whose identifiers a service registers.
async fn world(password: &str) -> (World, Ezid) {
    world_with(password, "").await
}

/// The same with more keys of its minter.
async fn world_with(password: &str, more: &str) -> (World, Ezid) {
    let (world, ezid) = (World::with(quick()).await, Ezid::start("merritt", SECRET).await);
    let address = ezid.address();
    let at = |name: &str| world.directory.path().join("profiles").join(name);
    let credentials = format!("\"{address}\": {{username: merritt, password: {password}}}\n");
    std::fs::write(at("registered.credentials"), credentials).unwrap();
    let profile = format!(
        "name: registered\nowner: ark:/99999/owner\nstore: main\nspace: demo\n\
         minter: {{kind: ezid, shoulder: ark:/99999/fk4, url: \"http://{address}\"{more}}}\n\
         internal_hosts: [\"{}\", \"{address}\"]\ncredentials_file: registered.credentials\n",
        world.origin.address()
    );
    std::fs::write(at("registered.yaml"), profile).unwrap();
    world.origin.serve("/a.txt", "content");
    (world, ezid)
}

fn deposit(world: &World) -> Value {
    let url = world.origin.url("/a.txt");
    let title = "100 % of it: a title\r\nwith lines";
    json!({"type": "file", "filename": "a.txt", "payload_url": url, "profile": "registered", "title": title})
}

/// Daemons on a runtime of their own, which can be ended with all that runs there.
async fn start_process(world: &World) -> (Runtime, Daemons) {
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let services = services(world.directory.path(), quick()).await;
    let daemons = {
        let _here = process.enter();
        world.start_with(services, Duration::from_secs(4))
    };
    (process, daemons)
}

/// What came, as methods and statuses.
fn came(ezid: &Ezid) -> Vec<String> {
    ezid.take_requests().iter().map(|request| format!("{} {}", request.method, request.status)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identifier_is_registered_once_through_trouble_and_the_end_of_a_process() {
    let (world, ezid) = world(SECRET).await;
    let daemons = world.start_anew(quick(), SESSION).await;
    ezid.fail([EzidFault::Status(503), EzidFault::Status(429)]);
    let (batch, _) = world.deposit(deposit(&world)).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(came(&ezid), ["PUT 503", "PUT 429", "PUT 201"]);
    let job = report.completed[0];
    let ark = world.ark(job).await;
    let identifiers = ezid.identifiers();
    assert_eq!(identifiers.keys().collect::<Vec<_>>(), [&ark]);
    let registered = &identifiers[&ark];
    let spec = JobSpec::of(&world.job(job).await).unwrap();
    assert_eq!(registered["queuekeeper.job"], spec.uuid.to_string());
    assert_eq!(registered["_profile"], "erc");
    let erc = &registered["erc"];
    assert!(erc.contains("who: A creator") && erc.contains("100 % of it: a title") && erc.contains(&ark), "{erc}");
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(registered) FROM identifiers"), [json!([1, 1])]);

    daemons.stop().await;

    // It is registered, and the process is killed before it knows: the next one finds it by its mark.
    let (process, daemons) = start_process(&world).await;
    ezid.fail([EzidFault::NoAnswer]);
    let (batch, _) = world.deposit(deposit(&world)).await;
    eventually_some(LIMIT, "the second one is registered", async || (ezid.identifiers().len() == 2).then_some(()))
        .await;
    // With all that runs there, whatever it waits for.
    process.shutdown_background();
    drop(daemons);
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(registered) FROM identifiers"), [json!([2, 1])]);
    assert_eq!(came(&ezid), ["PUT 201"]);
    let daemons = world.start_anew(quick(), SESSION).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(came(&ezid), ["PUT 400", "GET 200"]);
    let ark = world.ark(report.completed[0]).await;
    assert!(ezid.identifiers().len() == 2 && ezid.identifiers().contains_key(&ark));
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(registered) FROM identifiers"), [json!([2, 2])]);
    world.check_object(&ark, 1).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_have_registered_is_theirs_and_a_refusal_is_one_sentence() {
    let (world, ezid) = world(SECRET).await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let failed = async |world: &World| {
        let (batch, _) = world.deposit(deposit(world)).await;
        let (state, report) = world.ended(batch).await;
        assert_eq!(state, BatchState::Failed, "{:?}", world.jobs(batch).await);
        let job = world.job(report.failed[0]).await;
        assert_eq!(job.status().value.last_successful, Some(JobState::Downloading));
        job.status().value.message.into_owned()
    };
    let others = |mark: &str| Metadata::from([("queuekeeper.job".to_owned(), mark.to_owned())]);
    for metadata in [Metadata::new(), others("0b9f3a0e-0000-4000-8000-000000000000")] {
        ezid.fail([EzidFault::Taken(metadata)]);
        let message = failed(&world).await;
        assert!(message.contains("is registered at http://") && message.ends_with("but not by this job"), "{message}");
    }
    ezid.fail([EzidFault::Status(403)]);
    let message = failed(&world).await;
    assert!(message.contains("403") && message.contains("out of order"), "{message}");
    assert_eq!(came(&ezid), ["PUT 400", "GET 200", "PUT 400", "GET 200", "PUT 403"]);
    daemons.stop().await;

    let (world, ezid) = self::world("another-secret").await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let message = failed(&world).await;
    assert!(message.contains("401") && message.contains("unauthorized") && message.lines().count() == 1, "{message}");
    assert!(!message.contains("secret") && !message.contains("merritt:"), "{message}");
    assert_eq!(came(&ezid), ["PUT 401"], "it is not tried again");
    assert!(ezid.identifiers().is_empty());
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identifier_leads_to_where_its_object_is_seen_and_belongs_to_whom_the_profile_names() {
    let more = ", target: \"https://repository.example/objects/\", owner: library";
    let (world, ezid) = world_with(SECRET, more).await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let (batch, _) = world.deposit(deposit(&world)).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let ark = world.ark(report.completed[0]).await;
    let registered = &ezid.identifiers()[&ark];
    assert_eq!(registered["_target"], format!("https://repository.example/objects/{ark}"));
    assert_eq!((&*registered["_owner"], registered.get("_status")), ("library", None));
    assert_eq!(came(&ezid), ["PUT 201"]);
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_only_the_service_makes_names_each_object_has_one_and_it_is_public_once_it_is_reserved_here() {
    let (world, ezid) = world_with(SECRET, ", mints: true, target: \"https://repository.example/objects/\"").await;
    ezid.mint_only();
    let daemons = world.start_anew(quick(), SESSION).await;
    let mut said = deposit(&world);
    said["localID"] = "obj-1".into();
    // It is away at first.
    ezid.fail([EzidFault::Status(503)]);
    let (batch, _) = world.deposit(said.clone()).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(came(&ezid), ["POST 503", "POST 201", "GET 200", "POST 200"]);
    let ark = world.ark(report.completed[0]).await;
    let registered = &ezid.identifiers()[&ark];
    assert_eq!((&*registered["_status"], &*registered["_profile"]), ("public", "erc"));
    assert_eq!(registered["_target"], format!("https://repository.example/objects/{ark}"));
    assert!(registered["erc"].contains(&ark), "{registered:?}");

    // The next version of the object keeps it.
    said["update"] = true.into();
    let (batch, _) = world.deposit(said.clone()).await;
    let (_, report) = world.ended(batch).await;
    assert_eq!(world.ark(report.completed[0]).await, ark);
    assert_eq!((came(&ezid).len(), ezid.identifiers().len()), (0, 1));

    // What was made for a job that ended before it was known here: only the mark says whose it is.
    daemons.stop().await;
    let (process, daemons) = start_process(&world).await;
    said["localID"] = "obj-2".into();
    // It is made public, and the process is killed before it knows.
    ezid.fail([EzidFault::None, EzidFault::NoAnswer]);
    let (batch, _) = world.deposit(said).await;
    let is_public = async || {
        let all = ezid.identifiers();
        (all.len() == 2 && all.values().all(|found| found["_status"] == "public")).then_some(())
    };
    eventually_some(LIMIT, "it is public", is_public).await;
    process.shutdown_background();
    drop(daemons);
    let daemons = world.start_anew(quick(), SESSION).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let second = world.ark(report.completed[0]).await;
    assert!(ezid.identifiers().len() == 2 && second != ark && ezid.identifiers().contains_key(&second));
    world.check_object(&ark, 2).await;
    world.check_object(&second, 1).await;
    daemons.stop().await;
}
