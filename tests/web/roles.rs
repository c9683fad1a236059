//! Every route, requested with every method in every role: a caller without the role changes nothing.
//!
//! The routes are those that the server itself counts requests by, and their methods those that it says it takes. What
//! a route of the API is sent comes from its description.

use queuekeeper::actions::{ActionKind, Role, Target};
use reqwest::Method;
use serde_json::json;

use super::site::{Answer, Asker, Examples, FORM, JSON, Route, Site};
use super::world::World;
use queuekeeper_testkit::tree::{Tree, read_tree};

/// Methods that nothing here takes, besides those that something does.
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// One of each kind of what may be requested on. There are no such jobs, batches and requests.
const TARGETS: [&str; 9] = [
    "jid0000000042",
    "bid0000000042",
    "small/qid0000000042",
    "queue:ingest",
    "queue:accessSmall",
    "collection:demo",
    "lock:/jobs/jid0000000042/lock",
    "fault:orphan_entry:/jobs/jid0000000042",
    "batches",
];

/// Where Alertmanager calls, and no other client.
const ALERTS: &str = "/api/v1/alerts";

/// Where stores call, and no other client.
const STORE_EVENTS: &str = "/api/v1/store-events";

/// Both.
pub(crate) const MESSAGES: [&str; 2] = [ALERTS, STORE_EVENTS];

