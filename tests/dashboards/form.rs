//! What can be said of the dashboards without running anything: that they are what their source makes, and whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::board::{NAMES, folder, list, panels, read, strings, text};

#[test]
fn the_dashboards_are_what_their_source_makes() {
    let made = tempfile::tempdir().unwrap();
    let output = Command::new("python3").arg(folder().join("generate")).arg(made.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Beside the files there are folders.
    let names = |directory: &Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        files.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names(made.path()), names(&folder()));
    assert_eq!(names(made.path()), NAMES.map(|name| format!("{name}.json")).into());
    for name in names(made.path()) {
        let (made, kept) = [made.path(), &folder()].map(|at| std::fs::read_to_string(at.join(&name)).unwrap()).into();
        assert!(made == kept, "{name} is not what its source makes: python3 dashboards/grafana/generate");
    }
}

#[test]
fn the_table_of_dashboards_has_each_of_them() {
    let (_, table) = include_str!("../../docs/alerts.md").split_once("| dashboard | question |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let named: BTreeSet<_> = rows.map(|row| row.split('|').nth(1).unwrap().trim().to_owned()).collect();
    let titles = NAMES.map(|name| text(&read(name), "/title").trim_start_matches("queuekeeper / ").to_owned());
    assert_eq!(named, titles.into());
}

/// The cells of the grid that something covers.
fn cells(place: &Value) -> impl Iterator<Item = (u64, u64)> {
    let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| place[side].as_u64().unwrap());
    assert!(w > 0 && h > 0 && x + w <= 24, "{place}");
    (x..x + w).flat_map(move |x| (y..y + h).map(move |y| (x, y)))
}

#[test]
fn every_panel_has_its_place_a_unit_a_description_and_words_for_no_data() {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    for name in NAMES {
        let board = read(name);
        let (mut ids, mut covered, mut titles) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for panel in list(&board, "/panels") {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {panel}");
            for cell in cells(&panel["gridPos"]) {
                assert!(covered.insert(cell), "{name}: something else is at {cell:?} of {panel}");
            }
        }
        for panel in panels(&board) {
            let what = format!("{name}: {}", text(panel, "/title"));
            assert!(titles.insert(text(panel, "/title")), "{what} twice");
            assert!(text(panel, "/description").ends_with('.'), "{what} says nothing");
            assert!(!text(panel, "/fieldConfig/defaults/unit").is_empty(), "{what} has no unit");
            assert!(!text(panel, "/fieldConfig/defaults/noValue").is_empty(), "{what} does not say that it is empty");
            assert_eq!(panel["datasource"], source, "{what}");
            let mut letters = BTreeSet::new();
            assert!(!list(panel, "/targets").is_empty(), "{what} asks nothing");
            for target in list(panel, "/targets") {
                assert!(letters.insert(text(target, "/refId")) && target["refId"].is_string(), "{what}: {target}");
                assert_eq!(target["datasource"], source, "{what}");
                let expr = text(target, "/expr");
                assert!(expr.contains(r#"job=~"$job"#) || expr.contains("merritt:"), "{what}");
                // Elsewhere each queue is shown once, whichever of its queuekeepers are there.
                assert!(name == "queuekeeper" || !expr.contains("instance=~"), "{what}: {expr}");
                if panel["type"] == "table" {
                    let columns = panel.pointer("/transformations").unwrap().to_string();
                    let (_, labels) =
                        expr.split_once("max by (").unwrap_or_else(|| panic!("{what} leaks labels: {expr}"));
                    for label in labels.split(')').next().unwrap().split(", ") {
                        assert!(columns.contains(&format!("\"{label}\":\"")), "{what} has no column {label}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_dashboards_belong_together() {
    let boards = NAMES.map(|name| (name, read(name)));
    let uids: BTreeSet<&str> = boards.iter().map(|(_, board)| text(board, "/uid")).collect();
    assert_eq!(uids.len(), boards.len(), "{uids:?}");
    let mut colours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, board) in &boards {
        assert!(list(board, "/tags").contains(&json!("queuekeeper")), "{name}");
        let variables: BTreeSet<_> = list(board, "/templating/list").iter().map(|each| text(each, "/name")).collect();
        let links = list(board, "/links");
        let others = links.iter().find(|link| link["type"] == "dashboards").unwrap();
        assert_eq!((&others["keepTime"], &others["includeVars"]), (&json!(true), &json!(true)), "{name}");
        assert!(links.iter().any(|link| text(link, "/url").starts_with("${url:raw}/")), "{name} does not lead to us");
        for found in strings(board) {
            if let Some((uid, _)) = found.strip_prefix("/d/").and_then(|rest| rest.split_once('?')) {
                assert!(uids.contains(uid), "{name} leads to {uid}, which is none of {uids:?}");
            }
            for used in found.split('$').skip(1) {
                let used = used.trim_start_matches('{');
                let used = used.split(|next: char| !next.is_alphanumeric() && next != '_').next().unwrap();
                assert!(used.starts_with("__") || variables.contains(used), "{name} has no variable {used}: {found}");
            }
        }
        for panel in panels(board) {
            for change in list(panel, "/fieldConfig/overrides") {
                let colour = list(change, "/properties").iter().find(|property| property["id"] == "color");
                if let Some(colour) = colour {
                    let of = colours.entry(text(change, "/matcher/options").to_owned()).or_default();
                    of.insert(text(colour, "/value/fixedColor").to_owned());
                }
            }
        }
    }
    // What is called the same looks the same, on whichever dashboard.
    for state in ["pending", "provisioning", "storing", "completed", "failed", "held", "limit", "older"] {
        assert_eq!(colours[state].len(), 1, "{state}: {:?}", colours[state]);
    }
}

#[test]
fn the_overview_has_a_row_for_each_question_and_the_alerts_by_cause() {
    let board = read("overview");
    let mut rows: Vec<(&str, Vec<&Value>)> = Vec::new();
    for panel in list(&board, "/panels") {
        if panel["type"] == "row" {
            rows.push((text(panel, "/title"), Vec::new()));
        } else {
            rows.last_mut().expect("the first panel is a row").1.push(panel);
        }
    }
    let questions = [
        "Is it flowing?",
        "Where is it stuck, and why?",
        "How long will a new deposit take?",
        "Which collection or cause is responsible?",
        "Is queuekeeper itself healthy?",
    ];
    assert_eq!(
        rows.iter().map(|(title, _)| *title).collect::<Vec<_>>(),
        questions.map(|each| format!("{each} — $job"))
    );
    // What answers the question fits on a screen below its heading.
    for (title, panels) in &rows {
        let top = panels.iter().filter_map(|panel| panel.pointer("/gridPos/y")?.as_u64()).min().unwrap();
        let first = panels.iter().filter(|panel| panel["gridPos"]["y"].as_u64() < Some(top + 14));
        assert!(first.count() >= 3, "{title}");
    }
    let alerts = rows[1].1.iter().find(|panel| panel["type"] == "table").unwrap();
    for column in ["Alert", "Cause", "State", "Fault"] {
        assert!(strings(alerts).contains(&column), "{column}");
    }
}
