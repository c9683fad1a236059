//! The rules, checked by `promtool`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn rules() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/prometheus"))
}

/// The files of scenarios.
fn scenarios() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(rules().join("tests")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn promtool(arguments: &[&str], files: &[PathBuf]) {
    let output = Command::new("promtool").args(arguments).args(files).current_dir(rules().join("tests")).output();
    let output = output.expect("promtool is installed: .ci/install prometheus");
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "promtool {arguments:?}: {printed}");
}

#[test]
fn each_alert_fires_when_it_should_and_no_other_does() {
    promtool(&["check", "rules", "../recording.yml", "../alerts.yml"], &[]);
    // Each file separately, since each uses a whole core.
    std::thread::scope(|scope| {
        for file in scenarios() {
            scope.spawn(move || promtool(&["test", "rules"], &[file]));
        }
    });
}

/// The texts that follow a key, up to the end of the line.
fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| Some(line.split_once(name)?.1.trim())).collect()
}

/// The target of the links of alerts: the page of the scraped queuekeeper.
const PAGE: &str = "http://{{ $labels.instance }}/runbook#";

/// The target if no server is available: the file beside the rules.
const FILE: &str = "runbook.md#";

fn read(name: &str) -> String {
    std::fs::read_to_string(rules().join(name)).unwrap()
}

#[test]
fn each_alert_is_tested_and_leads_to_a_section_of_the_runbook_that_names_it() {
    let (alerts, runbook) = (read("alerts.yml"), read("runbook.md"));
    let tests: String = scenarios().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let names = values(&alerts, "- alert:");
    let links = values(&alerts, " runbook: ");
    assert!(names.len() > 15 && names.len() == links.len(), "{names:?}");
    for (name, link) in names.into_iter().zip(links) {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} is raised in no test");
        let start = if ["QueuekeeperAbsent", "QueuekeeperDown"].contains(&name) { FILE } else { PAGE };
        let section = link.strip_prefix(start).unwrap_or_else(|| panic!("{name} leads to {link}"));
        // As rendered in such pages: in lower case, with dashes for spaces.
        let parts = runbook
            .split("\n## ")
            .find(|part| part.lines().next().is_some_and(|title| title.to_lowercase().replace(' ', "-") == section));
        let text = parts.unwrap_or_else(|| panic!("{name}: the runbook has no section {section}"));
        assert!(text.contains(name), "the section {section} does not name {name}");
    }
    // The runbook has no section for an alert that does not exist.
    let known: BTreeSet<&str> = values(&alerts, "- alert:").into_iter().collect();
    let named = runbook.split('`').filter(|word| word.starts_with("Merritt") || word.starts_with("Queuekeeper"));
    for name in named.map(|word| word.split('{').next().unwrap_or(word)) {
        assert!(known.contains(name), "the runbook names {name}");
    }
}

#[test]
fn an_alert_about_the_queue_outlasts_a_failed_scrape() {
    let alerts = read("alerts.yml");
    let of_queue = alerts.split("- alert: ").filter(|rule| rule.starts_with("Merritt"));
    let mut number = 0;
    for rule in of_queue {
        let name = rule.lines().next().unwrap();
        assert!(rule.contains(" for: ") && rule.contains(" keep_firing_for: 15m"), "{name}");
        number += 1;
    }
    assert!(number > 15, "{number}");
}
