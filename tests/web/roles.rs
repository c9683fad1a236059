//! Every route, asked with every method by everyone: who may not order something changes nothing, whatever he sends.
//!
//! The routes are those that the server itself counts requests by, and their methods those that it says it takes. What a
//! route of the API is sent comes from its description.

use std::collections::BTreeSet;
use std::time::Duration;

use queuekeeper::actions::{Action, Role, Subject};
use queuekeeper::config::{ConfigFile, Secret, TokenLine};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::ordering::{ADMIN, OPERATOR, VIEWER, World};
use crate::support::tree::{Tree, read_tree};

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";
const EVENTS: &[u8] = b"text/event-stream";

/// No answer takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// Methods that nothing here takes, besides those that something does.
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// One of each kind of what may be ordered on. There are no such jobs, batches and requests.
const SUBJECTS: [&str; 9] = [
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

/// Somebody who asks: nobody where there is no role.
#[derive(Clone, Debug)]
struct Asker {
    role: Option<Role>,
    header: Option<String>,
}

/// A server, whoever asks it, and the routes that it has.
struct Site<'a> {
    world: &'a World,
    base: String,
    askers: Vec<Asker>,
    /// Whether nobody may read.
    is_closed: bool,
    _served: Option<AbortOnDropHandle<()>>,
}

/// One route.
#[derive(Debug)]
struct Route {
    pattern: String,
    /// Its address, with something that is there in the place of its parameters.
    path: String,
    methods: BTreeSet<String>,
    /// What it is sent.
    body: String,
}

impl Route {
    fn takes(&self, method: &Method) -> bool {
        self.methods.contains(method.as_str())
    }

    fn kind(&self) -> &'static str {
        if self.pattern.starts_with("/api/") { JSON } else { FORM }
    }
}

fn basic(name: &str) -> String {
    use base64::Engine as _;
    format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(format!("{name}:{name}")))
}

impl<'a> Site<'a> {
    /// The server that all users can log in to.
    fn with_users(world: &'a World) -> Self {
        let user = |(role, name)| Asker { role, header: Some(basic(name)) };
        let roles = [(Some(Role::Viewer), VIEWER), (Some(Role::Operator), OPERATOR), (Some(Role::Admin), ADMIN)];
        let askers = [Asker { role: None, header: None }].into_iter().chain(roles.map(user)).collect();
        Self { world, base: world.base.clone(), askers, is_closed: true, _served: None }
    }

    /// A server without users, that knows a token for each role.
    async fn with_tokens(world: &'a World) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (mut lines, mut askers) = (String::new(), vec![Asker { role: None, header: None }]);
        for role in Role::ALL {
            let secret = Secret::make();
            lines.push_str(&TokenLine::new(role.label(), role, None, &secret).unwrap().to_string());
            lines.push('\n');
            askers.push(Asker { role: Some(role), header: Some(format!("Bearer {}", secret.reveal())) });
        }
        std::fs::write(files.path().join("tokens.yml"), lines).unwrap();
        let config = files.path().join("config.yml");
        std::fs::write(&config, "tokens_file: tokens.yml\n").unwrap();
        let (base, served) = world.another(false, Some(ConfigFile::read(&config).unwrap())).await;
        Self { world, base, askers, is_closed: false, _served: Some(served) }
    }

    /// A server that nobody was named to who may order something: with users, or open to everyone.
    async fn without_orders(world: &'a World, has_users: bool) -> Self {
        let (base, served) = world.another(has_users, None).await;
        let users = [VIEWER, OPERATOR, ADMIN].map(|name| Asker { role: Some(Role::Viewer), header: Some(basic(name)) });
        let askers = if has_users { users.into() } else { vec![Asker { role: None, header: None }] };
        Self { world, base, askers, is_closed: has_users, _served: Some(served) }
    }

    fn asker(&self, role: Role) -> &Asker {
        self.askers.iter().find(|asker| asker.role == Some(role)).unwrap()
    }

