//! The rules, checked by `promtool`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use queuekeeper_queue::fault::{Blocks, Fault};
use queuekeeper_queue::state::{JobState, State as _};
use queuekeeper_testkit::documentation::block;

fn rules() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboards/prometheus"))
}

/// The files of scenarios.
fn scenarios() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(rules().join("tests")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn promtool(arguments: &[&str], files: &[PathBuf]) {
    let mut command = Command::new("promtool");
    // Its heap is small and short-lived: to collect it less often saves a fifth of the processor time.
    command.env("GOGC", "800");
    let output = command.args(arguments).args(files).current_dir(rules().join("tests")).output();
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

/// The queries of the documentation: those of a block, and that of an autoscaler.
fn documented_queries() -> Vec<String> {
    let block_of_queries = block("docs/metrics.md", "# a state whose oldest waiting job");
    let mut queries: Vec<_> = block_of_queries.split("\n\n").map(str::to_owned).collect();
    let scaled: serde_json::Value = serde_saphyr::from_str(block("docs/mill.md", "triggers:\n")).unwrap();
    queries.push(scaled["triggers"][0]["metadata"]["query"].as_str().unwrap().to_owned());
    queries
}

#[test]
fn the_queries_of_the_documentation_are_valid_and_name_what_there_is() {
    let queries = documented_queries();
    assert!(queries.len() > 2, "{queries:?}");
    let rules = queries
        .iter()
        .zip(0..)
        .map(|(query, number)| serde_json::json!({"record": format!("documented:{number}"), "expr": query}));
    let rules: Vec<_> = rules.collect();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("queries.yml");
    let groups = serde_json::json!({"groups": [{"name": "documented", "rules": rules}]});
    std::fs::write(&file, groups.to_string()).unwrap();
    promtool(&["check", "rules"], &[file]);
    let golden = include_str!("../golden/metrics.txt");
    let (records, all) = (read("recording.yml"), queries.concat());
    let words = all.split(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    let named: BTreeSet<_> =
        words.filter(|word| ["merritt_", "queuekeeper_", "mill:"].iter().any(|of| word.starts_with(of))).collect();
    assert!(named.len() > 3, "{named:?}");
    for name in named {
        let is_there = golden.contains(&format!("# TYPE {name} ")) || records.contains(&format!("record: {name}"));
        assert!(is_there, "{name} is neither a metric nor recorded by a rule");
    }
}

/// The texts that follow a key, up to the end of the line.
fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| Some(line.split_once(name)?.1.trim())).collect()
}

/// The target of the links of alerts: the page of the scraped queuekeeper.
const PAGE: &str = "http://{{ $labels.instance }}/runbook#";

/// The target where none is scraped, or what is scraped has no pages: the file beside the rules.
const FILE: &str = "runbook.md#";

fn read(name: &str) -> String {
    std::fs::read_to_string(rules().join(name)).unwrap()
}

#[test]
fn each_alert_is_tested_and_leads_to_a_section_of_the_runbook_that_names_it() {
    let (alerts, runbook) = (read("alerts.yml"), read("runbook.md"));
    let tests: String = scenarios().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let names = values(&alerts, "- alert:");
    let links = values(&alerts, " runbook_url: ");
    assert!(names.len() > 15 && names.len() == links.len(), "{names:?}");
    for (name, link) in names.into_iter().zip(links) {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} is raised in no test");
        let is_of_daemons = name.starts_with("MerrittDaemon");
        let start = if is_of_daemons || ["QueuekeeperAbsent", "QueuekeeperDown"].contains(&name) { FILE } else { PAGE };
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
    let is_alert = |word: &&str| ["Merritt", "Mill", "Queuekeeper"].iter().any(|start| word.starts_with(start));
    let named = runbook.split('`').filter(is_alert);
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

/// The faults that an expression asks for: those that a matcher names, or all, and the ones of these whose labels of
/// `merritt_fault_info` it joins.
fn faults_of(rule: &str) -> Vec<Fault> {
    let Some((_, matcher)) = rule.split_once("merritt_faults") else { return Vec::new() };
    let mut matched: Vec<_> = Fault::ALL.into();
    if let Some((matcher, _)) = matcher.strip_prefix("{fault").and_then(|rest| rest.split_once("\"}")) {
        let (_, names) = matcher.split_once('"').unwrap();
        matched = names.split('|').map(|name| Fault::from_label(name).expect(name)).collect();
    }
    for (operator, expected) in [("and", true), ("unless", false)] {
        let joins = |label: &str| {
            let info = format!("ignoring (severity, blocks_head, own_alert) merritt_fault_info{{{label}=\"true\"}}");
            rule.contains(&format!("{operator} {info}"))
        };
        if joins("blocks_head") {
            matched.retain(|fault| fault.blocks(Blocks::Head) == expected);
        }
        if joins("own_alert") {
            matched.retain(|fault| fault.has_own_alert() == expected);
        }
    }
    matched
}

#[test]
fn each_fault_raises_one_alert() {
    let alerts = read("alerts.yml");
    let rules: Vec<_> = alerts.split("- alert: ").skip(1).map(|rule| (rule.lines().next().unwrap(), rule)).collect();
    for fault in Fault::ALL {
        let raised: Vec<_> =
            rules.iter().filter(|(_, rule)| faults_of(rule).contains(&fault)).map(|(name, _)| *name).collect();
        // A stuck state has alerts by its cause, from the ages of its jobs.
        let expected = usize::from(fault != Fault::StuckState);
        assert_eq!(raised.len(), expected, "alerts.yml raises {raised:?} for {fault}; it should raise {expected}");
    }
}

#[test]
fn a_fault_that_is_named_beside_the_program_exists() {
    let mut texts = vec![read("alerts.yml"), read("recording.yml"), read("runbook.md")];
    let boards = std::fs::read_dir(rules().join("../grafana")).unwrap().map(|entry| entry.unwrap().path());
    texts.extend(boards.filter(|path| path.extension().is_some()).map(|path| std::fs::read_to_string(path).unwrap()));
    let mut named = BTreeSet::new();
    for part in texts.iter().flat_map(|text| text.split("fault").skip(1)) {
        let Some(names) = part.trim_start_matches('!').strip_prefix('=') else { continue };
        let names = names.trim_start_matches(['~', '\\', '"']);
        let end = names.find(|next: char| !next.is_ascii_lowercase() && !"_|".contains(next)).unwrap_or(names.len());
        named.extend(names[..end].split('|').filter(|name| !name.is_empty()));
    }
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(Fault::from_label(name).is_some(), "{name} is no fault of crates/queue/src/fault/table.rs");
    }
}

#[test]
fn the_states_that_daemons_work_on_are_those_of_the_queue() {
    let labels: Vec<_> = JobState::ALL.iter().filter(|state| state.is_worked_on()).map(|state| state.label()).collect();
    let recording = read("recording.yml");
    let under_way = format!("state=~\"{}\"", labels.join("|"));
    assert!(recording.contains(&under_way), "merritt:jobs_under_way of recording.yml should have {under_way}");
    let of_content: Vec<_> =
        JobState::ALL.iter().filter(|state| state.has_content()).map(|state| state.label()).collect();
    let (states, daemons) =
        (format!("state=~\"{}\"", of_content.join("|")), format!("daemon=~\"{}\"", of_content.join("|")));
    assert!(recording.contains(&states), "merritt:jobs_with_content of recording.yml should have {states}");
    let alerts = read("alerts.yml");
    let named: Vec<_> = alerts.lines().filter(|line| line.contains("daemon=~")).collect();
    assert!(named.len() == 2 && named.iter().all(|line| line.contains(&daemons)), "{named:?} should have {daemons}");
    // A pause excuses every state but the one that it does not stop.
    let continues = JobState::ALL.iter().filter(|state| state.continues_when_paused());
    let continues: Vec<_> = continues.map(|state| state.label()).collect();
    let others = format!("unless (merritt:state_age:seconds{{state!=\"{}\"}}", continues.join("|"));
    let pause = "and ignoring (state, queue) max_over_time(merritt_queue_paused{queue=\"ingest\"}";
    for text in [&recording, &alerts] {
        let (before, _) = text.split_once(pause).unwrap();
        assert!(before.trim_end().ends_with(&others), "before {pause} should be {others}");
        assert_eq!(text.matches(pause).count(), 1);
    }
    let words = std::fs::read_to_string(rules().join("../grafana/generate/words.py")).unwrap();
    let path = format!("PATH = [{}]", labels.iter().map(|label| format!("\"{label}\"")).collect::<Vec<_>>().join(", "));
    assert!(words.contains(&path), "words.py should have {path}");
}
