//! The search in the header: any id, UUID, session, mnemonic or text leads to what it names.

use serde_json::json;

use super::world::{LIMIT, OPERATOR, VIEWER, World};
use queuekeeper_testkit::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_text_leads_to_the_one_thing_that_it_names_else_to_all_that_contain_it() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for the manifest of <b>maps</b>").await;
    world.failed_job(2, "404 for the manifest of charts").await;
    world.failed_job(11, "no space").await;

    // Which text leads where; relative, because a proxy may serve the pages below any prefix.
    for (text, leads) in [
        ("jid0000000001", "jobs/jid0000000001"),
        ("  JID0000000001 ", "jobs/jid0000000001"),
        ("bid0000000007", "batches/bid0000000007"),
        ("uuid-7", "batches/bid0000000007"),
        ("0x100005a3c2e0001", "locks?session=0x100005a3c2e0001"),
        ("charts", "jobs/jid0000000002"),
        ("demo", "jobs?collection=demo"),
        ("", "jobs"),
        ("   ", "jobs"),
    ] {
        let found = world.get(VIEWER, &format!("/search?text={}", text.replace(' ', "+"))).await;
        assert_eq!((found.code, &*found.location), (303, leads), "{text:?}: {}", found.text);
    }

    eventually(LIMIT, "the groups of failures", async || world.json("/api/v1/failures").await["total"] == 3).await;
    let group = world.json("/api/v1/failures").await["items"][0]["group"].as_str().unwrap().to_owned();
    let found = world.get(VIEWER, &format!("/search?text={group}")).await;
    assert_eq!((found.code, found.location), (303, format!("jobs?group={group}")), "{}", found.text);

    let several = world.get(VIEWER, "/search?text=manifest").await;
    assert_eq!(several.code, 200);
    assert!(several.text.contains("<h2>2 jobs</h2>"), "{}", several.text);
    for part in ["href=\"./jobs/jid0000000001\"", "href=\"./jobs/jid0000000002\"", "href=\"./jobs?text=manifest\""] {
        assert!(several.text.contains(part), "{part}: {}", several.text);
    }
    // States are named as on the other pages.
    assert!(several.text.contains("data-name=\"State\">Failed<"), "{}", several.text);
    // One kind of things with nothing of the others: `no space` is one job's message, `jid` is part of all ids.
    assert!(world.get(VIEWER, "/search?text=jid00").await.text.contains("<h2>3 jobs</h2>"));

    // An action's id leads to its outcome.
    let hold = json!({"action": "hold", "on": "collection:demo", "reason": "a full disk"});
    let request = world.http.post(format!("{}/api/v1/actions", world.base)).basic_auth(OPERATOR, Some(OPERATOR));
    let answer = request.header("content-type", "application/json").body(hold.to_string()).send().await.unwrap();
    let held: serde_json::Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let id = held["id"].as_str().unwrap();
    let found = world.get(VIEWER, &format!("/search?text={id}")).await;
    assert_eq!((found.code, found.location), (303, format!("actions/{id}")), "{}", found.text);
    // The trail is filtered by the name alone, and by a batch for its jobs.
    let resume = json!({"action": "resume", "on": "jid0000000001", "reason": "there is room"});
    let request = world.http.post(format!("{}/api/v1/actions", world.base)).basic_auth(OPERATOR, Some(OPERATOR));
    request.header("content-type", "application/json").body(resume.to_string()).send().await.unwrap();
    for (target, actions) in [("demo", &["hold"][..]), ("bid0000000007", &["resume"]), ("bid0000000008", &[])] {
        let list = world.json(&format!("/api/v1/audit?target={target}")).await;
        let found: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| item["action"].clone()).collect();
        assert_eq!(found, actions, "{target}: {list:#}");
    }

    // What does not exist is found nowhere, and is not taken for a page that does not exist.
    for text in ["jid0000000099", "none", "%3Cscript%3Ealert(1)%3C/script%3E", "nothing%20of%20the%20kind"] {
        let nothing = world.get(VIEWER, &format!("/search?text={text}")).await;
        assert_eq!(nothing.code, 200, "{text}");
        assert!(nothing.text.contains("Nothing in the queue matches."), "{text}: {}", nothing.text);
        assert!(!nothing.text.contains("<script>alert"), "{text}");
    }
    let long = world.get(VIEWER, &format!("/search?text={}", "x".repeat(2_000))).await;
    assert_eq!(long.code, 400, "{}", long.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn held_collections_and_paused_queues_are_named_with_who_when_and_why() {
    let world = Box::pin(World::start()).await;
    let hold = json!({"action": "hold", "on": "collection:demo", "reason": "the <b>store</b> is full"});
    let request = world.http.post(format!("{}/api/v1/actions", world.base)).basic_auth(OPERATOR, Some(OPERATOR));
    let answer = request.header("content-type", "application/json").body(hold.to_string()).send().await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    // A lock that another program made says neither who nor why.
    world.create("/locks/collections/other", "").await;
    world.create("/locks/queue/ingest", "").await;
    eventually(LIMIT, "the mirror shows them", async || {
        let overview = world.json("/api/v1/overview").await;
        overview["collections_held"] == 2 && !overview["queues"][0]["paused_since"].is_null()
    })
    .await;

    let overview = world.json("/api/v1/overview").await;
    let held = overview["held"].as_array().unwrap();
    assert_eq!(
        (&held[0]["collection"], &held[0]["by"], &held[0]["reason"], held[0]["since"].is_string()),
        (&json!("demo"), &json!("oscar"), &json!("the <b>store</b> is full"), true)
    );
    assert_eq!((&held[1]["collection"], &held[1]["by"]), (&json!("other"), &json!("")));
    assert_eq!((&overview["queues"][0]["by"], &overview["queues"][1]["paused_since"]), (&json!(""), &json!(null)));

    let locks = world.json("/api/v1/locks?kind=collection").await;
    assert_eq!((&locks["items"][0]["by"], &locks["items"][1]["reason"]), (&json!("oscar"), &json!("")));
    let sessions = world.json("/api/v1/locks?kind=job").await;
    assert!(sessions["items"].as_array().unwrap().iter().all(|lock| lock["by"].is_null()));

    for page in ["/", "/locks"] {
        let text = world.get(VIEWER, page).await.text;
        assert!(text.contains("by oscar: the &#60;b&#62;store&#60;/b&#62; is full"), "{page}: {text}");
    }
    let attention = &world.get(VIEWER, "/").await.text;
    assert!(attention.contains("<p>demo and other. "), "{attention}");
}