    async fn ask(&self, who: &Asker, method: &Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = self.world.http.request(method.clone(), format!("{}{path}", self.base)).timeout(LIMIT);
        if let Some(header) = &who.header {
            request = request.header(AUTHORIZATION, header);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.to_owned()).send().await.unwrap();
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        // What changes on a page is told as long as somebody listens.
        let is_endless = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(EVENTS));
        let text = if is_endless { String::new() } else { response.text().await.unwrap() };
        Answer { code, headers, text }
    }

    /// As a page of ours sends it, or a program.
    async fn send(&self, who: &Asker, method: &Method, route: &Route) -> Answer {
        let own = [("sec-fetch-site", "same-origin"), ("content-type", route.kind())];
        let body = if *method == Method::GET || *method == Method::HEAD { "" } else { &route.body };
        self.ask(who, method, &route.path, &own, body).await
    }

    /// Orders something by the API.
    async fn order(&self, who: &Asker, headers: &[(&str, &str)], order: &Value) -> Answer {
        let headers = [&[("content-type", JSON), ("sec-fetch-site", "none")], headers].concat();
        self.ask(who, &Method::POST, "/api/v1/orders", &headers, &order.to_string()).await
    }

    /// Every route there is, as the server itself tells.
    async fn routes(&self, examples: &Examples) -> Vec<Route> {
        let admin = self.asker(Role::Admin);
        let document = self.ask(admin, &Method::GET, "/api/v1/openapi.json", &[], "").await;
        let document: Value = serde_json::from_str(&document.text).unwrap();
        let counted = self.ask(admin, &Method::GET, "/metrics", &[], "").await;
        let counted = counted.text.lines().filter_map(|line| {
            let (_, rest) = line.strip_prefix("queuekeeper_http_requests_total{")?.split_once("route=\"")?;
            Some(rest.split_once('"')?.0.to_owned())
        });
        let patterns: BTreeSet<String> = counted.filter(|pattern| pattern.starts_with('/')).collect();
        let mut described: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut routes = Vec::new();
        for pattern in patterns {
            let path = examples.path(&pattern);
            let allowed = self.ask(admin, &Method::OPTIONS, &path, &[], "").await;
            assert_eq!(allowed.code, 405, "{pattern}: {}", allowed.text);
            let methods: BTreeSet<String> =
                allowed.headers["allow"].to_str().unwrap().split(',').map(|method| method.trim().to_owned()).collect();
            let name = pattern.replace("{*", "{");
            let mut body = String::new();
            if described.remove(&*name) {
                let told = document["paths"][&name].as_object().unwrap();
                let told: BTreeSet<String> = told.keys().map(|method| method.to_uppercase()).collect();
                let mut taken = methods.clone();
                taken.remove("HEAD");
                assert_eq!(taken, told, "{pattern}");
                let schema = &document["paths"][&name]["post"]["requestBody"]["content"][JSON]["schema"];
                body = described_body(&document, schema);
            } else {
                assert!(!pattern.starts_with("/api/v1/") || pattern.ends_with("/openapi.json"), "{pattern}");
                if methods.contains("POST") {
                    body = Examples::form(&pattern);
                }
            }
            routes.push(Route { pattern, path, methods, body });
        }
        assert_eq!(described, BTreeSet::new(), "described and not counted");
        assert!(routes.len() > 30 && routes.iter().filter(|route| route.takes(&Method::POST)).count() >= 8);
        routes
    }
}

#[derive(Debug)]
struct Answer {
    code: u16,
    headers: HeaderMap,
    text: String,
}

/// A body made of the examples in its description.
fn described_body(document: &Value, schema: &Value) -> String {
    let Some(reference) = schema["$ref"].as_str() else { return "{}".to_owned() };
    let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
    let mut body = json!({});
    for (name, property) in schema["properties"].as_object().unwrap() {
        let is_required = schema["required"].as_array().is_some_and(|all| all.iter().any(|required| required == name));
        if let Some(example) = property.get("example") {
            body[name] = example.clone();
        } else {
            assert!(!is_required, "{reference} has no example of {name}");
        }
    }
    body.to_string()
}

/// What is there to ask for.
struct Examples {
    /// An order that was given.
    order: String,
    /// A list that was frozen, by whoever asks for it.
    list: String,
    asset: String,
}

