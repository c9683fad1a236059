use prometheus_client::registry::Registry;
use queuekeeper::metrics::{Format, expose};
use queuekeeper_ingest::fetch::Hosts;
use queuekeeper_ingest::metrics::DaemonMetrics;
use queuekeeper_testkit::readers::{promtool_is_content, python_reads};

use super::golden::{assert_golden, sorted};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/daemons.txt");

/// The families of daemons that have done nothing yet: every label set is there from the start.
fn exposed(format: Format) -> String {
    let mut registry = Registry::default();
    DaemonMetrics::default().register(&mut registry);
    Hosts::default().register(&mut registry);
    expose(&registry, format).unwrap()
}

#[test]
fn names_types_help_and_labels_of_the_daemons_are_the_golden_ones() {
    assert_golden(&sorted(&exposed(Format::Text)), GOLDEN);
}

#[test]
fn promtool_and_python_read_what_the_daemons_expose() {
    let text = exposed(Format::Text);
    promtool_is_content(&text);
    let [mut text, mut openmetrics] = [python_reads(&text, false), python_reads(&exposed(Format::OpenMetrics1), true)];
    text.sort();
    openmetrics.sort();
    assert_eq!(text, openmetrics);
    assert!(text.len() > 200, "{}", text.len());
}
