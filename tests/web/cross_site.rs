use queuekeeper::actions::Role;
use queuekeeper::config::{self, ConfigFile, Secret, TokenLine, WebFile};

use super::harness::Server;

const JSON: &str = "Content-Type: application/json";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// What a request is answered that passes: these addresses take no such method.
const PASSED: u16 = 405;

#[tokio::test]
async fn what_could_change_something_comes_from_a_page_of_ours_or_a_program_with_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let secret = Secret::make();
    write("tokens.yml", TokenLine::new("ci", Role::Operator, None, &secret).unwrap().to_string());
    let file = ConfigFile::read(&write("config.yml", "tokens_file: tokens.yml".to_owned())).unwrap();
    let hash = bcrypt::hash("secret", 4).unwrap();
    let web = WebFile::read(&write("web.yml", format!("basic_auth_users: {{alice: {hash}}}"))).unwrap();
    let open = Server::under(config::Web::default(), Some(file.clone())).await;
    let closed = Server::under(config::Web { file: Some(web), ..config::Web::default() }, Some(file)).await;

    let bearer = format!("Authorization: Bearer {}", secret.reveal());
    let basic = "Authorization: Basic YWxpY2U6c2VjcmV0";
    // With users, a request that passes still needs credentials, and is answered with a challenge where it has none.
    for (server, ours, unknown) in [(&open, PASSED, 403), (&closed, 401, 401)] {
        let origin = |of: &str| format!("Origin: {of}:{}", server.ports[0]);
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
            for (headers, code) in [
                (&["Sec-Fetch-Site: same-origin"][..], ours),
                (&["Sec-Fetch-Site: none"], ours),
                (&["Sec-Fetch-Site: same-origin", "Origin: null", &bearer], PASSED),
                (&["Sec-Fetch-Site: same-site"], 403),
                (&["Sec-Fetch-Site: cross-site"], 403),
                (&["Sec-Fetch-Site: cross-site", basic], 403),
                (&["Sec-Fetch-Site: cross-site", &origin("http://localhost"), &bearer], 403),
                (&["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-origin", &bearer], 403),
                (&[&origin("http://localhost")], ours),
                (&[&origin("http://localhost"), &bearer], PASSED),
                (&[&origin("http://127.0.0.1"), &bearer], 403),
                (&[&origin("https://localhost"), &bearer], 403),
                (&["Origin: http://localhost", &bearer], 403),
                (&["Origin: https://evil.example", &bearer], 403),
                (&["Origin: null", &bearer], 403),
                (&["Origin: null", basic], 403),
                (&[&bearer], PASSED),
                (&["Authorization: Bearer wrong"], 401),
                (&[basic], PASSED),
                (&[], unknown),
            ] {
                let lines = [&[JSON], headers].concat();
                let answer = server.ask(&format!("{method} /api/v1/status HTTP/1.1"), &lines).await;
                assert_eq!(answer.code(), code, "{method} {headers:?}: {}", answer.text());
                answer.has(&["content-type: application/problem+json"]);
            }
        }
    }

    for (path, kind, code) in [
        ("/api/v1/status", Some(JSON), PASSED),
        ("/api/v1/status", Some("Content-Type: Application/JSON; charset=utf-8"), PASSED),
        ("/api/v1/status", Some(FORM), 415),
        ("/api/v1/status", Some("Content-Type: text/plain"), 415),
        ("/api/v1/status", None, 415),
        ("/jobs", Some(FORM), PASSED),
        ("/jobs", Some("Content-Type: multipart/form-data; boundary=x"), 415),
        ("/jobs", Some("Content-Type: text/plain; x=application/x-www-form-urlencoded"), 415),
        ("/jobs", Some(JSON), 415),
        ("/jobs", None, 415),
    ] {
        let lines: Vec<&str> = [bearer.as_str()].into_iter().chain(kind).collect();
        let answer = open.ask(&format!("POST {path} HTTP/1.1"), &lines).await;
        assert_eq!(answer.code(), code, "{path} {kind:?}: {}", answer.text());
    }

    // No answer allows more than a form: there is no CORS.
    let asked = ["Origin: https://evil.example", "Access-Control-Request-Method: POST"];
    for line in ["OPTIONS /api/v1/status HTTP/1.1", "OPTIONS /jobs HTTP/1.1", "GET /api/v1/status HTTP/1.1"] {
        let answer = open.ask(line, &asked).await;
        assert_eq!(answer.code(), if line.starts_with("GET") { 200 } else { PASSED }, "{line}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    let series = r#"queuekeeper_http_requests_total{route="refused",method="POST",code="403"} "#;
    let metrics = open.ask("GET /metrics HTTP/1.1", &[]).await;
    assert!(metrics.text().lines().any(|line| line.starts_with(series)), "{}", metrics.text());
    open.stop().await;
    closed.stop().await;
}
