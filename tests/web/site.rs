//! Servers over one queue that know their askers in different ways, and the routes that they have.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use queuekeeper::actions::Role;
use queuekeeper::config::{ConfigFile, Secret, TokenLine};
use queuekeeper_catalogue::Catalogue;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::world::{ADMIN, OPERATOR, VIEWER, World, once_read};
use queuekeeper_testkit::wait::eventually_some;

pub(crate) const FORM: &str = "application/x-www-form-urlencoded";
pub(crate) const JSON: &str = "application/json";
const EVENTS: &[u8] = b"text/event-stream";

/// No answer takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// A caller; without credentials where there is no role.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) role: Option<Role>,
    pub(crate) header: Option<String>,
}

/// A server, its callers, and the routes that it has.
pub(crate) struct Site<'a> {
    pub(crate) world: &'a World,
    pub(crate) base: String,
    pub(crate) askers: Vec<Asker>,
    /// Whether reading needs credentials.
    pub(crate) is_closed: bool,
    _served: Option<AbortOnDropHandle<()>>,
}

/// One route.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) pattern: String,
    /// Its address, with something that is there in the place of its parameters.
    pub(crate) path: String,
    pub(crate) methods: BTreeSet<String>,
    /// What it is sent.
    pub(crate) body: String,
}

impl Route {
    pub(crate) fn takes(&self, method: &Method) -> bool {
        self.methods.contains(method.as_str())
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.pattern.starts_with("/api/") { JSON } else { FORM }
    }
}

fn basic(name: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{name}:{name}")))
}

/// The stores of a server without a catalogue.
const STORES: &str =
    "stores: {cold: {url: \"s3://bucket/copies\"}}\nstore_events: {store-events: {store: cold, space: demo}}\n";

/// A file with a token for each role and these stores, and who shows them.
fn tokens(stores: &str) -> (ConfigFile, Vec<Asker>) {
    let files = tempfile::tempdir().unwrap();
    let askers = write_tokens(files.path(), stores);
    (ConfigFile::read(&files.path().join("config.yml")).unwrap(), askers)
}

/// Writes the same as `config.yml` into a directory.
pub(crate) fn write_tokens(files: &Path, stores: &str) -> Vec<Asker> {
    let (mut lines, mut askers) = (String::new(), vec![Asker { role: None, header: None }]);
    // One who sends messages of a store needs one that sends them.
    let has_messages = stores.contains("store_events:");
    for role in Role::ALL.into_iter().filter(|role| has_messages || *role != Role::StoreEvents) {
        let secret = Secret::make();
        lines.push_str(&TokenLine::new(role.label(), role, None, &secret).unwrap().to_string());
        lines.push('\n');
        askers.push(Asker { role: Some(role), header: Some(format!("Bearer {}", secret.reveal())) });
    }
    std::fs::write(files.join("tokens.yml"), lines).unwrap();
    let text = format!("tokens_file: tokens.yml\ndepositors: {{depositor: {{profiles: [demo]}}}}\n{stores}");
    std::fs::write(files.join("config.yml"), text).unwrap();
    askers
}

/// The configuration of a catalogue and a mill, whose stores are directories that this makes.
pub(crate) fn mill_in(home: &Path, catalogue: &str) -> String {
    for name in ["main", "replica", "policies"] {
        std::fs::create_dir(home.join(name)).unwrap();
    }
    let home = home.display();
    format!(
        "stores:\n  main: {{url: \"file://{home}/main\"}}\n  replica: {{url: \"file://{home}/replica\"}}\n\
         catalogue: {{{catalogue}}}\nmill:\n  accounts:\n    account1: {{stores: {{\"1\": main, \"2\": replica}}}}\n  \
         policies: {{directory: \"{home}/policies\"}}\n"
    )
}

impl<'a> Site<'a> {
    /// The server that all users can log in to.
    pub(crate) fn with_users(world: &'a World) -> Self {
        let user = |(role, name)| Asker { role, header: Some(basic(name)) };
        let roles = [(Some(Role::Viewer), VIEWER), (Some(Role::Operator), OPERATOR), (Some(Role::Admin), ADMIN)];
        let askers = [Asker { role: None, header: None }].into_iter().chain(roles.map(user)).collect();
        Self { world, base: world.base.clone(), askers, is_closed: true, _served: None }
    }

    /// A server without users, that knows a token for each role.
    pub(crate) async fn with_tokens(world: &'a World) -> Self {
        let (file, askers) = tokens(STORES);
        let (base, served) = world.another(false, Some(file)).await;
        Self { world, base, askers, is_closed: false, _served: Some(served) }
    }

