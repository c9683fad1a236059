//! Checks that people ask for: on pages, by the API and from the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};

use super::mill_pages::Pages;
use super::mill_verify::rot;
use super::stores::command;

/// An operator has a space checked, a viewer sees it, and workers do it.
pub(super) async fn checks_are_requested(home: &Path, pages: &Pages) {
    let minutes = Duration::from_mins(2);
    pages.get("/mill/checks", &["No check has been requested", "Check all content of"]).await;
    let space = "/mill/spaces/one/theses";
    pages.get(space, &["/mill/checks/new?account=one&#38;store=main&#38;space=theses\">Check now"]).await;
    pages.get("/mill/spaces", &["Check all content of", "action=\"../mill/checks/new\""]).await;
    for path in [space, "/mill/checks"] {
        let (_, of_viewer) = pages.ask("vera", path, None).await;
        assert!(!of_viewer.contains("Check now") && !of_viewer.contains("Check all"), "{of_viewer}");
    }
    let new = "/mill/checks/new?account=one&store=main&space=theses";
    pages.get(new, &["Check one/theses in main", "2 items with ", "3 requests", "<input name=\"reason\""]).await;
    let (_, of_viewer) = pages.ask("vera", new, None).await;
    assert!(of_viewer.contains("2 items with ") && !of_viewer.contains("<form class=\"inline\""), "{of_viewer}");
    for (wrong, code) in [
        ("account=none&store=main", 404),
        ("account=one&store=none", 404),
        ("account=one&store=main&space=x-duracloud-admin", 404),
        ("account=one&store=main&key=a", 400),
        ("store=main", 400),
        ("account=one", 400),
        ("account=one&store=main&space=theses&key=none", 404),
    ] {
        assert_eq!(pages.ask("oscar", &format!("/mill/checks/new?{wrong}"), None).await.0, code, "{wrong}");
        assert_eq!(pages.ask("oscar", &format!("/api/v1/mill/checks/plan?{wrong}"), None).await.0, code, "{wrong}");
    }
    let form = |reason| [("account", "one"), ("store", "main"), ("space", "theses"), ("key", ""), ("reason", reason)];
    assert_eq!(pages.ask("vera", "/mill/checks/new", Some(&form("a <new> disk"))).await.0, 403);
    let (code, text) = pages.ask("oscar", "/mill/checks/new", Some(&form(""))).await;
    assert!(code == 400 && text.contains("Nothing was requested"), "{code}: {text}");
    assert_eq!(pages.ask("oscar", "/mill/checks/new", Some(&form("a <new> disk"))).await.0, 303);
    let ended = async |of: &'static str, words: &str| {
        let text = pages.ask("vera", of, None).await.1;
        text.contains("ended</span>") && text.contains(words)
    };
    eventually(minutes, "it is checked", async || ended(space, "2 of 2 items checked, 2 proven by reading").await)
        .await;
    pages.get("/mill/checks", &["one/theses", "2 of 2 items checked", "oscar", "a &#60;new&#62; disk"]).await;
    pages.get("/audit", &["Check content", "check:one/main/theses"]).await;

    // One item by the API, then all of a store from the command line.
    rot(&home.join("objects/theses/a/b"));
    let body = json!({"account": "one", "store": "1", "space": "theses", "key": "a/b", "reason": "odd"}).to_string();
    assert_eq!(pages.ask("vera", "/api/v1/mill/checks", Some(&[("json", &*body)])).await.0, 403);
    let (code, text) = pages.ask("oscar", "/api/v1/mill/checks", Some(&[("json", &*body)])).await;
    let action: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &action["on"]), (200, &json!("check:one/main/theses/a/b")), "{text}");
    let item = "/mill/spaces/one/theses/item?key=a/b";
    eventually(minutes, "it is found", async || ended(item, "checked, 1 wrong").await).await;
    pages.get(item, &["content damaged", "key=a%2Fb\">Check now"]).await;
    rot(&home.join("objects/theses/a/b"));
    let asked = command(home, "mill verify one/main --background --reason repaired").await;
    asked.is(0, &["requested: 2 items with ", "mill checks one shows its progress"]);
    let is_ended = async || {
        let list = pages.json("/api/v1/mill/checks").await;
        let of = |space: &str| {
            let mut found = list["items"].as_array().unwrap().iter();
            found.find(|check| check["space"] == space && check["key"].is_null()).cloned().unwrap()
        };
        of("theses")["reason"] == "repaired" && of("theses")["state"] == "ended" && of("theses")["proven"] == 2
    };
    eventually(minutes, "all of the store is checked", is_ended).await;
    command(home, "mill checks one").await.is(0, &["one/theses/a/b", "checked, 1 wrong", "2 proven by reading"]);
    pages.get("/mill/errors", &["No bit errors"]).await;

    // The page of the space has what its listing came to, too.
    command(home, "mill compare one/main/theses --keep")
        .await
        .is(0, &["2 items with ", "as recorded", "kept as main/"]);
    let of_space = ["Listing and content index", "no differences", "main/x-duracloud-admin/comparisons/main/theses/"];
    pages.get(space, &of_space).await;
    let kept = pages.json("/api/v1/mill/comparisons").await;
    assert_eq!((&kept["items"][0]["agreeing"]["items"], &kept["next"]), (&json!(2), &Value::Null), "{kept}");
    assert_eq!(pages.ask("vera", "/api/v1/mill/comparisons?account=none", None).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_check_takes_is_shown_before_workers_are_asked_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let config = format!(
        "stores:\n  main: {{url: \"file://{}\"}}\ncatalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill:\n  accounts:\n    one: {{stores: {{\"1\": main}}}}\n  policies: {{directory: policies}}\n  \
         prices: {{currency: USD, stores: {{main: {{per_thousand_requests: 1000, per_gib: 0}}}}}}\n",
        home.join("objects").display()
    );
    fs::write(home.join("config.yml"), config).unwrap();
    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    for key in ["a", "b\tc"] {
        fs::create_dir_all(home.join("objects/theses")).unwrap();
        let file = home.join("objects/theses").join(key);
        fs::write(file, "one\n").unwrap();
    }
    command(home, "mill adopt one/main/theses --reason ours").await.is(0, &["2 items adopted"]);
    // Nothing is recorded of it; a check of the store finds it all the same.
    fs::create_dir(home.join("objects/foreign")).unwrap();
    command(home, "mill checks").await.is(0, &["no check has been requested"]);
    let verify = async |words: &str| command(home, &format!("mill verify {words}")).await;
    verify("one/main --dry-run").await.is(2, &["--background"]);
    verify("one/main --background").await.is(2, &["--background needs a --reason"]);
    verify("one/main/theses/a --background --dry-run")
        .await
        .is(0, &["1 item with 4 bytes to be read", "1 request, about 1.00 USD"]);
    verify("one/main --background --dry-run")
        .await
        .is(0, &["2 items with 8 bytes to be read, 3 requests, about 3.00 USD"]);
    verify("one/main/none --background --dry-run").await.is(4, &["one has no space “none” in main"]);
    for words in ["--dry-run", "--reason odd"] {
        let none = verify(&format!("one/main/theses/none --background {words}")).await;
        none.is(4, &["main has no item “none” in theses of one, and there is no record of one"]);
    }
    fs::write(home.join("objects/foreign/found"), "found").unwrap();
    verify("one/main/foreign/found --background --dry-run").await.is(0, &["1 item with 5 bytes to be read"]);
    fs::remove_file(home.join("objects/foreign/found")).unwrap();
    verify("one/main/foreign --background --dry-run").await.is(0, &["0 items with 0 bytes to be read"]);
    command(home, "mill checks").await.is(0, &["no check has been requested"]);
    command(home, "mill checks --before 1").await.is(0, &["there are no checks with a number below 1"]);
    verify("one/main --background --reason odd").await.is(0, &["requested: 2 items with 8 bytes"]);
    verify("one/main/theses --background --reason again").await.is(0, &["requested: 2 items"]);
    let list = command(home, "mill checks --output json").await.json();
    let found: Vec<_> = list["items"].as_array().unwrap().iter().map(|check| &check["space"]).collect();
    assert_eq!(found, ["theses", "foreign"], "{list}");
    let check = &list["items"][0];
    assert_eq!(
        json!([check["state"], check["items"], check["bytes"], check["reason"], check["checked"]]),
        json!(["under_way", 2, 8, "odd", 0]),
        "{list}"
    );
    command(home, "mill checks").await.is(0, &["one/theses", "under way", "0 of 2 items checked"]);
    let trail = fs::read_to_string(home.join(".local/state/queuekeeper/audit.jsonl")).unwrap();
    let records: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let checks: Vec<_> = records.iter().filter(|of| of["action"] == json!("check_content")).collect();
    assert_eq!(checks[0]["targets"], json!(["check:one/main"]), "{trail}");
    assert_eq!(checks[0]["operations"], json!(["read 2 items with 8 bytes"]), "{trail}");
    assert!(trail.contains("it was already in progress and continues"), "{trail}");
}