impl Examples {
    async fn new(site: &Site<'_>) -> Self {
        let admin = site.asker(Role::Admin);
        let id = |answer: &Answer| -> String {
            let view: Value = serde_json::from_str(&answer.text).unwrap();
            view["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
        };
        let pause = json!({"action": "pause", "on": "queue:accessLarge", "reason": "an example"});
        let order = id(&site.order(admin, &[], &pause).await);
        let home = site.ask(admin, &Method::GET, "/", &[("accept", "text/html")], "").await;
        let asset = home.text.split("static/").nth(1).unwrap().split('"').next().unwrap().to_owned();
        Self { order, list: Self::freeze(site, admin).await, asset }
    }

    /// A list of somebody.
    async fn freeze(site: &Site<'_>, who: &Asker) -> String {
        let list = json!({"action": "resume", "items": ["jid0000000042"]}).to_string();
        let headers = [("content-type", JSON), ("sec-fetch-site", "none")];
        let frozen = site.ask(who, &Method::POST, "/api/v1/lists", &headers, &list).await;
        assert_eq!(frozen.code, 201, "{}", frozen.text);
        serde_json::from_str::<Value>(&frozen.text).unwrap()["id"].as_str().unwrap().to_owned()
    }

    fn path(&self, pattern: &str) -> String {
        let is_list = pattern.contains("/lists/");
        let mut path = pattern.to_owned();
        for (name, value) in [
            ("{id}", if is_list { &*self.list } else { &*self.order }),
            ("{jid}", "jid0000000001"),
            ("{batch}", "bid0000000007"),
            ("{bid}", "bid0000000007"),
            ("{*path}", "jobs/states"),
            ("{asset}", &*self.asset),
        ] {
            path = path.replace(name, value);
        }
        assert!(!path.contains('{'), "{pattern}: what is there to ask for?");
        match pattern {
            "/order" => format!("{path}?action=resume&on=jid0000000001"),
            "/events" => format!("{path}?page=jobs"),
            _ => path,
        }
    }

    /// The form of a page. A route that is not here needs one, so that it is seen who may send it.
    fn form(pattern: &str) -> String {
        match pattern {
            "/order" => "action=resume&on=jid0000000042&reason=tried".to_owned(),
            "/orders/{id}/cancel" => String::new(),
            "/lists" => "action=resume&which=chosen&item=jid0000000042".to_owned(),
            "/lists/{id}" => "reason=tried".to_owned(),
            other => panic!("{other} takes forms: which?"),
        }
    }
}

/// The whole tree, and how many lines the audit trail has.
async fn all_of(world: &World) -> (Tree, usize) {
    (read_tree(&world.client, "/", &[]).await, world.audited().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_order_is_refused_on_every_route_and_changes_nothing() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let (users, tokens) = (Site::with_users(&world), Site::with_tokens(&world).await);
    let examples = Examples::new(&users).await;
    let routes = users.routes(&examples).await;
    let before = all_of(&world).await;
    for site in [&users, &tokens] {
        for who in &site.askers {
            for route in &routes {
                let is_probe = route.pattern.starts_with("/-/");
                for method in METHODS {
                    // What comes of it where he may is seen below.
                    let may_order = who.role.is_some_and(|role| role > Role::Viewer);
                    if method == Method::POST && route.takes(&method) && may_order {
                        continue;
                    }
                    let answer = site.send(who, &method, route).await;
                    let what = format!("{method} {} as {:?}: {}", route.pattern, who.role, answer.text);
                    let is_reading = method == Method::GET || method == Method::HEAD;
                    match who.role {
                        None if site.is_closed && !is_probe => assert_eq!(answer.code, 401, "{what}"),
                        _ if !route.takes(&method) => assert_eq!(answer.code, 405, "{what}"),
                        // What is asked before an order is for those who may give it.
                        None if is_reading && route.takes(&Method::POST) => assert_eq!(answer.code, 401, "{what}"),
                        Some(Role::Viewer) if is_reading && route.takes(&Method::POST) => {
                            assert_eq!(answer.code, 403, "{what}");
                        }
                        _ if is_reading => {
                            let others = route.pattern == "/lists/{id}";
                            assert!((200..400).contains(&answer.code) || (others && answer.code == 404), "{what}");
                        }
                        None => assert_eq!(answer.code, 401, "{what}"),
                        Some(_) => assert_eq!(answer.code, 403, "{what}"),
                    }
                }
            }
        }
        assert_eq!(all_of(&world).await, before, "nobody has ordered anything");
    }

    // Nor does anybody who may, where another page made him, or nobody can say what did.
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
            // Whose connection is of no use afterwards, since nobody reads what is sent on it.
            let own = [("sec-fetch-site", "same-origin"), ("content-type", route.kind()), ("connection", "close")];
            let answer = site.ask(admin, &Method::POST, &route.path, &own, &large).await;
            assert_eq!(answer.code, 413, "{}: {}", route.pattern, answer.text);
            let other = if route.kind() == JSON { FORM } else { JSON };
            let odd = [("sec-fetch-site", "same-origin"), ("content-type", other)];
            let answer = site.ask(admin, &Method::POST, &route.path, &odd, &route.body).await;
            assert_eq!(answer.code, 415, "{}: {}", route.pattern, answer.text);
        }
        assert_eq!(all_of(&world).await, before, "nothing of that was an order");
    }

    // Where nobody was named who may order something, nobody may.
    for has_users in [true, false] {
        let site = Site::without_orders(&world, has_users).await;
        for who in &site.askers {
            for route in &routes {
                let is_order = route.takes(&Method::POST);
                let answer = site.send(who, &Method::GET, route).await;
                assert!(is_order || (200..400).contains(&answer.code), "{}: {}", route.pattern, answer.text);
                if is_order {
                    let answer = site.send(who, &Method::POST, route).await;
                    assert_eq!(answer.code, 403, "{}: {}", route.pattern, answer.text);
                    assert!(answer.text.contains("--config.file"), "{}: {}", route.pattern, answer.text);
                }
            }
        }
        assert_eq!(all_of(&world).await, before, "nobody may order anything");
    }

