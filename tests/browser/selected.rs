//! Jobs are selected on a live page, acted on, and their ids copied.

use fantoccini::Locator;
use fantoccini::key::Key;
use jiff::Timestamp;
use queuekeeper_queue::Due;
use serde_json::{Value, json};

use super::chromium::{Browser, LIMIT};
use super::live::{SUBMISSION, WIDE, job};
use super::served::Served;
use queuekeeper_testkit::wait::eventually;

/// What the bar says, and the actions that it offers; null while it is not shown.
const BAR: &str = "
    const bar = document.getElementById('bulk');
    if (bar.hidden) return null;
    const actions = [...bar.querySelectorAll('li:not([hidden]) button')].map(button => button.textContent);
    return [document.getElementById('chosen').textContent, actions];
";

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_selected_on_a_live_page_acted_on_and_their_ids_copied() {
    let served = Served::still_for_admins().await;
    let queue = served.queue().await;
    let batch = queue.create_batch(SUBMISSION.as_bytes(), Timestamp::now()).await.unwrap();
    queue.acquire_batch(Due::Jobs, Timestamp::now()).await.unwrap();
    let first = queue.create_job(batch, &job(1), Timestamp::now()).await.unwrap();
    let second = queue.create_job(batch, &job(2), Timestamp::now()).await.unwrap();
    let browser = Browser::start().await;
    browser.look(WIDE).await;
    let box_of = |job: &dyn std::fmt::Display| format!("document.querySelector('input[value=\"{job}\"]')");
    let is_there = async |job: String| browser.run(&format!("return {job} !== null")).await == Value::Bool(true);

    browser.page.goto(&format!("{}/jobs", served.base)).await.unwrap();
    eventually(LIMIT, "both jobs are shown", async || {
        is_there(box_of(&first)).await && is_there(box_of(&second)).await
    })
    .await;
    assert_eq!(browser.run(BAR).await, Value::Null, "nothing is selected");
    let top = "return document.querySelector('tbody tr').getBoundingClientRect().top";
    let place = browser.run(top).await;
    browser.run(&format!("{}.click()", box_of(&first))).await;
    let pending = json!(["Hold", "Fail", "Set priority"]);
    assert_eq!(browser.run(BAR).await, json!(["1 selected", pending]));
    assert_eq!(browser.run(top).await, place, "the rows have moved");

    // What is selected stays so while the list changes, and what is new is not.
    let third = queue.create_job(batch, &job(3), Timestamp::now()).await.unwrap();
    eventually(LIMIT, "the new job appears", async || is_there(box_of(&third)).await).await;
    let boxes = [&first, &second, &third].map(|job| format!("{}.checked", box_of(job)));
    assert_eq!(browser.run(&format!("return [{}]", boxes.join(","))).await, json!([true, false, false]));
    browser.run("document.getElementById('whole-page').click()").await;
    assert_eq!(browser.run(BAR).await, json!(["3 selected", pending]));
    browser.run("document.getElementById('whole-page').click()").await;
    assert_eq!(browser.run(BAR).await, Value::Null);

    // All but some: those are ticked, and the choice stays while more are.
    browser.run("document.querySelector('input[name=which][value=others]').click()").await;
    browser.run(&format!("{}.click()", box_of(&first))).await;
    let others =
        "return [document.getElementById('others').textContent, document.querySelector('[value=others]').checked]";
    assert_eq!(browser.run(others).await, json!(["all matching except the 1 selected", true]));
    browser.run("document.querySelector('#bulk fieldset button').click()").await;
    assert_eq!(browser.run(BAR).await, Value::Null);

    // Each id has a button that copies it, and more of them come with what is new; the keyboard reaches them.
    browser.tell("Browser.grantPermissions", json!({ "permissions": ["clipboardSanitizedWrite"] })).await;
    let copies = format!("button[aria-label='Copy {third}']");
    let button = browser.page.find(Locator::Css(&copies)).await.unwrap();
    browser.run(&format!("document.querySelector(\"{copies}\").focus()")).await;
    assert_eq!(browser.run("return document.activeElement.tabIndex").await, json!(0));
    button.send_keys(&Key::Enter.to_string()).await.unwrap();
    let said = format!("Copied {third}");
    eventually(LIMIT, "it says that it is copied", async || {
        let notes = browser.run("return [...document.querySelectorAll('[role=status]')].map(note => note.textContent)");
        notes.await.as_array().unwrap().contains(&json!(said))
    })
    .await;

    // Enter in the field of an action is that action; what is cancelled leads back.
    browser.run(&format!("{}.click()", box_of(&second))).await;
    let field = browser.page.find(Locator::Css("#bulk [name=priority]")).await.unwrap();
    field.send_keys(&format!("7{}", Key::Enter)).await.unwrap();
    let heading = "return document.querySelector('h1').textContent";
    eventually(LIMIT, "the list is to be confirmed", async || {
        browser.run(heading).await == json!("Set the priority of 1 selected job to 7?")
    })
    .await;
    let cancel = browser.page.find(Locator::LinkText("Cancel")).await.unwrap();
    cancel.click().await.unwrap();
    eventually(LIMIT, "the list of jobs is shown", async || browser.run(heading).await == json!("Jobs")).await;
    assert_eq!(browser.complaints().await, [""; 0]);
    browser.close().await;
    served.stop().await;
}
