//! Alertmanager's webhook over HTTP: who may call, and what he may send.

use queuekeeper::actions::Role;
use reqwest::Method;
use serde_json::{Value, json};

use super::site::{JSON, Site};
use super::world::World;

/// One alert, and labels that make it so large.
fn payload(padding: usize) -> String {
    json!({"version": "4", "groupKey": "x".repeat(padding), "status": "firing", "receiver": "queuekeeper", "alerts": [{
        "status": "firing", "labels": {"alertname": "MerrittJobsFailed"}, "startsAt": "2026-11-21T10:00:00Z",
        "fingerprint": "0f1e2d3c4b5a6978"}]})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_token_for_it_sends_alerts_and_what_it_sends_is_bounded() {
    let world = Box::pin(World::start()).await;
    let site = Site::with_alerts(&world).await;
    let caller = site.asker(Role::Alertmanager);
    let call = async |who, body: &str, kind: &str| {
        site.ask(who, &Method::POST, "/api/v1/alerts", &[("content-type", kind), ("connection", "close")], body).await
    };
    let answer = call(caller, &payload(0), JSON).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap()["unmatched"], 1);
    // Larger than any other request may be, but not without bound.
    assert_eq!(call(caller, &payload(900_000), JSON).await.code, 200);
    let answer = call(caller, &payload(1_100_000), JSON).await;
    assert_eq!(answer.code, 413, "{}", answer.text);
    for (body, reported) in [
        ("", "unexpected end of JSON"),
        ("{\"version\":\"5\"}", r#"\"5\""#),
        ("{\"version\":\"4\",\"alerts\":[{\"status\":\"hunter2\"}]}", "a field is missing"),
    ] {
        let answer = call(caller, body, JSON).await;
        assert_eq!(answer.code, 400, "{}", answer.text);
        assert!(answer.text.contains(reported), "{}", answer.text);
        assert!(!answer.text.contains("hunter2"));
    }
    assert_eq!(call(caller, &payload(0), "text/plain").await.code, 415);

    // What an alert says of itself stands on no page, as a link least of all.
    let mut forged: Value = serde_json::from_str(&payload(0)).unwrap();
    let evil = "javascript:window.owned=1//<b>owned</b>\u{202e}";
    for key in ["groupKey", "receiver", "externalURL"] {
        forged[key] = evil.into();
    }
    for key in ["generatorURL", "silenceURL", "dashboardURL"] {
        forged["alerts"][0][key] = evil.into();
    }
    forged["alerts"][0]["annotations"] = json!({"summary": evil, "runbook_url": evil});
    forged["alerts"][0]["labels"][evil] = evil.into();
    assert_eq!(call(caller, &forged.to_string(), JSON).await.code, 200);
    for path in ["/", "/rules", "/audit", "/api/v1/rules", "/api/v1/audit", "/metrics"] {
        let answer = site.ask(site.asker(Role::Admin), &Method::GET, path, &[], "").await;
        assert_eq!(answer.code, 200, "{path}");
        assert!(!answer.text.contains("owned"), "{path}: {}", answer.text);
    }

    // No other caller, whatever its role, and no token that is not valid.
    let refused = async || {
        let answer = site.ask(site.asker(Role::Viewer), &Method::GET, "/metrics", &[], "").await;
        let name = "queuekeeper_alerts_total{outcome=\"unauthorized\"} ";
        answer.text.lines().find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok()).unwrap()
    };
    assert!(refused().await.abs() < 0.5);
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let answer = call(site.asker(role), &payload(0), JSON).await;
        assert_eq!(answer.code, 403, "{role}: {}", answer.text);
        assert!(answer.text.contains("--role alertmanager"), "{}", answer.text);
    }
    let wrong = super::site::Asker { role: None, header: Some(format!("Bearer qk_{}", "x".repeat(43))) };
    assert_eq!(call(&wrong, &payload(0), JSON).await.code, 401);
    let nobody = super::site::Asker { role: None, header: None };
    // Without credentials it could be a page of another site.
    assert_eq!(call(&nobody, &payload(0), JSON).await.code, 403);
    assert!((refused().await - 5.0).abs() < 0.5, "each of them is counted");
    // And a caller that sends alerts reads nothing.
    for path in ["/", "/metrics", "/api/v1/jobs", "/api/v1/rules", "/rules", "/audit"] {
        assert_eq!(site.ask(caller, &Method::GET, path, &[], "").await.code, 403, "{path}");
    }
    assert_eq!(site.ask(caller, &Method::GET, "/-/healthy", &[], "").await.code, 200);
}
