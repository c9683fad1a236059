use std::io::Read;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{STOPPED_IN_TIME, Server};

const SAFE: [&str; 6] = [
    "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options: nosniff",
    "x-frame-options: deny",
    "referrer-policy: same-origin",
    "cross-origin-opener-policy: same-origin",
    "cross-origin-resource-policy: same-origin",
];

/// What a browser sends with a form of ours.
const OURS: &str = "Sec-Fetch-Site: same-origin";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

#[tokio::test]
async fn metrics_come_in_the_form_and_the_size_that_is_asked_for() {
    let server = Server::start().await;
    let text = server.ask("GET /metrics HTTP/1.1", &[]).await;
    text.has(&["http/1.1 200 ok", "content-type: text/plain; version=0.0.4; charset=utf-8", "vary: accept"]);
    assert!(text.text().contains("\n# TYPE queuekeeper_build_info gauge\n"), "{}", text.text());
    assert!(!text.head.contains("content-encoding"), "{}", text.head);

    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let openmetrics = server.ask("GET /metrics HTTP/1.1", &[accept]).await;
    openmetrics.has(&["content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"]);
    assert!(openmetrics.text().ends_with("\n# EOF\n"), "{}", openmetrics.text());

    let zipped = server.ask("GET /metrics HTTP/1.0", &[accept, "Accept-Encoding: gzip"]).await;
    zipped.has(&["content-encoding: gzip"]);
    let mut unzipped = String::new();
    flate2::read::GzDecoder::new(&*zipped.body).read_to_string(&mut unzipped).unwrap();
    assert!(unzipped.ends_with("\n# EOF\n") && zipped.body.len() * 3 < unzipped.len(), "{}", zipped.body.len());

    let small = server.ask("GET /-/healthy HTTP/1.1", &["Accept-Encoding: gzip"]).await;
    assert!(!small.head.contains("content-encoding"), "{}", small.head);
    server.stop().await;
}

#[tokio::test]
async fn probes_and_pages_say_what_is_there_and_errors_what_to_do() {
    let server = Server::start().await;
    let healthy = server.ask("GET /-/healthy HTTP/1.1", &[]).await;
    healthy.has(&["http/1.1 200 ok", "cache-control: no-store"]);
    let ready = server.ask("GET /-/ready HTTP/1.1", &[]).await;
    ready.has(&["http/1.1 503 service unavailable"]);
    assert_eq!(ready.text(), "not ready: the queue has not been read yet, not connected to ZooKeeper\n");

    let page = server.ask("GET / HTTP/1.1", &[]).await;
    page.has(&["http/1.1 200 ok", "content-type: text/html; charset=utf-8", "cache-control: no-store"]);
    page.has(&SAFE);
    for (ending, content_type) in [("css", "text/css; charset=utf-8"), ("svg", "image/svg+xml")] {
        let start = page.text().find(r#"href="./static/queuekeeper-"#).unwrap();
        let links = page.text()[start..].split('"').filter(|text| text.starts_with("./static/"));
        let link = links.into_iter().find(|link| link.ends_with(ending)).unwrap();
        let asset = server.ask(&format!("GET {} HTTP/1.1", link.trim_start_matches('.')), &[]).await;
        asset.has(&["http/1.1 200 ok", "cache-control: public, max-age=31536000, immutable"]);
        asset.has(&[&format!("content-type: {content_type}")]);
    }
    let old = server.ask("GET /static/queuekeeper-0000000000000000.css HTTP/1.1", &[]).await;
    old.has(&["http/1.1 404 not found", "cache-control: no-store"]);

    let lost = server.ask("GET /a/b/c HTTP/1.1", &["Accept: text/html,*/*;q=0.8"]).await;
    lost.has(&["http/1.1 404 not found", "content-type: text/html; charset=utf-8"]);
    lost.has(&SAFE);
    assert!(lost.text().contains(r#"<a href="../../">Overview</a>"#), "{}", lost.text());
    let plain = server.ask("GET /nothing HTTP/1.1", &[]).await;
    assert!(plain.text().starts_with("There is no page at this address."), "{}", plain.text());
    let method = server.ask("POST /metrics HTTP/1.1", &["Content-Length: 0", OURS, FORM]).await;
    method.has(&["http/1.1 405 method not allowed", "allow: get,head"]);
    assert!(method.text().starts_with("This address does not support that method."), "{}", method.text());
    let large = server.ask("POST /metrics HTTP/1.1", &["Content-Length: 9999999", OURS, FORM]).await;
    large.has(&["http/1.1 413 payload too large"]);
    assert!(large.text().contains("Send less."), "{}", large.text());

    let unread = server.ask("GET /api/v1/overview HTTP/1.1", &[]).await;
    unread.has(&["http/1.1 503 service unavailable", "content-type: application/problem+json"]);
    let history = server.ask("GET /api/v1/history?points=36 HTTP/1.1", &[]).await;
    history.has(&["http/1.1 200 ok", "content-type: application/json"]);
    let history: serde_json::Value = serde_json::from_slice(&history.body).unwrap();
    assert_eq!((history["points"].as_array().unwrap().len(), &history["step_seconds"]), (36, &600.into()));
    for points in ["0", "2161", "-1", "x", "3&more=1"] {
        let refused = server.ask(&format!("GET /api/v1/history?points={points} HTTP/1.1"), &[]).await;
        refused.has(&["http/1.1 400 bad request", "content-type: application/problem+json"]);
    }

    let counted = server.ask("GET /metrics HTTP/1.1", &[]).await;
    for series in [
        r#"queuekeeper_http_requests_total{route="/-/ready",method="GET",code="503"} 1"#,
        r#"queuekeeper_http_requests_total{route="unmatched",method="GET",code="404"} 2"#,
        r#"queuekeeper_http_requests_total{route="/metrics",method="POST",code="405"} 1"#,
        r#"queuekeeper_http_request_duration_seconds_count{route="/"} 1"#,
    ] {
        assert!(counted.text().lines().any(|line| line == series), "{series} is not in {}", counted.text());
    }
    server.stop().await;
}

#[tokio::test]
async fn it_ends_in_time_whoever_is_still_connected_and_takes_nobody_new() {
    let server = Server::start().await;
    // One that never spoke, one that stopped in the middle of its head, one that waits between two requests.
    let _silent = TcpStream::connect(("127.0.0.1", server.ports[0])).await.unwrap();
    let mut halfway = TcpStream::connect(("127.0.0.1", server.ports[1])).await.unwrap();
    halfway.write_all(b"GET /metrics HTT").await.unwrap();
    let mut idle = TcpStream::connect(("127.0.0.1", server.ports[1])).await.unwrap();
    idle.write_all(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut start = [0; 15];
    idle.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200 OK");
    let ports = server.ports;
    let took = server.stop().await;
    assert!(took < STOPPED_IN_TIME, "{took:?}");
    for port in ports {
        TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = Server::start().await;
    let filler = format!("X-Filler: {}", "x".repeat(100_000));
    let answer = server.ask("GET / HTTP/1.1", &[&filler]).await;
    answer.has(&["http/1.1 431 request header fields too large"]);
    // With 32 KiB it is taken, and with a byte more it is not, however much is read at once.
    let rest = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nX-Filler: \r\nConnection: close\r\n\r\n".len();
    for (more, code) in [(0, 200), (1, 431), (20_000, 431)] {
        let filler = format!("X-Filler: {}", "x".repeat(32 * 1024 - rest + more));
        assert_eq!(server.ask("GET /-/healthy HTTP/1.1", &[&filler]).await.code(), code, "{more}");
    }
    server.stop().await;
}