/// The whole tree, and how many lines the audit trail has.
async fn all_of(world: &World) -> (Tree, usize) {
    (read_tree(&world.client, "/", &[]).await, world.audited().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_the_role_are_refused_on_every_route_and_changes_nothing() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let (users, tokens) = (Site::with_users(&world), Site::with_tokens(&world).await);
    let examples = Examples::new(&users).await;
    let routes = users.routes(&examples).await;
    let before = all_of(&world).await;
    let answers = Answers {
        // It has no rules, and no mill.
        messages: &[404],
        is_read: |_| false,
        is_missing: |route| ["/lists/{id}", "/api/v1/rules"].contains(&&*route.pattern),
    };
    for site in [&users, &tokens] {
        everyone_without_the_role_is_refused(site, &routes, &answers).await;
        assert_eq!(all_of(&world).await, before, "nobody has requested anything");
    }

    // Nor does a caller with the role, where another site made it, or where its origin is unknown.
    for site in [&users, &tokens] {
        let admin = site.asker(Role::Admin);
        let large = format!("reason={}", "x".repeat(70_000));
        for route in routes.iter().filter(|route| route.takes(&Method::POST)) {
            let host = site.base.trim_start_matches("http://");
            let (evil, other, same) = ("https://evil.example", "http://localhost:1", format!("http://{host}"));
            for headers in [
                &[("sec-fetch-site", "cross-site")][..],
                &[("sec-fetch-site", "same-site")],
                &[("sec-fetch-site", "cross-site"), ("origin", &*same)],
                &[("origin", evil)],
                &[("origin", other)],
                &[("origin", "null")],
            ] {
                let headers = [&[("content-type", route.kind())], headers].concat();
                let answer = site.ask(admin, &Method::POST, &route.path, &headers, &route.body).await;
                assert_eq!(answer.code, 403, "{} {headers:?}: {}", route.pattern, answer.text);
            }
            // Whose connection is of no use afterwards, since what is sent on it is not read.
            let own = [("sec-fetch-site", "same-origin"), ("content-type", route.kind()), ("connection", "close")];
            let answer = site.ask(admin, &Method::POST, &route.path, &own, &large).await;
            // A caller that may not send messages is refused before anything is read.
            let refused = if MESSAGES.contains(&route.pattern.as_str()) { 403 } else { 413 };
            assert_eq!(answer.code, refused, "{}: {}", route.pattern, answer.text);
            let other = if route.kind() == JSON { FORM } else { JSON };
            let odd = [("sec-fetch-site", "same-origin"), ("content-type", other)];
            let answer = site.ask(admin, &Method::POST, &route.path, &odd, &route.body).await;
            assert_eq!(answer.code, 415, "{}: {}", route.pattern, answer.text);
        }
        assert_eq!(all_of(&world).await, before, "nothing of that was an action");
    }

    // SNS sends its messages as text.
    let sender = tokens.asker(Role::StoreEvents);
    for (kind, is_taken) in [("text/plain; charset=UTF-8", true), ("text/html", false), (JSON, true)] {
        let answer = tokens.ask(sender, &Method::POST, STORE_EVENTS, &[("content-type", kind)], "{}").await;
        assert_eq!(answer.code == 415, !is_taken, "{kind}: {}", answer.text);
    }

    nobody_may_where_nobody_was_named(&world, &routes).await;
    assert_eq!(all_of(&world).await, before, "nobody may request anything");

    // A caller with the role is let through everywhere.
    for site in [&users, &tokens] {
        for role in [Role::Operator, Role::Admin] {
            let who = site.asker(role);
            let own = Examples {
                list: Examples::freeze(site, who).await,
                action: examples.action.clone(),
                asset: String::new(),
            };
            for route in
                routes.iter().filter(|route| route.takes(&Method::POST) && !MESSAGES.contains(&route.pattern.as_str()))
            {
                let headers = [("sec-fetch-site", "same-origin"), ("content-type", route.kind())];
                let answer = site.ask(who, &Method::POST, &own.path(&route.pattern), &headers, &route.body).await;
                let is_passed = ![400, 401, 403, 405, 413, 415].contains(&answer.code) && answer.code < 500;
                assert!(is_passed, "{} as {role}: {} {}", route.pattern, answer.code, answer.text);
            }
        }
    }
}

/// What a server answers where it does not refuse.
pub(crate) struct Answers {
    /// The codes for a message of a caller that sends such.
    pub(crate) messages: &'static [u16],
    /// Whether a route that takes something is read by all who may read. Others confirm an action.
    pub(crate) is_read: fn(&Route) -> bool,
    /// Whether there is nothing to read at a route.
    pub(crate) is_missing: fn(&Route) -> bool,
}

/// Requests each route by each method as each caller, but for what comes of it where they may.
pub(crate) async fn everyone_without_the_role_is_refused(site: &Site<'_>, routes: &[Route], answers: &Answers) {
    for who in &site.askers {
        for route in routes {
            let is_probe = route.pattern.starts_with("/-/");
            for method in METHODS {
                let may_act = who.role.is_some_and(|role| role > Role::Viewer);
                let is_message = MESSAGES.contains(&&*route.pattern);
                if method == Method::POST && route.takes(&method) && may_act && !is_message {
                    continue;
                }
                let answer = site.send(who, &method, route).await;
                let what = format!("{method} {} as {:?}: {} {}", route.pattern, who.role, answer.code, answer.text);
                let is_reading = method == Method::GET || method == Method::HEAD;
                // The confirmation of an action is for those who may execute it.
                let confirms = is_reading && route.takes(&Method::POST) && !(answers.is_read)(route);
                match who.role {
                    None if site.is_closed && !is_probe => assert_eq!(answer.code, 401, "{what}"),
                    Some(role @ (Role::Alertmanager | Role::StoreEvents)) if !is_probe => {
                        let own = if role == Role::Alertmanager { ALERTS } else { STORE_EVENTS };
                        // It does nothing else.
                        let expected = match (route.pattern == own, &method) {
                            (true, &Method::POST) => answers.messages,
                            (true, _) => &[405],
                            (false, _) => &[403, 405],
                        };
                        assert!(expected.contains(&answer.code), "{what}");
                    }
                    Some(Role::Depositor) if !is_probe => {
                        assert!(answers_to_depositor(route, &method).contains(&answer.code), "{what}");
                    }
                    _ if !route.takes(&method) => assert_eq!(answer.code, 405, "{what}"),
                    None if confirms => assert_eq!(answer.code, 401, "{what}"),
                    Some(Role::Viewer) if confirms => assert_eq!(answer.code, 403, "{what}"),
                    _ if is_reading && (answers.is_missing)(route) => {
                        assert!((200..400).contains(&answer.code) || answer.code == 404, "{what}");
                    }
                    _ if is_reading => assert!((200..400).contains(&answer.code), "{what}"),
                    None => assert_eq!(answer.code, 401, "{what}"),
                    Some(_) => assert_eq!(answer.code, 403, "{what}"),
                }
            }
        }
    }
}

/// Where no user may request an action, no caller may.
async fn nobody_may_where_nobody_was_named(world: &World, routes: &[Route]) {
    for has_users in [true, false] {
        let site = Site::without_actions(world, has_users).await;
        for who in &site.askers {
            for route in
                routes.iter().filter(|route| ![ALERTS, STORE_EVENTS, "/api/v1/rules"].contains(&route.pattern.as_str()))
            {
                let is_action = route.takes(&Method::POST);
                let answer = site.send(who, &Method::GET, route).await;
                assert!(is_action || (200..400).contains(&answer.code), "{}: {}", route.pattern, answer.text);
                if is_action {
                    let answer = site.send(who, &Method::POST, route).await;
                    assert_eq!(answer.code, 403, "{}: {}", route.pattern, answer.text);
                    assert!(answer.text.contains("--config.file"), "{}: {}", route.pattern, answer.text);
                }
            }
        }
    }
}

/// A depositor does nothing on a server that takes no deposits, but read who it is and what pages are made of.
fn answers_to_depositor(route: &Route, method: &Method) -> &'static [u16] {
    let is_open = ["/api/v1/identity", "/static/{asset}", "/icon/{icon}"].contains(&route.pattern.as_str());
    match (is_open, *method == Method::GET || *method == Method::HEAD) {
        (true, true) => &[200],
        (true, false) => &[405],
        (false, _) => &[403, 405],
    }
}

