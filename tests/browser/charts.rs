//! The values of a chart, by pointer and by keyboard, while the page is live.

use fantoccini::key::Key;
use jiff::Timestamp;
use queuekeeper_queue::Due;
use serde_json::json;

use super::chromium::{Browser, LIMIT};
use super::live::{SUBMISSION, WIDE, job};
use super::served::Served;
use queuekeeper_testkit::wait::eventually;

/// The instant that the chart of jobs shows, its first value, and what a screen reader hears of it.
const SHOWN: &str = "
    const chart = document.getElementById('jobs');
    const text = (selector) => chart.querySelector(selector).textContent;
    return [text('.readout'), text('[data-values]'), chart.querySelector('input').getAttribute('aria-valuetext'),
        chart.querySelector('line.cursor') !== null];
";

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_tells_its_values_by_pointer_and_by_keyboard_and_leads_to_a_larger_one() {
    let served = Served::still_for_admins().await;
    let queue = served.queue().await;
    let batch = queue.create_batch(SUBMISSION.as_bytes(), Timestamp::now()).await.unwrap();
    queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    queue.create_job(batch, &job(1), Timestamp::now()).await.unwrap();
    let browser = Browser::start().await;
    browser.look(WIDE).await;
    let is_drawn = async || {
        browser.page.goto(&format!("{}/charts?range=15m", served.base)).await.unwrap();
        let pending = browser.run("return document.querySelector('#jobs [data-values]')?.textContent ?? ''").await;
        pending == "1"
    };
    eventually(LIMIT, "the job is drawn", is_drawn).await;
    let shown = async || browser.run(SHOWN).await;
    assert_eq!(shown().await, json!(["latest", "1", "latest", false]));

    // Nothing was known at the left end, and one job is Pending at the right end; keys move between.
    let point = |share: &str| {
        format!(
            "const plot = document.querySelector('#jobs .plot'), box = plot.getBoundingClientRect();
             plot.dispatchEvent(new PointerEvent('pointermove',
                 {{ clientX: box.left + box.width * {share}, clientY: box.top + 9, pointerType: 'mouse' }}))"
        )
    };
    browser.run(&point("0.01")).await;
    let left = shown().await;
    assert_eq!((&left[1], &left[3]), (&json!("-"), &json!(true)), "{left}");
    assert_ne!(left[0], "latest");
    let leave = "document.querySelector('#jobs .plot').dispatchEvent(new PointerEvent('pointerleave', { pointerType: 'mouse' }))";
    browser.run(leave).await;
    assert_eq!(shown().await, json!(["latest", "1", left[2], false]));
    browser.run("document.querySelector('#jobs input').focus()").await;
    let slider = browser.page.active_element().await.unwrap();
    slider.send_keys(&Key::Home.to_string()).await.unwrap();
    assert_eq!(shown().await[1], "-");
    slider.send_keys(&Key::End.to_string()).await.unwrap();
    let last = shown().await;
    assert_eq!(last[1], "1");
    let heard = last[2].as_str().unwrap();
    assert!(heard.contains(": Pending 1, Estimating 0, ") && heard.starts_with(last[0].as_str().unwrap()), "{heard}");

    // What is chosen stays so while the values below it change.
    queue.create_job(batch, &job(2), Timestamp::now()).await.unwrap();
    eventually(LIMIT, "the value under the cursor changes", async || shown().await[1] == "2").await;
    assert_eq!(shown().await[3], json!(true));
    let widths = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]";
    let widths = browser.run(widths).await;
    assert_eq!(widths[0], widths[1], "nothing stands beyond the edge");

    browser.run("document.activeElement.blur(); document.querySelector('#jobs .plot').click()").await;
    eventually(LIMIT, "a click shows it large", async || {
        browser.run("return location.pathname + location.search").await == "/charts/jobs?range=15m"
    })
    .await;
    assert_eq!(browser.complaints().await, [""; 0]);
    browser.close().await;
    served.stop().await;
}
