use queuekeeper::config;

use super::harness::Server;

#[tokio::test]
async fn a_request_for_a_foreign_host_is_refused_with_a_line_that_says_what_to_do() {
    let web = config::Web {
        external_url: Some("https://ops.example.org/queue".parse().unwrap()),
        names: vec!["Queue.internal".to_owned()],
        ..config::Web::default()
    };
    let server = Server::with(web).await;
    let port = server.ports[0];
    let own = |host: &str| format!("Host: {host}:{port}");
    let get = "GET /metrics HTTP/1.1";
    for (lines, code) in [
        (vec![get, &own("localhost")], 200),
        (vec![get, &own("127.0.0.1")], 200),
        (vec![get, &own("[::1]")], 200),
        (vec![get, &own("LOCALHOST.")], 200),
        (vec![get, &own("queue.internal")], 200),
        (vec![get, "Host: localhost"], 200),
        (vec![get, "Host: ops.example.org"], 200),
        (vec![get, "Host: ops.example.org:443"], 200),
        (vec![get, &own("ops.example.org")], 200),
        (vec![&format!("GET http://localhost:{port}/metrics HTTP/1.1"), &own("localhost")], 200),
        // No browser speaks HTTP/1.0, and probes that do may know no host.
        (vec!["GET /metrics HTTP/1.0"], 200),
        (vec![get, "Host: evil.example"], 421),
        (vec![get, &own("evil.example")], 421),
        (vec![get, &own("localhost.evil.example")], 421),
        (vec![get, "Host: localhost:1"], 421),
        (vec![get, "Host: ops.example.org:8443"], 421),
        (vec![get, &own("10.9.8.7")], 421),
        (vec!["GET /metrics HTTP/1.0", "Host: evil.example"], 421),
        (vec!["GET http://evil.example/metrics HTTP/1.1", &own("localhost")], 421),
        (vec!["GET http://localhost/metrics HTTP/1.1", "Host: evil.example"], 421),
        (vec!["CONNECT evil.example:443 HTTP/1.1", "Host: evil.example:443"], 421),
        (vec!["GET /-/healthy HTTP/1.1", "Host: evil.example"], 421),
        (vec!["GET /nothing HTTP/1.1", "Host: evil.example"], 421),
        (vec![get], 400),
        (vec![get, "Host:"], 400),
        (vec![get, "Host: localhost", "Host: localhost"], 400),
        (vec![get, "Host: user@localhost"], 400),
        (vec![get, "Host: localhost:http"], 400),
        (vec![get, "Host: localhost:123456"], 400),
        (vec![get, "Host: local host"], 400),
        (vec![get, "Host: localhost, evil.example"], 400),
        (vec![get, "Host: [::1"], 400),
        (vec![get, "Host: é"], 400),
    ] {
        let answer = server.send(&lines).await;
        assert_eq!(answer.code(), code, "{lines:?}: {}", answer.head);
        if code != 200 {
            assert_eq!(answer.text().lines().count(), 1, "{}", answer.text());
        }
    }
    let refused = server.send(&[get, "Host: evil.example:9090"]).await;
    refused.has(&["http/1.1 421 misdirected request", "cache-control: no-store"]);
    let text = refused.text();
    assert!(
        text.starts_with("evil.example:9090 is not a name of this server") && text.contains("--web.external-url"),
        "{text}"
    );
    let problem = server.send(&["GET /api/v1/status HTTP/1.1", "Host: evil.example"]).await;
    problem.has(&["content-type: application/problem+json"]);
    let page = server.send(&["GET / HTTP/1.1", "Host: <script>", "Accept: text/html"]).await;
    page.has(&["http/1.1 400 bad request", "content-type: text/html; charset=utf-8"]);
    assert!(!page.text().contains("<script>"), "{}", page.text());

    let counted = server.ask(get, &[]).await;
    let series = r#"queuekeeper_http_requests_total{route="refused",method="GET",code="421"} "#;
    let count = counted.text().lines().find_map(|line| line.strip_prefix(series)).unwrap();
    assert!(count.parse::<u32>().unwrap() >= 12, "{count}");
    server.stop().await;
}
