use queuekeeper::config;

use super::harness::Server;

#[tokio::test]
async fn everything_is_below_the_prefix_and_nothing_beside_it() {
    let web = config::Web { route_prefix: "/ops/queue/".parse().unwrap(), ..config::Web::default() };
    let server = Server::with(web).await;
    for (path, to) in [("/", "ops/queue/"), ("/ops/queue", "queue/")] {
        let redirect = server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
        redirect.has(&["http/1.1 302 found", &format!("location: {to}")]);
    }
    for path in ["/", "/metrics", "/-/healthy", "/api/v1/status", "/api/v1/openapi.json"] {
        let below = server.ask(&format!("GET /ops/queue{path} HTTP/1.1"), &[]).await;
        assert_eq!(below.code(), 200, "{path}: {}", below.head);
    }
    for path in [
        "/metrics",
        "/-/healthy",
        "/ops/",
        "/ops",
        "/ops/queuex",
        "/ops/queue/ops/queue/",
        "/ops/queue//",
        "/ops//queue/",
        "/ops%2Fqueue/",
        "/ops/queue/%2e%2e/queue/metrics",
        "/ops/queue/../metrics",
        "//ops/queue/metrics",
        "/OPS/queue/metrics",
        "/ops/queue/static/",
        "/ops/queue/static/..%2fqueuekeeper.css",
    ] {
        let beside = server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
        assert_eq!(beside.code(), 404, "{path}: {}", beside.head);
    }

    // Pages lead from where they are, and never name the prefix or the host.
    let page = server.ask("GET /ops/queue/ HTTP/1.1", &[]).await;
    let css = page.text().split('"').find(|text| text.contains(".css")).unwrap();
    let css = css.strip_prefix("./").unwrap();
    assert_eq!(server.ask(&format!("GET /ops/queue/{css} HTTP/1.1"), &[]).await.code(), 200);
    assert!(!page.text().contains("ops/queue"), "{}", page.text());
    for (path, root) in [("/ops/queue/a/b", "../"), ("/lost", "./ops/queue/"), ("/lost/far/away", "../../ops/queue/")] {
        let lost = server.ask(&format!("GET {path} HTTP/1.1"), &["Accept: text/html"]).await;
        assert!(lost.text().contains(&format!(r#"<a href="{root}">Overview</a>"#)), "{path}: {}", lost.text());
    }
    let problem = server.ask("GET /ops/queue/api/v1/nothing HTTP/1.1", &[]).await;
    problem.has(&["http/1.1 404 not found", "content-type: application/problem+json"]);
    let elsewhere = server.ask("GET /api/v1/nothing HTTP/1.1", &[]).await;
    elsewhere.has(&["http/1.1 404 not found", "content-type: text/plain; charset=utf-8"]);

    let counted = server.ask("GET /ops/queue/metrics HTTP/1.1", &[]).await;
    for series in [
        r#"queuekeeper_http_requests_total{route="/metrics",method="GET",code="200"} 1"#,
        r#"queuekeeper_http_requests_total{route="/",method="GET",code="302"} 2"#,
        r#"queuekeeper_http_request_duration_seconds_count{route="/api/v1/status"} 1"#,
    ] {
        assert!(counted.text().lines().any(|line| line == series), "{series} is not in {}", counted.text());
    }
    server.stop().await;
}

#[tokio::test]
async fn behind_a_proxy_that_takes_the_prefix_away_nothing_has_it() {
    let web = config::Web {
        external_url: Some("https://ops.example.org/queue".parse().unwrap()),
        route_prefix: "/".parse().unwrap(),
        ..config::Web::default()
    };
    let server = Server::with(web).await;
    let page = server.send(&["GET / HTTP/1.1", "Host: ops.example.org"]).await;
    assert_eq!(page.code(), 200);
    assert!(page.text().contains(r#"href="./static/queuekeeper-"#) && !page.text().contains("/queue/"));
    server.stop().await;
}
