//! What a real browser sends with a form, and what becomes of it.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::chromium::{Browser, LIMIT};
use super::served::Served;
use queuekeeper_testkit::wait::{eventually, eventually_some};

/// A name of ours, and one of another site. To a browser neither is this machine: of a connection that is not
/// encrypted it says less then.
const OURS: &str = "queue.example";
const THEIRS: &str = "evil.example";

/// The server of another site, which answers everything with an empty page.
async fn serve_evil(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let _ = stream.read(&mut [0; 4096]).await;
            let page = "<!doctype html><title>evil</title><p>Hello";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
            // The browser may have gone again.
            let _ = stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{page}", page.len()).as_bytes()).await;
        });
    }
}

/// Sends a form from the page at one address to another, and gives the title of the page that answers.
async fn send(browser: &Browser, from: &str, to: &str) -> String {
    browser.page.goto(from).await.unwrap();
    browser
        .run(&format!(
            "const form = document.createElement('form');
             form.method = 'post';
             form.action = '{to}';
             document.body.append(form);
             form.submit();"
        ))
        .await;
    let answered = eventually_some(LIMIT, "the form is answered", async || {
        let title = browser.page.title().await.ok()?;
        // No address takes a form that is not there: what passes is answered with that.
        ["Method Not Allowed", "Forbidden"].into_iter().find(|answer| title.starts_with(answer))
    });
    answered.await.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_ours_passes_and_one_of_another_site_does_not() {
    let served = Served::still_at(vec![OURS.to_owned()]).await;
    let evil = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let evil_port = evil.local_addr().unwrap().port();
    let evil = tokio::spawn(serve_evil(evil));
    let browser = Browser::start().await;
    let ours = |host: &str| served.base.replace("127.0.0.1", host);
    let theirs = |host: &str| format!("http://{host}:{evil_port}");
    for (from, to, expected) in [
        // On this machine the browser says what it knows; elsewhere, without TLS, only the page's address.
        (ours("127.0.0.1"), ours("127.0.0.1"), "Method Not Allowed"),
        (ours(OURS), ours(OURS), "Method Not Allowed"),
        (theirs("127.0.0.1"), ours("127.0.0.1"), "Forbidden"),
        (theirs(THEIRS), ours("127.0.0.1"), "Forbidden"),
        (theirs(THEIRS), ours(OURS), "Forbidden"),
    ] {
        let answer = send(&browser, &format!("{from}/"), &format!("{to}/jobs")).await;
        assert_eq!(answer, expected, "from {from} to {to}");
    }

    // What a script of another site sends arrives, and is refused; what would need leave to be sent does not arrive.
    browser.page.goto(&format!("{}/", theirs(THEIRS))).await.unwrap();
    let refused = async || {
        let metrics = reqwest::get(format!("{}/metrics", served.base)).await.unwrap().text().await.unwrap();
        let count = |method: &str, code: &str| {
            let labels = format!("method=\"{method}\",code=\"{code}\"}} ");
            let lines = metrics
                .lines()
                .filter_map(|line| line.strip_prefix("queuekeeper_http_requests_total{")?.split_once(&labels));
            lines.map(|(_, count)| count.parse::<u32>().unwrap()).sum::<u32>()
        };
        (count("POST", "403"), count("OPTIONS", "405"))
    };
    assert_eq!(refused().await, (3, 0));
    let to = format!("{}/api/v1/status", ours(OURS));
    browser
        .run(&format!(
            "fetch('{to}', {{ method: 'POST', mode: 'no-cors', credentials: 'include', body: '{{}}' }}).catch(() => 0);
             fetch('{to}', {{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, body: '{{}}' }}).catch(() => 0);"
        ))
        .await;
    eventually(LIMIT, "both were tried", async || refused().await == (4, 1)).await;
    browser.close().await;
    served.stop().await;
    evil.abort();
    // It was ended by its handle, and by nothing else.
    let ended = tokio::time::timeout(Duration::from_secs(5), evil).await.unwrap();
    assert!(ended.unwrap_err().is_cancelled());
}
