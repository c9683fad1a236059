//! The rules for Prometheus that we ship, checked by its own tool.

use std::path::Path;
use std::process::Command;

fn rules() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/prometheus"))
}

fn promtool(arguments: &[&str]) {
    let output = Command::new("promtool").args(arguments).current_dir(rules().join("tests")).output();
    let output = output.expect("promtool is installed: .ci/install prometheus");
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "promtool {arguments:?}: {told}");
}

#[test]
fn each_alert_is_raised_when_it_should_be_and_no_other_is() {
    promtool(&["check", "rules", "../recording.yml", "../alerts.yml"]);
    promtool(&["test", "rules", "alerts_test.yml"]);
}

/// The texts behind a name, up to the line's end.
fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| Some(line.split_once(name)?.1.trim())).collect()
}

/// Where the links of alerts lead: to the page of the queuekeeper that was scraped.
const PAGE: &str = "http://{{ $labels.instance }}/runbook#";

/// Where they lead when there is none that could serve it: to the file beside the rules.
const FILE: &str = "runbook.md#";

#[test]
fn each_alert_is_tested_and_leads_to_a_section_of_the_runbook_that_names_it() {
    let read = |name: &str| std::fs::read_to_string(rules().join(name)).unwrap();
    let (alerts, tests, runbook) = (read("alerts.yml"), read("tests/alerts_test.yml"), read("runbook.md"));
    let names = values(&alerts, "- alert:");
    let links = values(&alerts, " runbook: ");
    assert!(names.len() > 15 && names.len() == links.len(), "{names:?}");
    for (name, link) in names.into_iter().zip(links) {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} is raised in no test");
        let start = if ["QueuekeeperAbsent", "QueuekeeperDown"].contains(&name) { FILE } else { PAGE };
        let section = link.strip_prefix(start).unwrap_or_else(|| panic!("{name} leads to {link}"));
        // As such pages are rendered: in lower case, with dashes for spaces.
        let parts = runbook
            .split("\n## ")
            .find(|part| part.lines().next().is_some_and(|title| title.to_lowercase().replace(' ', "-") == section));
        let text = parts.unwrap_or_else(|| panic!("{name}: the runbook has no section {section}"));
        assert!(text.contains(name), "the section {section} does not name {name}");
    }
}
