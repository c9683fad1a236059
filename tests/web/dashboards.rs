//! The files for the programs around us, and the runbook, as they are served.

use std::collections::BTreeSet;
use std::path::Path;

use queuekeeper::config;

use super::harness::Server;

/// Where the links of a page lead that begin with this.
fn links<'a>(page: &'a str, start: &str) -> BTreeSet<&'a str> {
    let start = format!("href=\"{start}");
    page.split(&*start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn every_file_is_listed_explained_and_served_as_it_is() {
    let server = Server::start().await;
    let get = async |path: &str| server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
    let overview = get("/").await;
    assert!(
        overview.text().contains("<a href=\"./dashboards\">") && overview.text().contains("<a href=\"./runbook\">")
    );
    let page = get("/dashboards").await;
    page.has(&["http/1.1 200 ok", "content-type: text/html; charset=utf-8"]);
    let listed = links(page.text(), "./dashboards/");
    assert!(listed.len() >= 10, "{listed:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards");
    for name in listed {
        let kind = match name.rsplit_once('.').unwrap().1 {
            "json" => "application/json",
            "yml" => "application/yaml",
            "md" => "text/markdown; charset=utf-8",
            other => panic!("{other} of {name}"),
        };
        let file = get(&format!("/dashboards/{name}")).await;
        file.has(&["http/1.1 200 ok", &format!("content-type: {kind}"), "x-content-type-options: nosniff"]);
        let path = page.text().split("class=\"label\">").find_map(|rest| {
            let path = rest.split('<').next().unwrap();
            (Path::new(path).file_name().unwrap_or_default() == name).then_some(path)
        });
        let kept = std::fs::read_to_string(root.join(path.expect("its path is shown"))).unwrap();
        assert!(file.text() == kept, "{name}");
    }
    for name in ["nothing.json", "generate", "..%2fprometheus%2falerts.yml", "alerts_test.yml", "prometheus/alerts.yml"]
    {
        assert_eq!(get(&format!("/dashboards/{name}")).await.code(), 404, "{name}");
    }
    server.stop().await;
}

#[tokio::test]
async fn the_runbook_has_a_section_for_each_link_of_an_alert_and_leads_to_pages_that_are_there() {
    let server = Server::start().await;
    let get = async |path: &str| server.ask(&format!("GET {path} HTTP/1.1"), &[]).await;
    let (page, alerts) = (get("/runbook").await, get("/dashboards/alerts.yml").await);
    page.has(&["http/1.1 200 ok", "content-type: text/html; charset=utf-8"]);
    let wanted = alerts.text().split(" runbook_url: ").skip(1).map(|rest| {
        let link = rest.lines().next().unwrap();
        link.split_once("runbook#").or(link.split_once("runbook.md#")).unwrap().1
    });
    let wanted: BTreeSet<&str> = wanted.collect();
    assert!(wanted.len() > 15, "{wanted:?}");
    for section in wanted {
        assert!(
            page.text().contains(&format!("<section class=\"panel operation runbook\" id=\"{section}\">")),
            "{section}"
        );
        assert!(page.text().contains(&format!("<a href=\"#{section}\">")), "{section}");
    }
    let pages = links(page.text(), "./");
    assert!(pages.contains("locks?kind=job") && pages.contains("-/ready"), "{pages:?}");
    for path in pages {
        let code = get(&format!("/{}", path.replace("&amp;", "&"))).await.code();
        // There is no image here to answer from, and all else is as it should be.
        assert!(code == 200 || code == 503, "{path}: {code}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_prefix_and_another_place_of_the_metrics_are_in_the_files_that_need_them() {
    let web = config::Web {
        route_prefix: "/ops/queue".parse().unwrap(),
        telemetry_path: "/figures".parse().unwrap(),
        ..config::Web::default()
    };
    let server = Server::with(web).await;
    let get = async |name: &str| {
        let file = server.ask(&format!("GET /ops/queue/dashboards/{name} HTTP/1.1"), &[]).await;
        file.text().to_owned()
    };
    let local = "http://127.0.0.1:12181/ops/queue";
    let alerts = get("alerts.yml").await;
    assert!(alerts.contains("runbook_url: http://{{ $labels.instance }}/ops/queue/runbook#failed-jobs\n"), "{alerts}");
    assert!(get("prometheus.yml").await.contains("    metrics_path: /ops/queue/figures\n"));
    assert!(get("alertmanager.yml").await.contains(&format!("url: {local}/api/v1/alerts\n")));
    assert!(get("overview.json").await.contains(&format!("\"query\": \"{local}\"")));
    server.stop().await;
}
