//! What the panels of actions and alerts draw, counted by `promtool`: as much as happened, and once.

use std::process::Command;

use super::board::{panels, queries, read, text};

/// What is scraped every quarter of a minute, never when it is queried, in promtool's notation: 156 within 40 seconds,
/// a restart, 8 more, and an outcome that was never seen before.
const SERIES: [(&str, &str); 4] = [
    (r#"queuekeeper_mirror_synced{job="q",instance="a"}"#, "1x60"),
    (
        r#"queuekeeper_actions_total{job="q",instance="a",action="release",source="web",outcome="done"}"#,
        "3x9 50 120 159x20 0x3 8x30",
    ),
    (
        r#"queuekeeper_actions_total{job="q",instance="a",action="release",source="web",outcome="conflict"}"#,
        "_x45 5x15",
    ),
    (r#"queuekeeper_alerts_total{job="q",instance="a",outcome="executed"}"#, "2x9 60 130 257x50"),
];

/// What happened in all, by the title of the panel.
const HAPPENED: [(&str, u64); 3] =
    [("Actions", 156 + 8 + 5), ("Outcome of actions", 156 + 8 + 5), ("Alerts received, by outcome", 255)];

/// The bars that a query has in every minute, as promtool calculates them.
fn bars(expr: &str) -> f64 {
    let expr = expr.replace("$__interval", "1m").replace("$job", "q").replace("$instance", "a");
    let series: Vec<String> =
        SERIES.iter().map(|(name, values)| format!("{{series: '{name}', values: '{values}'}}")).collect();
    // Of a test that expects a value which there is not, promtool says what there is.
    let minutes: Vec<String> = (0..=15)
        .map(|minute| {
            format!("{{expr: 'sum({expr})', eval_time: {minute}m7s, exp_samples: [{{labels: '{{}}', value: -1}}]}}")
        })
        .collect();
    let test = format!(
        "tests: [{{interval: 15s, input_series: [{}], promql_expr_test: [{}]}}]",
        series.join(", "),
        minutes.join(", ")
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("exact.yml");
    std::fs::write(&file, test).unwrap();
    let output = Command::new("promtool").args(["test", "rules"]).arg(&file).output();
    let output = output.expect("promtool is installed: .ci/install prometheus");
    let reported = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    let got: Vec<&str> = reported.lines().filter_map(|line| line.trim().strip_prefix("got: ")).collect();
    assert_eq!(got.len(), 16, "{reported}");
    got.iter().filter(|got| **got != "nil").map(|got| got.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn what_was_requested_is_drawn_as_often_as_it_happened() {
    let board = read("queuekeeper");
    for (title, happened) in HAPPENED {
        let query = queries("queuekeeper").into_iter().find(|query| query.what == format!("queuekeeper: {title} A"));
        assert!((bars(&query.unwrap().promql) - happened as f64).abs() < 1e-9, "{title}");
        let panel = panels(&board).find(|panel| text(panel, "/title") == title).unwrap();
        assert_eq!(text(panel, "/targets/0/interval"), "1m", "{title}");
    }
    let mark = queries("overview").into_iter().find(|query| query.what.ends_with("annotation Actions")).unwrap();
    assert!((bars(&mark.promql) - HAPPENED[0].1 as f64).abs() < 1e-9, "{}", mark.what);
}
