//! An open page follows the queue, and leaves its reader's place alone.

use std::time::Duration;

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::key::Key;
use jiff::Timestamp;
use queuekeeper_queue::{Due, NewJob};
use serde_json::Value;

use super::chromium::{Browser, LIMIT, Look};
use super::served::Served;
use queuekeeper_testkit::wait::eventually;

pub(super) const WIDE: Look = Look { scheme: "light", width: 1440, scripts: true };

pub(super) const SUBMISSION: &str = r#"{"batchID":"bid-9c1a0b5e-0000-4000-8000-000000000001","profile":"merritt_demo_content","type":"container-batch-manifest","size":"1","filename":"robbins.checkm","update":false,"submitter":"uc3user/UC3 User","title":"RBN-04"}"#;

pub(super) fn job(number: u32) -> NewJob {
    NewJob::new(format!(
        r#"{{"batchID":"bid-9c1a0b5e","jobID":"jid-{number}","profile":"merritt_demo_content","type":"container","submitter":"uc3user/UC3 User","filename":"rbn_{number:06}.zip","title":"Box {number}","update":false}}"#
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_appears_on_an_open_page_and_moves_nothing_under_the_reader() {
    let served = Served::still_for_admins().await;
    let queue = served.queue().await;
    let batch = queue.create_batch(SUBMISSION.as_bytes(), Timestamp::now()).await.unwrap();
    queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    let first = queue.create_job(batch, &job(1), Timestamp::now()).await.unwrap();
    let browser = Browser::start().await;
    browser.look(WIDE).await;

    browser.page.goto(&format!("{}/jobs", served.base)).await.unwrap();
    browser.run("window.untouched = true; window.scrollTo(0, 0)").await;
    let link = format!("a[href$='jobs/{first}']");
    eventually(LIMIT, "the page shows the job", async || is_there(&browser, &link).await).await;
    eventually(LIMIT, "the page is live", async || {
        browser.run("return document.documentElement.dataset.live").await == Value::String("on".to_owned())
    })
    .await;
    browser.run(&format!("document.querySelector(\"{link}\").focus()")).await;
    let place = browser.run("return document.activeElement.getBoundingClientRect().top").await;

    let second = queue.create_job(batch, &job(2), Timestamp::now()).await.unwrap();
    let other = format!("a[href$='jobs/{second}']");
    eventually(LIMIT, "the new job appears", async || is_there(&browser, &other).await).await;
    let is_same = browser
        .run(&format!("return window.untouched && document.activeElement === document.querySelector(\"{link}\")"))
        .await;
    assert_eq!(is_same, Value::Bool(true), "the page was loaded again or the focus was lost");
    assert_eq!(browser.run("return document.activeElement.getBoundingClientRect().top").await, place);
    assert_eq!(browser.complaints().await, [""; 0]);

    stillness(&browser, &served).await;
    keyboard(&browser, &served).await;
    shortcuts(&browser, &served).await;
    theme(&browser, &served).await;
    browser.close().await;
    served.stop().await;
}

async fn is_there(browser: &Browser, selector: &str) -> bool {
    browser.run(&format!("return document.querySelector(\"{selector}\") !== null")).await == Value::Bool(true)
}

/// What comes and goes on the overview moves nothing below it. Words in a line may make room for each other, which the
/// browser counts as a small layout shift.
async fn stillness(browser: &Browser, served: &Served) {
    let shifts = async || browser.run("return window.shifts").await.as_f64().unwrap();
    browser.page.goto(&format!("{}/", served.base)).await.unwrap();
    eventually(LIMIT, "the overview is live", async || {
        browser.run("return document.documentElement.dataset.live").await == Value::String("on".to_owned())
    })
    .await;
    browser
        .run(
            "window.shifts = 0;
             window.moved = [];
             new PerformanceObserver(list => list.getEntries().forEach(entry => {
                 window.shifts += entry.value;
                 entry.sources.forEach(({ node }) => window.moved.push(node && (node.outerHTML || node.textContent)));
             })).observe({ type: 'layout-shift' });",
        )
        .await;
    let places = "return ['pipeline', 'attention', 'curves', 'batches', 'details']
        .map(id => document.getElementById(id).getBoundingClientRect().top).join()";
    let before = browser.run(places).await;
    // What is shown first comes first: the page may be updated between them.
    served.create("/locks/queue/ingest").await;
    served.create("/locks/collections/uc_first").await;
    let shown = "return document.querySelectorAll('#attention article').length >= 2";
    eventually(LIMIT, "what is stopped needs attention", async || browser.run(shown).await == Value::Bool(true)).await;
    // It is measured when the page is painted.
    let painted = "return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))";
    browser.run(painted).await;
    let moved = shifts().await;
    let what = browser.run("return window.moved.join('; ')").await;
    assert_eq!(browser.run(places).await, before);
    assert!(moved < 0.01, "what appeared moved the rest by {moved}: {what}");
    // A page whose parts move is seen to do so.
    browser.run("document.querySelector('main').style.paddingTop = '200px'").await;
    eventually(LIMIT, "a shift is measured", async || shifts().await > 0.01).await;
    served.remove("/locks/queue/ingest").await;
    served.remove("/locks/collections/uc_first").await;
    // Their links would otherwise go away while those of the next page are counted.
    let calm = "return !/ is (paused|held)/.test(document.getElementById('attention').textContent)";
    eventually(LIMIT, "neither needs attention", async || browser.run(calm).await == Value::Bool(true)).await;
}

/// Everything that can be clicked or filled in is reached by the Tab key alone, and shows it.
async fn keyboard(browser: &Browser, served: &Served) {
    for page in ["/", "/jobs", "/locks", "/tree"] {
        browser.open(&format!("{}{page}", served.base)).await;
        let reachable = "
            return [...document.querySelectorAll('a[href], button, input, select, summary')]
                .filter(element => element.checkVisibility() && !element.disabled && element.tabIndex >= 0
                    && element.type !== 'hidden' && !element.closest('.skip'))
                .length";
        let count = browser.run(reachable).await.as_u64().unwrap();
        let body = browser.page.find(fantoccini::Locator::Css("body")).await.unwrap();
        browser.run("window.reached = new Set(); document.addEventListener('focusin', event => window.reached.add(event.target))").await;
        body.send_keys(&Key::Tab.to_string()).await.unwrap();
        for _ in 0..count + 4 {
            let focused = browser.page.active_element().await.unwrap();
            let shown = browser.run(
                "const style = getComputedStyle(document.activeElement);
                 return document.activeElement === document.body || style.outlineStyle !== 'none' || style.boxShadow !== 'none'",
            );
            assert_eq!(shown.await, Value::Bool(true), "the focus does not show on {page}");
            focused.send_keys(&Key::Tab.to_string()).await.unwrap();
        }
        let reached = browser
            .run(
                "return [...window.reached].filter(element => !element.closest('.skip') && element.isConnected).length",
            )
            .await;
        assert!(reached.as_u64().unwrap() >= count, "Tab reaches {reached} of {count} on {page}");
    }
}

/// Presses keys, whatever has the focus: just after a dialog was closed that may still be something in it.
async fn press(browser: &Browser, keys: &str) {
    let up_and_down = |keys: KeyActions, value| keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
    let actions = keys.chars().fold(KeyActions::new("keyboard".to_owned()), up_and_down);
    browser.page.perform_actions(actions).await.unwrap();
}

/// Single keys search, move and lead to pages, not while one types, and can be turned off.
async fn shortcuts(browser: &Browser, served: &Served) {
    let path = async || browser.run("return location.pathname + location.search").await;
    let focus = async || browser.run("return document.activeElement.id || document.activeElement.pathname || ''").await;
    browser.page.goto(&format!("{}/jobs", served.base)).await.unwrap();
    press(browser, "/").await;
    assert_eq!(focus().await, "find");
    // These are letters of a text now.
    press(browser, "gl?x").await;
    assert_eq!(browser.run("return document.activeElement.value").await, "gl?x");
    assert_eq!(path().await, "/jobs");
    browser.run("document.activeElement.blur()").await;
    press(browser, "j").await;
    let first = focus().await;
    let page = async || browser.run("return document.querySelector('main').outerHTML").await;
    assert!(first.as_str().is_some_and(|path| path.contains("/jobs/jid")), "{first}: {}", page().await);
    press(browser, "j").await;
    assert_ne!(focus().await, first);
    press(browser, "k").await;
    assert_eq!(focus().await, first);
    press(browser, "x").await;
    let chosen = "return [...document.querySelectorAll('tbody input[type=checkbox]:checked')].length";
    assert_eq!(browser.run(chosen).await, 1);
    press(browser, "?").await;
    eventually(LIMIT, "the keys are shown", async || is_there(browser, "#keys[open]").await).await;
    assert_eq!(browser.run("return document.querySelectorAll('#keys dt').length > 8").await, true);
    browser.run("document.querySelector('#keys input').click(); document.querySelector('#keys button').click()").await;
    press(browser, "gl").await;
    browser.page.goto(&format!("{}/faults", served.base)).await.unwrap();
    press(browser, "gl").await;
    assert_eq!(path().await, "/faults", "the keys are off");
    browser.run("[...document.querySelectorAll('#settings button')][0].click()").await;
    browser.run("document.querySelector('#keys input').click(); document.querySelector('#keys button').click()").await;
    // On a busy machine, the second key may come too late after the first.
    eventually(LIMIT, "the keys lead to the locks", async || {
        press(browser, "gl").await;
        for _ in 0..50 {
            if path().await == "/locks" {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    })
    .await;
    for path in ["/jobs/odd1", "/jobs/odd2"] {
        served.create(path).await;
    }
    eventually(LIMIT, "two faults", async || {
        browser.page.goto(&format!("{}/faults", served.base)).await.unwrap();
        browser.run("return document.querySelectorAll('main .found').length").await == 2
    })
    .await;
    press(browser, "j").await;
    assert_eq!(focus().await, "/tree/jobs/odd1");
    press(browser, "j").await;
    assert_eq!(focus().await, "/tree/jobs/odd2");
    press(browser, "k").await;
    assert_eq!(focus().await, "/tree/jobs/odd1");
    assert_eq!(browser.complaints().await, [""; 0]);
}

/// The chosen theme holds on every page, whatever the system's setting is.
async fn theme(browser: &Browser, served: &Served) {
    let ground = async || browser.run("return getComputedStyle(document.body).backgroundColor").await;
    browser.page.goto(&format!("{}/", served.base)).await.unwrap();
    let light = ground().await;
    let choose = |theme: &str| {
        format!(
            "const select = document.querySelector('#settings select'); select.value = '{theme}'; \
             select.dispatchEvent(new Event('change'))"
        )
    };
    browser.run(&choose("dark")).await;
    let dark = ground().await;
    assert_ne!(dark, light);
    browser.page.goto(&format!("{}/jobs", served.base)).await.unwrap();
    assert_eq!(ground().await, dark);
    browser.run(&choose("system")).await;
    assert_eq!(ground().await, light);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_turned_away_is_read_again_from_time_to_time_and_is_live_when_there_is_room() {
    /// How many live pages those may have who read from one address without logging in.
    const SHARE: usize = 192;
    let served = Served::still().await;
    let queue = served.queue().await;
    let batch = queue.create_batch(SUBMISSION.as_bytes(), Timestamp::now()).await.unwrap();
    queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    let http = reqwest::Client::new();
    let open = || http.get(format!("{}/events?page=", served.base)).send();
    let others = futures::future::try_join_all((0..SHARE).map(|_| open())).await.unwrap();
    assert!(others.iter().all(|stream| stream.status().is_success()));

    let browser = Browser::start().await;
    browser.look(WIDE).await;
    // Half a minute is half a second in this browser.
    let hasten = "const later = window.setTimeout; window.setTimeout = (work, ms) => later(work, ms / 60);";
    browser.tell("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({ "source": hasten })).await;
    browser.page.goto(&format!("{}/jobs", served.base)).await.unwrap();
    browser.run("window.untouched = true").await;
    let note = async || browser.run("return document.getElementById('live').textContent").await;
    let turned_away =
        "not live: too many live pages of this user or address are open; close some. Shown again every 30 s";
    eventually(LIMIT, "it says what to do", async || note().await == turned_away).await;
    let job = queue.create_job(batch, &job(1), Timestamp::now()).await.unwrap();
    eventually(LIMIT, "it shows what is new", async || is_there(&browser, &format!("a[href$='jobs/{job}']")).await)
        .await;
    assert_eq!(note().await, turned_away);
    drop(others);
    eventually(LIMIT, "it is live", async || note().await == "").await;
    assert_eq!(browser.run("return window.untouched").await, Value::Bool(true), "the page was loaded again");
    browser.close().await;
    served.stop().await;
}