/// By which ways something is requested: the API's actions and lists, and the forms of the same.
const WAYS: [&str; 4] = ["/api/v1/actions", "/api/v1/lists", "/action", "/lists"];

fn encoded(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

async fn request_by(site: &Site<'_>, way: &str, who: &Asker, action: ActionKind, on: &str) -> Answer {
    let priority = (action == ActionKind::SetPriority).then_some(9);
    let field = if priority.is_some() { "&priority=9" } else { "" };
    let (kind, body) = match way {
        "/api/v1/actions" => {
            let body = json!({"action": action.label(), "on": on, "reason": "tried", "priority": priority});
            (JSON, body.to_string())
        }
        "/api/v1/lists" => (JSON, json!({"action": action.label(), "items": [on], "priority": priority}).to_string()),
        "/action" => (FORM, format!("action={action}&on={}{field}&reason=tried", encoded(on))),
        _ => (FORM, format!("action={action}&which=chosen&item={}{field}", encoded(on))),
    };
    site.ask(who, &Method::POST, way, &[("sec-fetch-site", "same-origin"), ("content-type", kind)], &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_actions_of_their_role_are_open_to_all_by_every_way() {
    let world = Box::pin(World::start()).await;
    let users = Site::with_users(&world);
    let tokens = Site::with_tokens(&world).await;
    let before = all_of(&world).await;
    let mut passed = 0;
    // First all that is refused, so that it is seen that nothing of it is done.
    for is_open in [false, true] {
        for site in [&users, &tokens] {
            for who in &site.askers {
                for (action, on) in ActionKind::ALL.into_iter().flat_map(|action| TARGETS.map(|on| (action, on))) {
                    // Whether a target supports the action is shown only to callers who may request actions.
                    let needs = on.parse::<Target>().unwrap().role(action).unwrap_or(Role::Operator);
                    if who.role.is_some_and(|role| role >= needs) != is_open {
                        continue;
                    }
                    for way in WAYS {
                        let answer = request_by(site, way, who, action, on).await;
                        let what = format!("{way} {action} {on} as {:?}: {} {}", who.role, answer.code, answer.text);
                        match who.role {
                            None => assert_eq!(answer.code, 401, "{what}"),
                            // An operator may freeze lists of actions of the role; an unsupported action is reported.
                            Some(_) if !is_open => assert_eq!(answer.code, 403, "{what}"),
                            Some(_) => {
                                passed += 1;
                                assert!(![401, 403].contains(&answer.code) && answer.code < 500, "{what}");
                            }
                        }
                    }
                }
            }
        }
        if !is_open {
            assert_eq!(all_of(&world).await, before, "nothing that was refused was done, or written down");
        }
    }
    // An admin may all of it, and an operator all but these, on one kind each; by each way to each of the two servers.
    let pairs = ActionKind::ALL.len() * TARGETS.len();
    let of_admins =
        ["delete", "purge"].len() * ["a job", "a batch", "a request"].len() + ["break_lock", "clean_up"].len();
    assert_eq!(passed, 2 * WAYS.len() * (pairs + pairs - of_admins));
    // Pausing, holding and cleaning up were possible, and so done: by each of those who may.
    assert!(world.audited().len() > before.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_is_replayed_is_executed_once() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let site = Site::with_users(&world);
    let action = json!({"action": "resume", "on": "jid0000000001", "reason": "the node is back"});
    let key = [("idempotency-key", "one and the same")];
    let operator = site.asker(Role::Operator);
    let first = site.action(operator, &key, &action).await;
    assert_eq!(first.code, 200, "{}", first.text);
    let done = all_of(&world).await;
    for _ in 0..3 {
        let again = site.action(operator, &key, &action).await;
        assert_eq!((again.code, &again.text), (200, &first.text));
    }
    // At once, too, and only the key's own action.
    let priority = json!({"action": "set_priority", "on": "jid0000000001", "reason": "urgent", "priority": 1});
    let other = site.action(operator, &key, &priority).await;
    assert_eq!(other.code, 400, "{}", other.text);
    assert_eq!(all_of(&world).await, done, "once");
    // Another's key is another's.
    let another = site.action(site.asker(Role::Admin), &key, &priority).await;
    assert_eq!(another.code, 200, "{}", another.text);
    // Without a key, it is another action: the job is not Failed any more.
    assert_eq!(site.action(operator, &[], &action).await.code, 409);
    let key = [("idempotency-key", "two at once")];
    let hold = json!({"action": "hold", "on": "collection:demo", "reason": "full"});
    let (one, two) = tokio::join!(site.action(operator, &key, &hold), site.action(operator, &key, &hold));
    assert_eq!((one.code, one.text), (200, two.text.clone()), "{}", two.text);
    assert_eq!(two.code, 200);
}
