//! Every query, run as Grafana runs it, and every link, followed.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::board::{DAEMONS, NAMES, Query, list, queries, read, strings, text};
use super::running::{Demo, Repository};
use crate::support::prometheus::{Alerts, Prometheus};
use queuekeeper_testkit::wait::{eventually, eventually_some};

/// What the demo does within seconds may take a busy machine minutes.
const LIMIT: Duration = Duration::from_mins(10);

/// What the demo does not make: the beginning of a query's metric, and why there is nothing. None of them may return
/// data.
const NEVER: [(&str, &str); 7] = [
    ("queuekeeper_alerts_total", "no Alertmanager sends anything to the demo"),
    ("queuekeeper_alert_rule_last_action_timestamp_seconds", "the demo has no rules for alerts"),
    ("queuekeeper_alert_rule_breaker_open", "the demo has no rules for alerts"),
    ("queuekeeper_alert_rule_budget_left", "the demo has no rules for alerts"),
    ("queuekeeper_alert_rule_holds", "the demo has no rules for alerts"),
    ("queuekeeper_config_last_reload_successful", "the demo has no configuration file"),
    ("queuekeeper_web_config_last_reload_successful", "the demo has no web configuration"),
];

/// What the demo shows at times only: a part of the query, and why there may be nothing. They are parsed all the same.
const AT_TIMES: [(&str, &str); 3] = [
    ("mill_task_oldest_created_timestamp_seconds", "a worker of the demo takes a task within milliseconds"),
    (r#"queue="access_large",state="pending""#, "the access daemon takes a request within milliseconds"),
    (r#"queue="access_small",state="pending""#, "the access daemon takes a request within milliseconds"),
];

/// A text with the variables in it as Grafana fills them in for all queues and one instance, the state Provisioning and
/// the last minutes.
fn filled(text: &str, address: &str) -> String {
    let mut text = text.to_owned();
    // In a query, a backslash stands for itself only when it is escaped, too.
    let instance = format!("({})", address.replace('.', r"\\."));
    for (name, value) in [
        ("$__rate_interval", "15s"),
        ("$__interval", "5s"),
        ("$__range", "300s"),
        ("$instance", &*instance),
        ("$job", "(queuekeeper)"),
        ("$state", "provisioning"),
    ] {
        text = text.replace(name, value);
    }
    assert!(!text.contains('$'), "a variable is left: {text}");
    text
}

/// How many series a query has, over the last minutes or now.
async fn found(prometheus: &Prometheus, query: &Query, address: &str) -> usize {
    let promql = filled(&query.promql, address);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (start, end) = ((now - 300).to_string(), now.to_string());
    let answer = if query.is_instant {
        prometheus.ask("query", &[("query", &promql)]).await
    } else {
        let range = [("query", &*promql), ("start", &start), ("end", &end), ("step", "5")];
        prometheus.ask("query_range", &range).await
    };
    list(&answer.unwrap(), "/result").len()
}

fn never(query: &Query) -> Option<&'static str> {
    NEVER.iter().find(|(metric, _)| query.promql.contains(&format!("{metric}{{"))).map(|(_, reason)| *reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_parses_and_has_data_where_the_demo_makes_it_and_every_link_leads_somewhere() {
    let demo = Demo::start();
    let prometheus = Prometheus::start(&demo.address, Alerts::AtOnce);
    let has = async |promql: &str| {
        let answer = prometheus.ask("query", &[("query", promql)]).await;
        answer.is_some_and(|answer| !list(&answer, "/result").is_empty())
    };
    eventually(LIMIT, "the demo is scraped", async || has("merritt_jobs{state=\"failed\"} > 0").await).await;

    // What happens in the demo only by hand, or at times and not for long.
    demo.leave_a_stray_entry().await;
    demo.action("pause", "queue:accessSmall").await;
    let paused = "merritt_queue_paused_timestamp_seconds{queue=\"access_small\"}";
    eventually(LIMIT, "the pause is scraped", async || has(paused).await).await;
    demo.action("unpause", "queue:accessSmall").await;

    let boards = NAMES.into_iter().filter(|name| *name != DAEMONS);
    let is_at_times = |query: &Query| AT_TIMES.iter().any(|(part, _)| query.promql.contains(part));
    let (at_times, queries): (Vec<_>, Vec<_>) = boards.clone().flat_map(queries).partition(is_at_times);
    assert!(!at_times.is_empty());
    for query in &at_times {
        found(&prometheus, query, &demo.address).await;
    }
    let (rare, wanted): (Vec<_>, Vec<_>) = queries.into_iter().partition(|query| never(query).is_some());
    assert!(wanted.len() > 120, "{}", wanted.len());
    // What the variables are chosen from.
    for name in boards {
        for variable in list(&read(name), "/templating/list").iter().filter(|each| each["type"] == "query") {
            let asked = filled(text(variable, "/query/query"), &demo.address);
            let asked = asked.strip_prefix("label_values(").unwrap();
            let (metric, label) = asked.trim_end_matches(')').rsplit_once(", ").unwrap();
            let what = format!("{name}: {asked} has values");
            eventually(LIMIT, &what, async || {
                let values = prometheus.ask(&format!("label/{label}/values"), &[("match[]", metric)]).await;
                values.is_some_and(|values| !values.as_array().unwrap().is_empty())
            })
            .await;
        }
    }
    all_have_data(&prometheus, wanted, &demo.address).await;
    for query in &rare {
        let series = found(&prometheus, query, &demo.address).await;
        assert_eq!(series, 0, "{} has data by now: take it off the list ({})", query.what, never(query).unwrap());
    }
    every_link_leads_somewhere(&demo).await;
    the_alerts_lead_to_the_runbook(&prometheus, &demo).await;
}

/// Waits until each query has data.
async fn all_have_data(prometheus: &Prometheus, mut wanted: Vec<Query>, address: &str) {
    let deadline = Instant::now() + LIMIT;
    while !wanted.is_empty() {
        let mut left = Vec::new();
        for query in wanted {
            if found(prometheus, &query, address).await == 0 {
                left.push(query);
            }
        }
        wanted = left;
        assert!(Instant::now() < deadline, "no data within {LIMIT:?}: {wanted:#?}");
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_of_the_daemons_has_data_where_they_work() {
    let repository = Repository::start();
    let prometheus = Prometheus::start(&repository.address, Alerts::Patient);
    let scraped = async || {
        let answer = prometheus.ask("query", &[("query", "merritt_daemon_workers")]).await;
        answer.is_some_and(|answer| !list(&answer, "/result").is_empty())
    };
    // What happens before that is no increase.
    eventually(LIMIT, "the daemons are scraped", scraped).await;
    repository.submit("a.txt", 0);
    repository.submit("a.zip", 1);
    // What is marked on each dashboard is tried with the others.
    let wanted = queries(DAEMONS).into_iter().filter(|query| !query.what.contains(": annotation ")).collect();
    all_have_data(&prometheus, wanted, &repository.address).await;
}

/// Follows what the dashboards say of the status page.
async fn every_link_leads_somewhere(demo: &Demo) {
    let boards = NAMES.map(read);
    let links: BTreeSet<&str> =
        boards.iter().flat_map(strings).filter_map(|found| found.strip_prefix("${url:raw}")).collect();
    assert!(links.len() > 20, "{links:?}");
    let jobs: Value = serde_json::from_str(&demo.get("/api/v1/jobs?limit=1").await.1).unwrap();
    let collection = text(&jobs, "/items/0/collection").to_owned();
    for link in links {
        let mut path = link.to_owned();
        for (name, value) in [
            ("${state}", "provisioning"),
            ("${__field.labels.state}", "pending"),
            ("${__field.labels.kind}", "job"),
            ("${__field.labels.fault}", "orphan_entry"),
            ("${__data.fields.Fault}", "leaked_lock"),
            // Which may have jobs in no state by now.
            ("state=${state}&collection=${__field.labels.collection}", &*format!("collection={collection}")),
            ("${__field.labels.collection}", &*collection),
        ] {
            path = path.replace(name, value);
        }
        let (code, page) = demo.get(&path).await;
        assert_eq!(code, 200, "{link}: {page}");
    }
}

/// Takes an alert that fires, and follows its link as its reader would.
async fn the_alerts_lead_to_the_runbook(prometheus: &Prometheus, demo: &Demo) {
    let link = eventually_some(LIMIT, "an alert is raised", async || {
        let alerts = prometheus.ask("alerts", &[]).await?;
        let failed =
            list(&alerts, "/alerts").iter().find(|alert| text(alert, "/labels/alertname") == "MerrittJobsFailed");
        failed.map(|alert| text(alert, "/annotations/runbook_url").to_owned())
    });
    let link = link.await;
    let (address, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert_eq!(address, demo.address);
    let (page, section) = path.split_once('#').unwrap();
    let (code, text) = demo.get(&format!("/{page}")).await;
    assert_eq!(code, 200, "{link}: {text}");
    assert!(text.contains(&format!("id=\"{section}\"")) && text.contains("MerrittJobsFailed"), "{link}: {text}");
}
