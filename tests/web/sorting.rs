//! Every list is sorted by its columns, or by the orders that it offers: page and API alike.

use serde_json::{Value, json};

use super::world::{LIMIT, OPERATOR, VIEWER, World};
use queuekeeper_testkit::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn every_list_leads_to_itself_in_each_of_its_orders() {
    let world = Box::pin(World::start()).await;
    for (number, message) in [(1, "no space"), (2, "404 for charts"), (3, "404 for charts")] {
        world.failed_job(number, message).await;
    }
    world.job(4, "Completed", "").await;
    for (path, data) in [
        ("/locks/storage/ark_99999_a", ""),
        ("/locks/queue/ingest", ""),
        // Entries of jobs that are not there.
        ("/jobs/states/pending/05-jid0000000090", ""),
        ("/jobs/states/pending/05-jid0000000091", ""),
        ("/access/small/qid0000000001", ""),
        ("/access/small/qid0000000001/status", r#"{"status":"Failed","retry_count":0}"#),
        ("/access/small/qid0000000001/token", r#"{"token":"T1","cloud-content-byte":7}"#),
    ] {
        world.create(path, data).await;
    }
    for (number, reason) in [("1", "first"), ("2", "second")] {
        let body =
            json!({"action": "set_priority", "priority": 7, "on": format!("jid000000000{number}"), "reason": reason});
        let request = world.http.post(format!("{}/api/v1/actions", world.base)).basic_auth(OPERATOR, Some(OPERATOR));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }
    for list in ["failures", "faults", "locks", "access", "audit"] {
        eventually(LIMIT, list, async || world.json(&format!("/api/v1/{list}")).await["total"].as_u64() > Some(0))
            .await;
    }
    eventually(LIMIT, "both groups", async || world.json("/api/v1/failures").await["total"] == 2).await;
    eventually(LIMIT, "two faults", async || world.json("/api/v1/faults").await["total"].as_u64() > Some(1)).await;

    // How many columns or orders each offers.
    for (list, offered) in
        [("jobs", 6), ("batches", 4), ("access", 3), ("locks", 3), ("failures", 3), ("faults", 3), ("audit", 1)]
    {
        let page = world.get(VIEWER, &format!("/{list}")).await;
        let links = sorted_by(&page.text);
        assert_eq!(links.len(), offered, "{list}: {links:?}");
        for link in links {
            let sorted = world.get(VIEWER, &format!("/{link}")).await;
            assert_eq!(sorted.code, 200, "{link}: {}", sorted.text);
            let is_marked = sorted.text.contains("aria-sort=") || sorted.text.contains("aria-current=\"true\"");
            assert!(is_marked, "{link}: {}", sorted.text);
            let answer = world.json(&format!("/api/v1/{link}")).await;
            assert_eq!(answer["total"], world.json(&format!("/api/v1/{list}")).await["total"], "{link}");
        }
    }

    let of = async |path: &str, field: &str| -> Vec<Value> {
        let list = world.json(path).await;
        list["items"].as_array().unwrap().iter().map(|item| item[field].clone()).collect()
    };
    assert_eq!(of("/api/v1/failures", "count").await, [2, 1]);
    assert_eq!(of("/api/v1/failures?sort=newest", "count").await, [2, 1]);
    assert_eq!(of("/api/v1/failures?sort=oldest", "count").await, [1, 2]);
    assert_eq!(of("/api/v1/audit", "reason").await, ["second", "first"]);
    assert_eq!(of("/api/v1/audit?sort=oldest", "reason").await, ["first", "second"]);
    assert_eq!(of("/api/v1/locks?sort=guards", "kind").await, ["storage", "queue"]);

    // A column of durations has the longest first, whatever the instants do.
    for (link, direction) in [
        ("jobs?sort=entered", "descending"),
        ("jobs?sort=entered&direction=desc", "ascending"),
        ("jobs?sort=priority", "ascending"),
        ("batches?sort=waiting", "descending"),
        ("batches?sort=changed", "ascending"),
        ("access?sort=waiting", "descending"),
        ("locks?sort=oldest", "descending"),
    ] {
        let text = world.get(VIEWER, &format!("/{link}")).await.text;
        assert!(text.contains(&format!("aria-sort=\"{direction}\"")), "{link}: {text}");
    }
    // Unfinished jobs stay on top when the rest of the order is turned round.
    for direction in ["asc", "desc"] {
        let states = of(&format!("/api/v1/jobs?direction={direction}"), "state").await;
        let is_done = |state: &Value| ["completed", "deleted"].contains(&state.as_str().unwrap());
        assert!(states.iter().map(is_done).is_sorted() && states.iter().any(is_done), "{direction}: {states:?}");
    }

    // Page by page, in the order that was requested.
    let first = world.json("/api/v1/audit?sort=oldest&limit=1").await;
    assert_eq!((&first["items"][0]["reason"], &first["before"]), (&json!("first"), &json!(0)));
    let cursor = first["next"].as_str().unwrap();
    let second = world.json(&format!("/api/v1/audit?sort=oldest&limit=1&cursor={cursor}")).await;
    assert_eq!((&second["items"][0]["reason"], &second["before"]), (&json!("second"), &json!(1)));
    assert_eq!(second["next"], Value::Null);
    for path in ["/audit?cursor=junk", "/failures?cursor=5b5d", "/faults?sort=largest"] {
        assert_eq!(world.get(VIEWER, path).await.code, 400, "{path}");
    }
}

/// Where the heads of the list's columns lead, or the orders beside it.
fn sorted_by(html: &str) -> Vec<String> {
    let parts = if let Some((_, rest)) = html.split_once("<nav class=\"sortings\"") {
        rest.split_once("</nav>").unwrap().0
    } else {
        let list = html.split_once("<table class=\"list\">").unwrap().1;
        list.split_once("</thead>").unwrap().0
    };
    let links = parts.split("href=\"./").skip(1);
    links.map(|link| link.split_once('"').unwrap().0.replace("&#38;", "&")).collect()
}
