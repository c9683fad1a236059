//! What an operator did to a job is no failure and no backlog, and names them wherever the job is shown.

use serde_json::{Value, json};

use super::world::{LIMIT, OPERATOR, World};
use queuekeeper_testkit::wait::eventually;

async fn act(world: &World, action: &str, job: &str, reason: &str) {
    let action = json!({"action": action, "on": job, "reason": reason});
    let request = world.http.post(format!("{}/api/v1/actions", world.base)).basic_auth(OPERATOR, Some(OPERATOR));
    let answer = request.header("content-type", "application/json").body(action.to_string()).send().await.unwrap();
    let (code, text) = (answer.status(), answer.text().await.unwrap());
    assert!(code.is_success(), "{action}: {code} {text}");
}

/// The job once it is in that state, as the API has it.
async fn job_in(world: &World, job: &str, state: &str) -> Value {
    let path = format!("/api/v1/jobs/{job}");
    eventually(LIMIT, &format!("{job} is {state}"), async || world.json(&path).await["state"] == state).await;
    world.json(&path).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_an_operator_held_or_failed_names_them_and_is_counted_apart() {
    let world = Box::pin(World::start()).await;
    world.job(1, "Pending", "").await;
    world.job(2, "Processing", "").await;
    world.failed_job(3, "404 for the manifest").await;
    act(&world, "hold", "jid0000000001", "a court <order>").await;
    act(&world, "fail", "jid0000000002", "the wrong file").await;

    let held = job_in(&world, "jid0000000001", "held").await;
    assert_eq!(held["message"], "By oscar with queuekeeper: a court <order>");
    assert_eq!(held["diagnosis"]["headline"], "An operator is holding it.");
    let moved = held["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&moved["to"], &moved["actor"], &moved["reason"]),
        (&json!("held"), &json!("oscar"), &json!("a court <order>"))
    );
    let page = world.get(OPERATOR, "/jobs/jid0000000001").await.text;
    for reported in ["Pending → Held, by oscar: a court &#60;order&#62;", "“oscar” has held it for"] {
        assert!(page.contains(reported), "{reported}: {page}");
    }

    let failed = job_in(&world, "jid0000000002", "failed").await;
    assert_eq!(failed["diagnosis"]["headline"], "An operator moved it to Failed.");
    let cause = failed["diagnosis"]["causes"][0]["sentence"].as_str().unwrap();
    assert!(
        cause.starts_with("“oscar” moved it to Failed in Downloading") && cause.ends_with("“the wrong file”"),
        "{cause}"
    );

    // Only what failed by itself is grouped by its cause.
    let failures = world.json("/api/v1/failures").await;
    assert_eq!((&failures["total"], &failures["items"][0]["jobs"]), (&json!(1), &json!(["jid0000000003"])));

    let overview = world.json("/api/v1/overview").await;
    let kinds: Vec<_> = overview["attention"].as_array().unwrap().iter().map(|item| &item["kind"]).collect();
    assert!(kinds.contains(&&json!("held_by_operator")) && !kinds.contains(&&json!("held_jobs")), "{kinds:?}");

    // The message before it is kept when the job goes on, too.
    act(&world, "release", "jid0000000001", "the court is done").await;
    let released = job_in(&world, "jid0000000001", "pending").await;
    let reasons: Vec<_> = released["history"].as_array().unwrap().iter().map(|event| &event["reason"]).collect();
    assert!(reasons.ends_with(&[&json!("a court <order>"), &json!("the court is done")]), "{reasons:?}");
}
