//! Every page as readers have it: dark and light, on a phone and on a wall, with scripts and without.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::chromium::{Browser, LIMIT, Look, TOO_WIDE};
use super::served::Served;
use queuekeeper_testkit::wait::eventually;

/// The checker of accessibility that `.ci/install` fetches.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/node_modules/axe-core/axe.min.js");

/// What axe checks of a page: WCAG 2.2 at level AA, and what its makers hold to be good practice.
const ALL_RULES: &str =
    "{ type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }";

/// What can differ where the colours alone have changed.
const RULES_OF_COLOURS: &str = "{ type: 'rule', values: ['color-contrast', 'link-in-text-block'] }";

/// What violates these rules.
const CHECK: &str = "
    const done = arguments[arguments.length - 1];
    const only = {rules};
    axe.run(document, { runOnly: only, resultTypes: ['violations'] }).then(
        found => done(found.violations.map(rule => rule.id + ': ' + rule.help + ' at ' + rule.nodes.slice(0, 3)
            .map(node => node.html.slice(0, 160) + ' (' + node.any.map(check => check.message).join('; ') + ')').join(' | '))),
        error => done(['axe failed: ' + error]));
";

/// How readers open a page.
const OPENED: [Look; 3] = [
    Look { scheme: SCHEMES[0], width: 1440, scripts: true },
    Look { scheme: SCHEMES[0], width: 360, scripts: true },
    Look { scheme: SCHEMES[0], width: 360, scripts: false },
];

/// The colours that a page is looked at in, without being loaded again.
const SCHEMES: [&str; 2] = ["light", "dark"];

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_whole_and_accessible_in_every_look() {
    let served = Served::demo().await;
    let browser = Browser::start().await;
    let axe = std::fs::read_to_string(AXE).expect("axe-core is installed: .ci/install");
    let pages = pages(&served, &browser).await;
    let sections = queuekeeper::web::pages::addresses().filter(|address| address.matches('/').count() == 1);
    for section in sections.chain(["/action"]) {
        assert!(pages.contains_key(section), "the overview does not lead to {section}: {:?}", pages.keys());
    }
    for item in ["/jobs/{}", "/batches/{}", "/api/{}"] {
        assert!(pages.contains_key(item), "no page leads to {item}: {:?}", pages.keys());
    }
    let mut wrong = Vec::new();
    for look in OPENED {
        browser.look(look).await;
        for page in pages.values() {
            wrong.extend(look_at(&served, &browser, page, look, &axe).await);
        }
    }
    assert!(wrong.is_empty(), "{} things are wrong:\n{}", wrong.len(), wrong.join("\n"));
    browser.close().await;
    served.stop().await;
}

/// A kind of page: an address, and the list that leads to others of that kind once this one is gone.
#[derive(Clone, Debug)]
struct Page {
    kind: String,
    address: String,
    parent: String,
}

/// One page of each kind that can be reached from the overview, by its path with ids left out.
async fn pages(served: &Served, browser: &Browser) -> BTreeMap<String, Page> {
    let root = format!("{}/", served.base);
    let first = Page { kind: "/".to_owned(), address: root.clone(), parent: root };
    let mut found = BTreeMap::from([(first.kind.clone(), first)]);
    let mut seen = BTreeSet::new();
    // The demo begins with an empty queue and fills it within seconds.
    let filled = format!("{}/api/v1/overview", served.base);
    eventually(LIMIT, "the demo has work for every page", async || {
        let Ok(response) = reqwest::get(&filled).await else { return false };
        response.text().await.is_ok_and(|text| text.contains("\"failed\""))
    })
    .await;
    while let Some(page) = found.values().find(|page| !seen.contains(&page.kind)).cloned() {
        browser.open(&page.address).await;
        for (kind, address) in links(served, browser).await {
            // The item of a confirmation may be gone; this one is always there.
            let list = if kind == "/action" { "/batches" } else { kind.trim_end_matches("/{}") };
            let parent = format!("{}{list}", served.base);
            found.entry(kind.clone()).or_insert(Page { kind, address, parent });
        }
        seen.insert(page.kind);
    }
    found
}

/// The pages that this one leads to, by their kind.
async fn links(served: &Served, browser: &Browser) -> Vec<(String, String)> {
    let links = browser.run("return [...document.querySelectorAll('a[href]')].map(link => link.href)").await;
    let links = links.as_array().unwrap().iter().filter_map(Value::as_str).filter_map(|link| {
        let path = link.strip_prefix(&served.base).unwrap_or_else(|| panic!("a link leads away to {link}"));
        let path = path.split(['?', '#']).next().unwrap();
        let is_page = !(["/api/v1", "/static", "/dashboards/", "/-/"].iter().any(|files| path.starts_with(files))
            || path == "/metrics");
        is_page.then(|| (kind(path), link.to_owned()))
    });
    links.collect()
}

/// Opens a page. What was there may be done and purged by now: then another of its kind.
async fn open(served: &Served, browser: &Browser, page: &Page) -> String {
    let mut address = page.address.clone();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while reqwest::get(&address).await.unwrap().status() == 404 {
        assert!(tokio::time::Instant::now() < deadline, "{} is gone, and no other of its kind comes", page.kind);
        browser.page.goto(&page.parent).await.unwrap();
        let others = links(served, browser).await.into_iter().filter(|(kind, _)| *kind == page.kind);
        // For a moment there may be none, as on a list that is just empty.
        if let Some((_, other)) = others.into_iter().find(|(_, other)| *other != address) {
            address = other;
        } else {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    browser.open(&address).await;
    address
}

/// A path with what names one item of many left out.
fn kind(path: &str) -> String {
    let mut parts = path.split('/').skip(1);
    match (parts.next(), parts.next()) {
        (Some(first), Some(rest)) if !rest.is_empty() => format!("/{first}/{{}}"),
        (first, _) => format!("/{}", first.unwrap_or_default()),
    }
}

/// What is wrong with a page in a look and its other colours. One whose item went away while it was looked at is looked
/// at as another.
async fn look_at(served: &Served, browser: &Browser, page: &Page, look: Look, axe: &str) -> Vec<String> {
    loop {
        let address = open(served, browser, page).await;
        let wrong = look_once(browser, &address, look, axe).await;
        if wrong.is_empty() || reqwest::get(&address).await.unwrap().status() != 404 {
            return wrong;
        }
    }
}

/// What is wrong with the page that is open, in each of the colours.
async fn look_once(browser: &Browser, address: &str, opened: Look, axe: &str) -> Vec<String> {
    let mut all = Vec::new();
    for scheme in SCHEMES {
        let is_first = scheme == SCHEMES[0];
        let look = Look { scheme, ..opened };
        browser.look(look).await;
        let mut wrong = texts(&browser.run(TOO_WIDE).await);
        let heads = browser.run("return [document.querySelectorAll('h1').length, document.documentElement.lang]").await;
        if heads != serde_json::json!([1, "en"]) {
            wrong.push(format!("it has not one heading in English: {heads}"));
        }
        // The checker itself waits for timers, which a page without scripts does not have.
        if look.scripts {
            if is_first {
                browser.run(axe).await;
            }
            let check = CHECK.replace("{rules}", if is_first { ALL_RULES } else { RULES_OF_COLOURS });
            wrong.extend(texts(&browser.page.execute_async(&check, Vec::new()).await.unwrap()));
        }
        wrong.extend(browser.complaints().await);
        all.extend(wrong.into_iter().map(|what| format!("{address} as {look:?}: {what}")));
    }
    all
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
