//! Actions as an operator gives them on the pages, over a real server beside a real ZooKeeper.

use std::time::Instant;

use serde_json::json;

use super::world::{ADMIN, LIMIT, OPERATOR, Page, VIEWER, World, with};
use queuekeeper_testkit::wait::eventually;

const RESUME: &str = "/action?action=resume&on=jid0000000001";
const OWN: &str = "same-origin";

/// Waits until an action is over, and gives its page.
async fn over(world: &World, place: &str) -> Page {
    let path = format!("/{}", place.trim_start_matches("../"));
    eventually(LIMIT, "the action is over", async || !world.get(VIEWER, &path).await.text.contains(">In progress<"))
        .await;
    world.get(VIEWER, &path).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_shown_first_then_executed_once_and_recorded() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let ask = world.get(OPERATOR, RESUME).await;
    assert_eq!(ask.code, 200, "{}", ask.text);
    let cancel = "href=\"./jobs/jid0000000001\">Cancel<";
    let here = "href=\"./jobs\" aria-current=\"page\">Jobs";
    for said in ["Resume jid0000000001?", ">Failed<", ">Downloading<", "05-jid0000000001", "act as oscar", cancel, here]
    {
        assert!(ask.text.contains(said), "{said} is not in {}", ask.text);
    }
    assert_eq!(world.state(1).await, "Failed", "to ask changes nothing");
    assert!(world.audited().is_empty());

    // Without a reason nothing is done, and what was chosen is kept.
    let form = ask.form("./action");
    let bare = world.post(OPERATOR, "/action", &with(&form, &[("to", "processing"), ("reason", " ")]), OWN).await;
    assert_eq!(bare.code, 400, "{}", bare.text);
    assert!(
        bare.text.contains("requires a reason") && bare.text.contains("value=\"processing\" selected"),
        "{}",
        bare.text
    );
    assert_eq!(world.state(1).await, "Failed");

    let sent = with(&form, &[("reason", "the <node> is back")]);
    let given = world.post(OPERATOR, "/action", &sent, OWN).await;
    assert_eq!(given.code, 303, "{}", given.text);
    assert_eq!(world.state(1).await, "Downloading");
    // The same form again is the same action.
    let again = world.post(OPERATOR, "/action", &sent, OWN).await;
    assert_eq!((again.code, &again.location), (303, &given.location));
    assert_eq!(world.audited().len(), 2, "one action, and its outcome");

    let done = over(&world, &given.location).await;
    for said in [">Done<", "Failed → Downloading", "the &#60;node&#62; is back", "oscar, operator, via web"] {
        assert!(done.text.contains(said), "{said} is not in {}", done.text);
    }
    let audit = world.get(VIEWER, "/audit?text=jid0000000001&action=resume&outcome=done").await;
    assert!(audit.text.contains("1 entry matches.") && audit.text.contains(&given.location), "{}", audit.text);
    assert!(world.get(VIEWER, "/audit?actor=ada").await.text.contains("No entry matches."));
    let list = world.json("/api/v1/audit").await;
    assert_eq!((&list["total"], &list["items"][0]["before"]), (&1.into(), &"failed".into()), "{list}");
    assert_eq!(world.get(VIEWER, "/audit?action=explode").await.code, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_changed_since_it_was_seen_is_shown_again_and_not_touched() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let form = world.get(OPERATOR, RESUME).await.form("./action");
    let (data, _) = world.client.get_data("/jobs/jid0000000001/status").await.unwrap();
    world.client.set_data("/jobs/jid0000000001/status", &data, None).await.unwrap();
    let stale = world.post(OPERATOR, "/action", &with(&form, &[("reason", "disk replaced")]), OWN).await;
    assert_eq!(stale.code, 409, "{}", stale.text);
    assert!(
        stale.text.contains("Nothing was done") && stale.text.contains("value=\"disk replaced\""),
        "{}",
        stale.text
    );
    assert_eq!(world.state(1).await, "Failed");
    // What the page shows now may be requested.
    let given = world.post(OPERATOR, "/action", &stale.form("./action"), OWN).await;
    assert_eq!(given.code, 303, "{}", given.text);
    assert_eq!(world.state(1).await, "Downloading");

    // What cannot be done has no button, and says why.
    let refused = world.get(OPERATOR, RESUME).await;
    assert_eq!(refused.code, 200);
    let (_, main) = refused.text.split_once("<main").unwrap();
    assert!(main.contains("cannot be done now") && !main.contains("<button"), "{main}");
    for (path, code) in [
        ("/action?action=resume&on=jid0000000009", 404),
        ("/action?action=resume&on=nothing", 400),
        ("/action?action=explode&on=jid0000000001", 400),
        ("/action?action=resume&on=jid0000000001&colour=red", 400),
        ("/actions/jid0000000001", 404),
        ("/lists/jid0000000001", 404),
    ] {
        assert_eq!(world.get(OPERATOR, path).await.code, code, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_without_the_role_are_offered_nothing_and_refused() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    world.create("/locks/queue/ingest", "").await;
    let form = world.get(OPERATOR, RESUME).await.form("./action");
    let form = with(&form, &[("reason", "no")]);
    let delete = "/action?action=delete&on=jid0000000001";
    assert_eq!(world.get(VIEWER, RESUME).await.code, 403);
    assert_eq!(world.post(VIEWER, "/action", &form, OWN).await.code, 403);
    assert_eq!(world.post(VIEWER, "/lists", &form, OWN).await.code, 403);
    assert_eq!(world.post(OPERATOR, "/action", &form, "cross-site").await.code, 403);
    assert_eq!(world.get(OPERATOR, delete).await.code, 403);
    assert_eq!(world.get(ADMIN, delete).await.code, 200);
    assert_eq!(world.state(1).await, "Failed");
    assert!(world.audited().is_empty());

    // A page offers what its reader may, also where it is kept up to date for many.
    for path in ["/jobs", "/jobs/jid0000000001", "/failures", "/batches", "/batches/bid0000000007", "/locks", "/access"]
    {
        let seen = world.get(VIEWER, path).await;
        assert_eq!(seen.code, 200, "{path}");
        for offer in ["action?action=", "action=\"./lists\"", "action=\"./action\""] {
            assert!(!seen.text.contains(offer), "{path}: {offer}");
        }
    }
    for (path, offer) in
        [("jobs/jid0000000001", "action?action=resume"), ("failures", "Resume it"), ("locks", "action?action=pause")]
    {
        assert!(world.get(OPERATOR, &format!("/{path}")).await.text.contains(offer), "{path}");
        for (who, is_offered) in [(OPERATOR, true), (VIEWER, false), (OPERATOR, true)] {
            let regions = followed(&world, who, path).await;
            assert_eq!(regions.contains(offer), is_offered, "{who} follows {path}: {regions}");
        }
    }
    let job = "/jobs/jid0000000001";
    assert!(!world.get(OPERATOR, job).await.text.contains("action?action=delete"));
    assert!(world.get(ADMIN, job).await.text.contains("action?action=delete"));
    // The confirmation of an action is not live.
    let query = RESUME.trim_start_matches('/').replace('?', "%3F").replace('&', "%26");
    assert_eq!(world.get(OPERATOR, &format!("/events?page={query}")).await.code, 400);
}

/// The first of what comes to a reader who follows a page.
async fn followed(world: &World, who: &str, page: &str) -> String {
    let request = world.http.get(format!("{}/events?page={page}", world.base)).basic_auth(who, Some(who));
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let (mut text, deadline) = (String::new(), Instant::now() + LIMIT);
    // All regions come at first, and this is the last on every page.
    while !text.split_once("\"name\":\"footer\"").is_some_and(|(_, rest)| rest.contains("\n\n")) {
        assert!(Instant::now() < deadline, "not all regions: {text}");
        text.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().expect("the stream goes on")));
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_frozen_shown_and_carried_out_and_nothing_else_is_touched() {
    let world = Box::pin(World::start()).await;
    for number in 1..=3 {
        world.failed_job(number, "404 for a file").await;
    }
    let failures = world.get(OPERATOR, "/failures").await;
    let all = failures.form("./lists");
    let frozen = world.post(OPERATOR, "/lists", &all, OWN).await;
    assert_eq!(frozen.code, 303, "{}", frozen.text);
    let place = format!("/{}", frozen.location);
    let list = world.get(OPERATOR, &place).await;
    let create = "create /jobs/states/downloading/05-jid0000000001";
    for said in ["Resume 3 jobs?", ">Resume 3 jobs</button>", "Failed → Downloading", "bid0000000007", create] {
        assert!(list.text.contains(said), "{said} is not in {}", list.text);
    }
    assert_eq!(world.get(ADMIN, &place).await.code, 404, "it is somebody else's");
    assert_eq!(world.get(VIEWER, &place).await.code, 403);

    // One more fails alike, and one of the list is changed by another client.
    world.failed_job(4, "404 for a file").await;
    let (data, _) = world.client.get_data("/jobs/jid0000000003/status").await.unwrap();
    world.client.set_data("/jobs/jid0000000003/status", &data, None).await.unwrap();
    let action = format!("../{}", frozen.location);
    assert!(list.form(&action).is_empty() || list.form(&action).iter().all(|(name, _)| name == "reason"));
    let reason = with(&[], &[("reason", "the node is back")]);
    // What is shown now says which of them is skipped, and why.
    eventually(LIMIT, "the mirror has the change", async || {
        let list = world.get(OPERATOR, &place).await.text;
        list.contains("Resume 2 of 3 jobs?")
            && list.contains(">Resume 2 jobs</button>")
            && list.contains("1 of them will be skipped")
            && list.contains("1 has changed since the list was made")
    })
    .await;
    assert_eq!(world.post(OPERATOR, &place, &with(&[], &[("reason", "")]), OWN).await.code, 400);
    assert_eq!(world.post(ADMIN, &place, &reason, OWN).await.code, 404);
    let given = world.post(OPERATOR, &place, &reason, OWN).await;
    assert_eq!(given.code, 303, "{}", given.text);
    let again = world.post(OPERATOR, &place, &reason, OWN).await;
    assert_eq!((again.code, &again.location), (303, &given.location));
    let done = over(&world, &given.location).await;
    let back = "href=\"../jobs?group=";
    for said in ["3 items: 2 done, 1 not done, 0 unknown, 0 left", "jid0000000001", "jid0000000003", "100 %", back] {
        assert!(done.text.contains(said), "{said} is not in {}", done.text);
    }
    for (number, state) in [(1, "Downloading"), (2, "Downloading"), (3, "Failed"), (4, "Failed")] {
        assert_eq!(world.state(number).await, state, "job {number}");
    }
    assert_eq!(world.get(OPERATOR, &place).await.location, given.location, "a list that was requested leads there");

    // All but the ticked ones: those are named, and are not touched.
    let failed = async || world.get(OPERATOR, "/jobs?state=failed&limit=20").await;
    eventually(LIMIT, "the mirror has the change", async || failed().await.text.contains("2 jobs match.")).await;
    let failed = failed().await;
    let others = with(&failed.form("./lists"), &[("action", "resume"), ("which", "others"), ("priority", "")]);
    let none = world.post(OPERATOR, "/lists", &others, OWN).await;
    assert!(none.code == 422 && none.text.contains("Select the jobs to leave out"), "{}", none.text);
    let but = world.post(OPERATOR, "/lists", &with(&others, &[("item", "jid0000000004")]), OWN).await;
    let asked = world.get(OPERATOR, &format!("/{}", but.location)).await.text;
    assert!(asked.contains("Left out: jid0000000004.") && asked.contains("<h1>Resume 1 job?</h1>"), "{asked}");

    all_but_some_by_the_api(&world).await;

    // Jobs that are ticked, and none.
    let jobs = world.get(OPERATOR, "/jobs?state=failed&limit=20").await;
    let bar = with(&jobs.form("./lists"), &[("action", "resume"), ("which", "chosen"), ("priority", "")]);
    // What is wrong is said beside its field, on the list as it was, and what was selected stays so.
    let urgent =
        |priority| with(&bar, &[("action", "set_priority"), ("priority", priority), ("item", "jid0000000004")]);
    let none = "Select the jobs in the list";
    for (form, field, why) in [
        (bar.clone(), "aria-describedby=\"which-wrong\"", none),
        (
            with(&bar, &[("which", "all"), ("jobs", "state=storing")]),
            "aria-describedby=\"which-wrong\"",
            "No job matches",
        ),
        (urgent(""), "aria-invalid=\"true\" aria-describedby=\"wrong\"", "Enter the new priority: 0"),
        (urgent("200"), "value=\"200\"", "“200” is not a priority: 0"),
        (with(&bar, &[("to", "nowhere")]), "aria-label=\"State to resume in\" aria-invalid", "no state “nowhere”"),
    ] {
        let again = world.post(OPERATOR, "/lists", &form, OWN).await;
        assert_eq!(again.code, 422, "{}", again.text);
        let has_field = again.text.split('<').any(|tag| tag.contains(field));
        assert!(has_field && again.text.contains(why), "{field}, {why}: {}", again.text);
        let is_same = again
            .form("./lists")
            .iter()
            .any(|(name, query)| name == "jobs" && form.contains(&(name.clone(), query.clone())));
        assert!(is_same && again.text.contains(" data-still"), "{}", again.text);
        let item = "value=\"jid0000000004\" form=\"bulk\"";
        let is_selected = form.iter().any(|(name, _)| name == "item");
        assert_eq!(again.text.contains(&format!("{item} checked")), is_selected, "{}", again.text);
        assert!(again.text.contains(item) != why.starts_with("No job"), "{}", again.text);
    }
    assert_eq!(world.post(OPERATOR, "/lists", &with(&bar, &[("colour", "red")]), OWN).await.code, 400);
    let ticked = world.post(OPERATOR, "/lists", &with(&bar, &[("item", "jid0000000004")]), OWN).await;
    assert_eq!(ticked.code, 303, "{}", ticked.text);
    let asked = world.get(OPERATOR, &format!("/{}", ticked.location)).await.text;
    assert!(asked.contains("href=\"../jobs?state=failed&#38;limit=20\">Cancel<"), "{asked}");
    let given = world.post(OPERATOR, &format!("/{}", ticked.location), &reason, OWN).await;
    let done = over(&world, &given.location).await;
    assert!(done.text.contains("href=\"../jobs?state=failed&#38;limit=20\">Back to the list<"), "{}", done.text);
    assert_eq!([world.state(3).await, world.state(4).await], ["Failed", "Downloading"]);
}

/// The same as with the ticked ones left out, by the API.
async fn all_but_some_by_the_api(world: &World) {
    let others = json!({"action": "resume", "jobs": "state=failed", "except": ["jid0000000004"]});
    let frozen = world.post_json(OPERATOR, "/api/v1/lists", &others).await;
    assert!(frozen.code == 201 && frozen.text.contains("\"count\":1"), "{}", frozen.text);
    let others = json!({"action": "resume", "jobs": "state=failed", "except": ["jid0000000001"]});
    let refused = world.post_json(OPERATOR, "/api/v1/lists", &others).await;
    assert!(refused.code == 400 && refused.text.contains("names jid0000000001, which"), "{}", refused.text);
    let others = json!({"action": "resume", "items": ["jid0000000003"], "except": ["jid0000000004"]});
    let refused = world.post_json(OPERATOR, "/api/v1/lists", &others).await;
    assert!(refused.code == 400 && refused.text.contains("“except” excludes jobs"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_promises_nothing_while_zookeeper_is_away_and_is_carried_out_afterwards() {
    let mut world = Box::pin(World::start()).await;
    for number in 1..=2 {
        world.failed_job(number, "404 for a file").await;
    }
    let all = world.get(OPERATOR, "/failures").await.form("./lists");
    let frozen = world.post(OPERATOR, "/lists", &all, OWN).await;
    let place = format!("/{}", frozen.location);
    let button = ">Resume 2 jobs</button>";
    assert!(world.get(OPERATOR, &place).await.text.contains(button));

    world.run_zookeeper(false).await;
    eventually(LIMIT, "it is known to be away", async || world.json("/api/v1/status").await["connected"] == false)
        .await;
    let away = world.get(OPERATOR, &place).await;
    assert_eq!(away.code, 200, "{}", away.text);
    assert!(away.text.contains("<h2>Nothing was done</h2>") && away.text.contains("ZooKeeper"), "{}", away.text);
    let promised = [button, ">skipped<", "will be skipped"].iter().any(|text| away.text.contains(*text));
    assert!(!promised, "{}", away.text);
    // Who tries all the same keeps the reason and the button.
    let reason = with(&[], &[("reason", "the node is back")]);
    let refused = world.post(OPERATOR, &place, &reason, OWN).await;
    assert_eq!(refused.code, 503, "{}", refused.text);
    assert!(refused.text.contains("value=\"the node is back\"") && refused.text.contains(button), "{}", refused.text);

    world.run_zookeeper(true).await;
    eventually(LIMIT, "it promises again", async || world.get(OPERATOR, &place).await.text.contains(button)).await;
    let given = world.post(OPERATOR, &place, &reason, OWN).await;
    assert_eq!(given.code, 303, "{}", given.text);
    let done = over(&world, &given.location).await;
    assert!(done.text.contains("2 items: 2 done, 0 not done, 0 unknown, 0 left"), "{}", done.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_released_alone_or_with_its_jobs() {
    let world = Box::pin(World::start()).await;
    world.create("/locks/collections/demo", "").await;
    for number in 1..=3 {
        world.job(number, "Held", "").await;
    }
    // Its jobs alone would be held again, which the confirmation says once, whatever their number.
    let held = async || world.get(OPERATOR, "/jobs?state=held&limit=20").await;
    eventually(LIMIT, "the mirror has the jobs", async || held().await.text.contains("3 jobs match.")).await;
    let bar = with(&held().await.form("./lists"), &[("action", "release"), ("which", "all"), ("priority", "")]);
    let frozen = world.post(OPERATOR, "/lists", &bar, OWN).await;
    let list = world.get(OPERATOR, &format!("/{}", frozen.location)).await.text;
    let warned = "3 jobs belong to the collection demo, which is still held: a daemon will hold them again.";
    assert!(list.find(warned).is_some_and(|at| at < list.find(">Release 3 jobs<").unwrap()), "{list}");

    let release = "/action?action=release&on=collection:demo";
    let asked = world.get(OPERATOR, release).await;
    assert!(asked.text.contains("3 Held jobs stay Held unless"), "{}", asked.text);
    let shown = world.get(OPERATOR, &format!("{release}&with_jobs=true")).await;
    assert!(shown.text.contains("then release the batches and jobs of demo that are Held"), "{}", shown.text);
    let form = with(&shown.form("./action"), &[("reason", "the disk is replaced")]);
    let alone: Vec<_> = form.iter().filter(|(name, _)| name != "with_jobs").cloned().collect();
    let given = world.post(OPERATOR, "/action", &alone, OWN).await;
    over(&world, &given.location).await;
    assert_eq!(world.state(1).await, "Held");

    world.create("/locks/collections/demo", "").await;
    let asked = world.get(OPERATOR, release).await.form("./action");
    let form = with(&asked, &[("reason", "the disk is replaced"), ("with_jobs", "true")]);
    let given = world.post(OPERATOR, "/action", &form, OWN).await;
    let done = over(&world, &given.location).await;
    assert!(done.text.contains("3 done, 0 not done, 0 unknown, 0 not started"), "{}", done.text);
    for number in 1..=3 {
        assert_eq!(world.state(number).await, "Pending", "job {number}");
    }
    let audited = world.audited();
    let of_jobs = audited.iter().filter(|record| record["target"].is_string() && record["outcome"] == "done");
    assert_eq!(of_jobs.count(), 3, "{audited:?}");
    let wrong = world.get(OPERATOR, "/action?action=hold&on=collection:demo&with_jobs=true").await;
    assert_eq!(wrong.code, 400, "{}", wrong.text);
}