    /// The same, that takes alerts.
    pub(crate) async fn with_alerts(world: &'a World) -> Self {
        let (file, askers) = tokens(STORES);
        let (base, served) = world.with_alerts(file).await;
        Self { world, base, askers, is_closed: false, _served: Some(served) }
    }

    /// The same with a catalogue and a mill, which are in this directory.
    pub(crate) async fn with_mill(world: &'a World, home: &Path) -> Self {
        let catalogue = format!("sqlite:{}/catalogue.db", home.display());
        Catalogue::open(&catalogue).await.unwrap().close().await;
        let (file, askers) = tokens(&mill_in(home, &format!("url: \"{catalogue}\"")));
        let (base, served) = world.whole(file).await;
        Self { world, base, askers, is_closed: false, _served: Some(served) }
    }

    /// A server that runs elsewhere.
    pub(crate) fn at(world: &'a World, base: String, askers: Vec<Asker>) -> Self {
        Self { world, base, askers, is_closed: false, _served: None }
    }

    /// A server without users who may request actions: with other users, or open to every caller.
    pub(crate) async fn without_actions(world: &'a World, has_users: bool) -> Self {
        let (base, served) = world.another(has_users, None).await;
        let users = [VIEWER, OPERATOR, ADMIN].map(|name| Asker { role: Some(Role::Viewer), header: Some(basic(name)) });
        let askers = if has_users { users.into() } else { vec![Asker { role: None, header: None }] };
        Self { world, base, askers, is_closed: has_users, _served: Some(served) }
    }

    pub(crate) fn asker(&self, role: Role) -> &Asker {
        self.askers.iter().find(|asker| asker.role == Some(role)).unwrap()
    }

    pub(crate) async fn ask(
        &self,
        who: &Asker,
        method: &Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let ask = async || self.ask_once(who, method, path, headers, body).await;
        if *method == Method::GET { once_read(ask, |answer: &Answer| answer.text.as_str()).await } else { ask().await }
    }