    // Whoever may is let through everywhere.
    for site in [&users, &tokens] {
        for role in [Role::Operator, Role::Admin] {
            let who = site.asker(role);
            let own = Examples {
                list: Examples::freeze(site, who).await,
                order: examples.order.clone(),
                asset: String::new(),
            };
            for route in routes.iter().filter(|route| route.takes(&Method::POST)) {
                let headers = [("sec-fetch-site", "same-origin"), ("content-type", route.kind())];
                let answer = site.ask(who, &Method::POST, &own.path(&route.pattern), &headers, &route.body).await;
                let is_passed = ![400, 401, 403, 405, 413, 415].contains(&answer.code) && answer.code < 500;
                assert!(is_passed, "{} as {role}: {} {}", route.pattern, answer.code, answer.text);
            }
        }
    }
}

/// By which ways something is ordered: the API's orders and lists, and the forms of the same.
const WAYS: [&str; 4] = ["/api/v1/orders", "/api/v1/lists", "/order", "/lists"];

fn encoded(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

async fn order_by(site: &Site<'_>, way: &str, who: &Asker, action: Action, on: &str) -> Answer {
    let (kind, body) = match way {
        "/api/v1/orders" => {
            (JSON, json!({"action": action.label(), "on": on, "reason": "tried", "priority": 9}).to_string())
        }
        "/api/v1/lists" => (JSON, json!({"action": action.label(), "items": [on], "priority": 9}).to_string()),
        "/order" => (FORM, format!("action={action}&on={}&priority=9&reason=tried", encoded(on))),
        _ => (FORM, format!("action={action}&which=chosen&item={}&priority=9", encoded(on))),
    };
    site.ask(who, &Method::POST, way, &[("sec-fetch-site", "same-origin"), ("content-type", kind)], &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_actions_of_his_role_are_open_to_everyone_by_every_way() {
    let world = Box::pin(World::start()).await;
    let users = Site::with_users(&world);
    let tokens = Site::with_tokens(&world).await;
    let before = all_of(&world).await;
    let mut passed = 0;
    // First all that is refused, so that it is seen that nothing of it is done.
    for is_open in [false, true] {
        for site in [&users, &tokens] {
            for who in &site.askers {
                for (action, on) in Action::ALL.into_iter().flat_map(|action| SUBJECTS.map(|on| (action, on))) {
                    // What a subject does not know is told to those only who may order something.
                    let needs = on.parse::<Subject>().unwrap().role(action).unwrap_or(Role::Operator);
                    if who.role.is_some_and(|role| role >= needs) != is_open {
                        continue;
                    }
                    for way in WAYS {
                        let answer = order_by(site, way, who, action, on).await;
                        let what = format!("{way} {action} {on} as {:?}: {} {}", who.role, answer.code, answer.text);
                        match who.role {
                            None => assert_eq!(answer.code, 401, "{what}"),
                            // An operator may freeze lists, and none of what he may not do; what nobody can do is told.
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
    let pairs = Action::ALL.len() * SUBJECTS.len();
    let of_admins =
        ["delete", "purge"].len() * ["a job", "a batch", "a request"].len() + ["break_lock", "clean_up"].len();
    assert_eq!(passed, 2 * WAYS.len() * (pairs + pairs - of_admins));
    // Pausing, holding and cleaning up were possible, and so done: by each of those who may.
    assert!(world.audited().len() > before.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_replayed_is_done_once() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let site = Site::with_users(&world);
    let order = json!({"action": "resume", "on": "jid0000000001", "reason": "the node is back"});
    let key = [("idempotency-key", "one and the same")];
    let operator = site.asker(Role::Operator);
    let first = site.order(operator, &key, &order).await;
    assert_eq!(first.code, 200, "{}", first.text);
    let done = all_of(&world).await;
    for _ in 0..3 {
        let again = site.order(operator, &key, &order).await;
        assert_eq!((again.code, &again.text), (200, &first.text));
    }
    // At once, too, and only the key's own order.
    let priority = json!({"action": "set_priority", "on": "jid0000000001", "reason": "urgent", "priority": 1});
    let other = site.order(operator, &key, &priority).await;
    assert_eq!(other.code, 400, "{}", other.text);
    assert_eq!(all_of(&world).await, done, "once");
    // Another's key is another's.
    let another = site.order(site.asker(Role::Admin), &key, &priority).await;
    assert_eq!(another.code, 200, "{}", another.text);
    // Without a key, it is another order: the job is not Failed any more.
    assert_eq!(site.order(operator, &[], &order).await.code, 409);
    let key = [("idempotency-key", "two at once")];
    let hold = json!({"action": "hold", "on": "collection:demo", "reason": "full"});
    let (one, two) = tokio::join!(site.order(operator, &key, &hold), site.order(operator, &key, &hold));
    assert_eq!((one.code, one.text), (200, two.text.clone()), "{}", two.text);
    assert_eq!(two.code, 200);
}
