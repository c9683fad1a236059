//! The pages of bit errors, and where else these are shown.

use std::fs;
use std::path::Path;
use std::time::Duration;

use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::json;

use super::mill_pages::Pages;
use super::mill_verify::rot;
use super::stores::command;

/// An operator sees that a copy rots, and has it repaired from the other one.
pub(super) async fn content_that_is_wrong_is_repaired(home: &Path, pages: &Pages) {
    pages.get("/mill/errors", &["No bit errors"]).await;
    let copy = home.join("objects/theses/a/c");
    rot(&copy);
    command(home, "mill verify one/main/theses/a/c").await.is(7, &["content damaged"]);
    pages.get("/mill", &["A copy differs from its records", "/mill/errors"]).await;
    let is_shown = async || pages.ask("oscar", "/", None).await.1.contains("1 open bit error");
    eventually(Duration::from_mins(1), "the overview shows it", is_shown).await;
    pages.get("/", &["href=\"./mill/errors\"", "A copy in a store differs from its records"]).await;
    let attention = pages.json("/api/v1/overview").await["attention"].clone();
    let kinds: Vec<_> = attention.as_array().unwrap().iter().map(|item| item["kind"].clone()).collect();
    assert!(kinds.contains(&json!("bit_errors")), "{attention}");
    pages.get("/mill/spaces", &["1 open bit error</a>"]).await;
    pages.get("/mill/spaces/one/theses", &["<span class=\"tag bad\">bit error</span>"]).await;
    let spaces = pages.json("/api/v1/mill/spaces?prefix=theses").await;
    let of = |at: usize| spaces["items"][0]["copies"][at]["bit_errors"].clone();
    assert_eq!((of(0), of(1)), (json!(1), json!(0)), "{spaces}");
    pages
        .get(
            "/mill/errors",
            &[
                "content damaged",
                "theses/a/c",
                "main",
                "Repairs in main are started by an operator",
                "repaired from another copy",
                "Repair</button>",
            ],
        )
        .await;
    let (_, of_viewer) = pages.ask("vera", "/mill/errors", None).await;
    assert!(of_viewer.contains("theses/a/c") && !of_viewer.contains("Repair</button>"), "{of_viewer}");
    let item = "/mill/spaces/one/theses/item?key=a/c";
    pages.get(item, &["Proofs", "content damaged", "A copy has a bit error", ">bit error</a>"]).await;
    let trail = "audit?target=copy%3Aone%2Fmain%2Ftheses%2Fa%2Fc";
    pages.get(item, &[trail, "mill/errors?account=one"]).await;
    let of_item = pages.json("/api/v1/mill/spaces/one/theses/item?key=a/c").await;
    let check = &of_item["checks"][0];
    assert_eq!((&check["store"], &check["findings"]), (&json!("main"), &json!(["content_damaged"])), "{of_item}");
    let error = pages.json("/api/v1/mill/errors").await["errors"][0].clone();
    assert_eq!((&error["key"], &error["is_repairable"]), (&json!("a/c"), &json!(true)), "{error}");
    let number = error["number"].to_string();
    pages
        .get("/mill/errors", &["Writes the content of another copy", "value=\"drop\"", "Content index", "Audit log"])
        .await;
    let form = |reason| [("number", &*number), ("resolution", "repair"), ("reason", reason)];
    let accept = [("number", &*number), ("resolution", "accept"), ("reason", "rotten")];
    assert_eq!(pages.ask("oscar", "/mill/errors", Some(&accept)).await.0, 403);
    assert_eq!(pages.ask("ada", "/mill/errors", Some(&accept)).await.0, 409);
    let unknown = [("number", &*number), ("resolution", "mend"), ("reason", "rotten")];
    assert_eq!(pages.ask("oscar", "/mill/errors", Some(&unknown)).await.0, 400);
    let body = json!({"number": error["number"], "resolution": "accept", "reason": "rotten"}).to_string();
    assert_eq!(pages.ask("oscar", "/api/v1/mill/errors/resolve", Some(&[("json", &*body)])).await.0, 403);
    assert_eq!(pages.ask("vera", "/mill/errors", Some(&form("rotten"))).await.0, 403);
    assert_eq!(pages.ask("oscar", "/mill/errors", Some(&form(""))).await.0, 400);
    let wrong = json!({"number": 4711, "reason": "rotten"}).to_string();
    let (code, text) = pages.ask("oscar", "/api/v1/mill/errors/repair", Some(&[("json", &*wrong)])).await;
    assert!(code == 404 && text.contains("no open bit error 4711"), "{code}: {text}");
    assert_eq!(pages.ask("oscar", "/mill/errors", Some(&form("rotten"))).await.0, 303);
    // It writes over content, and the brake of this mill holds that as anything else.
    let minutes = Duration::from_mins(2);
    let held = eventually_some(minutes, "the brake holds it", async || {
        pages.json("/api/v1/mill/held").await["tasks"][0]["number"].as_u64()
    });
    let held = held.await.to_string();
    pages
        .get(item, &["A copy has a bit error", "The repair of the copy in main is held by the brake until task"])
        .await;
    let release = [("task", &*held), ("decision", "retry"), ("reason", "one copy alone")];
    assert_eq!(pages.ask("ada", "/mill/held", Some(&release)).await.0, 303);
    pages.get("/mill/errors", &["all stores</option><option>main</option><option>replica</option>"]).await;
    let stop = [("repairs", "stop"), ("store", ""), ("reason", "disks")];
    assert_eq!(pages.ask("vera", "/mill/errors", Some(&stop)).await.0, 403);
    assert_eq!(pages.ask("oscar", "/mill/errors", Some(&stop)).await.0, 303);
    pages.get("/mill/errors", &["Automatic repairs are stopped", "in all stores", "by oscar", "disks"]).await;
    let resume = json!({"reason": "disks"}).to_string();
    assert_eq!(pages.ask("oscar", "/api/v1/mill/repairs/resume", Some(&[("json", &*resume)])).await.0, 403);
    assert_eq!(pages.ask("ada", "/api/v1/mill/repairs/resume", Some(&[("json", &*resume)])).await.0, 200);
    let figures = [
        "mill_content_items{account=\"one\",store=\"main\",proof=\"none\"}",
        "mill_content_max_age_seconds{account=\"one\",store=\"main\"} 5184000",
    ];
    let is_exported = async || {
        let (_, text) = pages.ask("vera", "/metrics", None).await;
        figures.iter().all(|figure| text.contains(figure))
    };
    eventually(minutes, "the ages of proofs are exported", is_exported).await;
    pages.get("/mill/spaces", &["class=\"age-fresh\"", "never proven, written today"]).await;
    let is_repaired = async || pages.ask("vera", "/mill/errors", None).await.1.contains("No bit errors");
    eventually(minutes, "it is repaired", is_repaired).await;
    assert_eq!(fs::read_to_string(&copy).unwrap(), "new\n");
    pages.get(&format!("/{trail}"), &["Repair copy", "rotten", "copy:one/main/theses/a/c"]).await;
    pages.get("/audit", &["Repair copy", "rotten", "copy:one/main/theses/a/c", "wrong → being repaired"]).await;
}