    async fn ask_once(&self, who: &Asker, method: &Method, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = self.world.http.request(method.clone(), format!("{}{path}", self.base)).timeout(LIMIT);
        if let Some(header) = &who.header {
            request = request.header(AUTHORIZATION, header);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.to_owned()).send().await.unwrap();
        let (code, headers) = (response.status().as_u16(), response.headers().clone());
        // Changes of a page are sent as long as a client is connected.
        let is_endless = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(EVENTS));
        let text = if is_endless { String::new() } else { response.text().await.unwrap() };
        Answer { code, headers, text }
    }

    /// As a page of ours sends it, or a program.
    pub(crate) async fn send(&self, who: &Asker, method: &Method, route: &Route) -> Answer {
        let own = [("sec-fetch-site", "same-origin"), ("content-type", route.kind())];
        let body = if *method == Method::GET || *method == Method::HEAD { "" } else { &route.body };
        self.ask(who, method, &route.path, &own, body).await
    }

    /// Requests something by the API.
    pub(crate) async fn action(&self, who: &Asker, headers: &[(&str, &str)], action: &Value) -> Answer {
        let headers = [&[("content-type", JSON), ("sec-fetch-site", "none")], headers].concat();
        self.ask(who, &Method::POST, "/api/v1/actions", &headers, &action.to_string()).await
    }

    /// Every route, as the server itself lists them.
    pub(crate) async fn routes(&self, examples: &Examples) -> Vec<Route> {
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
                let reported = document["paths"][&name].as_object().unwrap();
                let reported: BTreeSet<String> = reported.keys().map(|method| method.to_uppercase()).collect();
                let mut taken = methods.clone();
                taken.remove("HEAD");
                assert_eq!(taken, reported, "{pattern}");
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
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A body made of the examples in its description.
fn described_body(document: &Value, schema: &Value) -> String {
    let Some(reference) = schema["$ref"].as_str() else { return "{}".to_owned() };
    let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
    let mut body = json!({});
    for (name, property) in schema["properties"].as_object().unwrap() {
        let is_required = schema["required"].as_array().is_some_and(|all| all.iter().any(|required| required == name));
        let referred = property["$ref"].as_str().map(|to| document.pointer(to.trim_start_matches('#')).unwrap());
        if let Some(example) = property.get("example").or_else(|| property.get("examples")?.get(0)) {
            body[name] = example.clone();
        } else if let Some(first) = referred.and_then(|to| to["enum"].get(0)) {
            body[name] = first.clone();
        } else if referred.is_some_and(|to| to["properties"].is_object()) {
            body[name] = serde_json::from_str(&described_body(document, property)).unwrap();
        } else {
            assert!(!is_required, "{reference} has no example of {name}");
        }
    }
    body.to_string()
}

/// What is there to ask for.
pub(crate) struct Examples {
    /// An action that was given.
    pub(crate) action: String,
    /// A list that was frozen, by the one who requests it.
    pub(crate) list: String,
    pub(crate) asset: String,
}

impl Examples {
    pub(crate) async fn new(site: &Site<'_>) -> Self {
        let admin = site.asker(Role::Admin);
        let id = |answer: &Answer| -> String {
            let view: Value = serde_json::from_str(&answer.text).unwrap();
            view["id"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
        };
        let pause = json!({"action": "pause", "on": "queue:accessLarge", "reason": "an example"});
        // The actions of a server that has just become ready may still be without a session.
        let paused = eventually_some(LIMIT, "the queue is paused", async || {
            Some(site.action(admin, &[], &pause).await).filter(|answer| answer.code != 503)
        })
        .await;
        let action = id(&paused);
        let home = site.ask(admin, &Method::GET, "/", &[("accept", "text/html")], "").await;
        let asset = home.text.split("static/").nth(1).unwrap().split('"').next().unwrap().to_owned();
        Self { action, list: Self::freeze(site, admin).await, asset }
    }

    /// A list of this caller.
    pub(crate) async fn freeze(site: &Site<'_>, who: &Asker) -> String {
        let list = json!({"action": "resume", "items": ["jid0000000042"]}).to_string();
        let headers = [("content-type", JSON), ("sec-fetch-site", "none")];
        let frozen = site.ask(who, &Method::POST, "/api/v1/lists", &headers, &list).await;
        assert_eq!(frozen.code, 201, "{}", frozen.text);
        serde_json::from_str::<Value>(&frozen.text).unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, pattern: &str) -> String {
        let (is_list, is_report) = (pattern.contains("/lists/"), pattern.contains("/mill/reports/"));
        let mut path = pattern.to_owned();
        for (name, value) in [
            (
                "{id}",
                if is_report {
                    "4711"
                } else if is_list {
                    &*self.list
                } else {
                    &*self.action
                },
            ),
            ("{jid}", "jid0000000001"),
            ("{batch}", "bid0000000007"),
            ("{bid}", "bid0000000007"),
            ("{*path}", "jobs/states"),
            ("{rule}", "make-room"),
            ("{asset}", &*self.asset),
            ("{icon}", "bad-3.svg"),
            ("{name}", "jobs"),
            ("{body}", "JobItem"),
            ("{file}", "overview.json"),
            ("{account}", "account1"),
            ("{space}", "theses"),
            ("{*ark}", "ark:/99999/fk4there"),
        ] {
            path = path.replace(name, value);
        }
        assert!(!path.contains('{'), "{pattern}: what is there to ask for?");
        match pattern {
            "/action" => format!("{path}?action=resume&on=jid0000000001"),
            "/events" => format!("{path}?page=jobs"),
            "/mill/checks/new" | "/api/v1/mill/checks/plan" => format!("{path}?account=account1&store=main"),
            "/api/v1/mill/comparisons" => format!("{path}?account=account1"),
            "/api/v1/objects/file" => format!("{path}?ark=ark:/99999/fk4there&version=1&path=producer/a"),
            _ if pattern.ends_with("/item") => format!("{path}?key=thesis"),
            _ if pattern.ends_with("/file") => format!("{path}?format=tsv"),
            _ => path,
        }
    }

    /// The form of a page. A route that is not here needs one, so that it is seen who may send it.
    pub(crate) fn form(pattern: &str) -> String {
        match pattern {
            "/action" => "action=resume&on=jid0000000042&reason=tried".to_owned(),
            "/actions/{id}/cancel" => String::new(),
            "/lists" => "action=resume&which=chosen&item=jid0000000042".to_owned(),
            "/lists/{id}" => "reason=tried".to_owned(),
            "/rules/change" => "what=pause&reason=tried".to_owned(),
            "/mill/held" | "/mill/dead-letters" => "decision=retry&task=4711&reason=tried".to_owned(),
            "/mill/errors" => "number=4711&resolution=repair&reason=tried".to_owned(),
            "/mill/checks/new" => "account=account1&store=main&reason=tried".to_owned(),
            "/mill/pause" | "/mill/resume" => "account=account1&store=&reason=tried".to_owned(),
            "/mill/policies/{account}" => {
                "version=1&policy=%7B%22is_listed%22:true,%22policy%22:%7B%7D%7D&reason=tried".to_owned()
            }
            "/mill/policies/{account}/plan" => "change=defaults&pair=1%3E2".to_owned(),
            other => panic!("{other} takes forms: which?"),
        }
    }
}
