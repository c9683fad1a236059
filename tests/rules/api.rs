//! Requests about the rules over HTTP.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use queuekeeper::config::{Config, Loopback, Web};
use queuekeeper::{actions, metrics, web};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::world::{Keeper, LIMIT, World, resume};
use queuekeeper_testkit::wait::eventually_some;

/// The body of a request.
const MOVING: &str = r#"{"reason": "moving storage"}"#;

/// A server with a keeper's alerts, whose users may do everything.
async fn served(keeper: &Keeper) -> (String, AbortOnDropHandle<()>) {
    let loopback = Some(Loopback { role: actions::Role::Admin, notice: "A test." });
    let web = Web { loopback, ..Web::default() };
    let config = Config { web, ..Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap())) };
    let (store, actions) = (keeper.store.clone(), Some(keeper.actions.clone()));
    let state = web::State::new(config, store, None, actions, metrics::registry()).with_alerts(keeper.alerts.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/api/v1/rules", listener.local_addr().unwrap());
    let run = async move { web::run(vec![listener], state, CancellationToken::new()).await.unwrap() };
    (base, AbortOnDropHandle::new(tokio::spawn(run)))
}

async fn post(url: &str, body: &str) -> (u16, Value) {
    let request = reqwest::Client::new().post(url).header("content-type", "application/json");
    let answer = request.header("sec-fetch-site", "none").body(body.to_owned()).send().await.unwrap();
    (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_and_its_end_respond_with_the_new_state() {
    let world = World::new().await;
    let keeper =
        world.keeper(resume("mode: enforce\nselect: {limit: 5}\nbudget: {items: 8, per: 1h}\ncooldown: 1s")).await;
    keeper.ready(true).await;
    let (rules, _served) = served(&keeper).await;
    // Repeated where ZooKeeper does not answer in time.
    let action = async |what: &str| {
        eventually_some(LIMIT, "there is an answer", async || {
            Some(post(&format!("{rules}/{what}"), MOVING).await).filter(|(code, _)| *code != 503)
        })
        .await
    };
    // An attempt without an answer may have done it: so it is undone before the next one.
    let done = async |what: &str, undo: &str| {
        for _ in 0..10 {
            let (code, state) = post(&format!("{rules}/{what}"), MOVING).await;
            if code != 503 {
                return (code, state);
            }
            action(undo).await;
        }
        panic!("{what}: ZooKeeper is said not to answer in time, again and again");
    };
    let is_set = async || world.raw.check_stat("/queuekeeper/paused").await.unwrap().is_some();
    // Each response has the state at once, not after the next poll of our own znodes: repeat to be certain.
    for _ in 0..5 {
        let (code, state) = done("pause", "unpause").await;
        assert_eq!(code, 200, "{state}");
        assert!(state["paused_since"].is_string() && is_set().await, "{state}");
        assert_eq!(state["paused_why"], "moving storage", "{state}");
        assert!(state["paused_by"].as_str().is_some_and(|by| !by.is_empty()), "{state}");
        assert_eq!(state["rules"][0]["name"], "again", "{state}");
        let (code, problem) = action("pause").await;
        assert_eq!((code, &problem["detail"]), (409, &"Automatic actions are already paused.".into()), "{problem}");

        let (code, state) = done("unpause", "pause").await;
        assert_eq!(code, 200, "{state}");
        assert!(state["paused_since"].is_null() && state["paused_by"].is_null() && !is_set().await, "{state}");
        let (code, problem) = action("unpause").await;
        assert_eq!((code, &problem["detail"]), (409, &"Automatic actions are not paused.".into()), "{problem}");
    }
    for what in ["pause", "unpause"] {
        let (code, problem) = post(&format!("{rules}/{what}"), r#"{"reason": " "}"#).await;
        assert_eq!(code, 400, "{problem}");
    }
    assert!(!is_set().await, "nothing is done without a reason");
    keeper.end().await;
}
