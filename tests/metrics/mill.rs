use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use queuekeeper::metrics::mill::{LoopFigures, MillFamilies, MillFigures, PolicyFigures, ProofFigures, QueueFigures};
use queuekeeper::metrics::{Format, expose};
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_store::StoreFamilies;
use queuekeeper_testkit::readers::{promtool_is_content, python_reads};

use super::golden::{assert_golden, sorted};

const PROCESS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/process.txt");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/mill.txt");

fn exposed(format: Format) -> String {
    let at = |second| Timestamp::from_second(second).ok();
    let mut registry = Registry::default();
    MillFamilies::register(&mut registry).report(MillFigures {
        queues: vec![QueueFigures { queue: "duplication-high", tasks: [4, 2, 1, 0, 5, 6], oldest: at(1_800_000_000) }],
        ended: vec![("duplication-high", "done", 7), ("duplication-high", "dead", 0)],
        workers: [2, 18],
        processes: 1,
        unserved: vec![("BIT", 0)],
        bit_results: vec![("success", 9), ("failure", 0)],
        bit_errors: vec![("account1".to_owned(), "main".to_owned(), 2)],
        incomplete_reports: vec![("account1".to_owned(), "main".to_owned(), 3)],
        repair_stops: vec![(String::new(), "operator", Timestamp::from_second(1_800_000_000).unwrap())],
        proofs: vec![ProofFigures {
            account: "account1".to_owned(),
            store: "main".to_owned(),
            max_age: Some(Duration::from_hours(24 * 60)),
            kinds: [("read", 90, at(1_800_000_000)), ("provider", 0, None), ("none", 3, at(1_800_086_400))],
        }],
        loops: vec![LoopFigures {
            producer: "duplication",
            started: at(1_800_000_000),
            ended: None,
            ends: at(1_800_000_100),
            next: at(1_802_592_000),
            left: [3, 1],
            items: [100, 40],
        }],
        pauses: vec![(String::new(), "replica".to_owned(), Timestamp::from_second(1_800_000_000).unwrap())],
        held: vec![("account1".to_owned(), "replica".to_owned(), 1)],
        budgets: vec![("cold".to_owned(), "restores", 0.25), ("cold".to_owned(), "bytes_out", 1.0)],
        missing: vec![("account1".to_owned(), "replica".to_owned(), 60)],
        policies: vec![PolicyFigures { account: "account1".to_owned(), is_usable: true, waiting: 1 }],
    });
    expose(&registry, format).unwrap()
}

#[test]
fn names_types_help_and_labels_of_the_mill_are_the_golden_ones() {
    assert_golden(&exposed(Format::Text), GOLDEN);
}

#[test]
fn promtool_and_python_read_what_is_exposed_of_the_mill() {
    let text = exposed(Format::Text);
    promtool_is_content(&text);
    let [mut text, mut openmetrics] = [python_reads(&text, false), python_reads(&exposed(Format::OpenMetrics1), true)];
    text.sort();
    openmetrics.sort();
    assert_eq!(text, openmetrics);
}

#[test]
fn names_types_help_and_labels_of_what_a_process_does_with_stores_and_tasks_are_the_golden_ones() {
    let mut registry = Registry::default();
    let _counted = MillMetrics::register(&mut registry);
    let _store = StoreFamilies::register(&mut registry).store(&"main".parse().unwrap());
    let text = expose(&registry, Format::Text).unwrap();
    promtool_is_content(&text);
    // Each histogram has the same buckets with every label set; they would be half of the file.
    let is_bucket = |line: &&str| line.contains("_bucket{");
    let text: Vec<_> = text.lines().filter(|line| !is_bucket(line)).collect();
    assert_golden(&sorted(&text.join("\n")), PROCESS);
}
