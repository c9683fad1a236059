//! What is built in: its licences, what of it is there twice, and whether it is used. `deny.toml` says what may be;
//! `cargo deny` looks at more, and this at every change.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const DENY: &str = include_str!("../deny.toml");

/// The registry that Cargo takes by itself, as `Cargo.lock` names it. Others begin with `registry+`, too.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The texts in quotes behind each place where `before` stands.
fn quoted(before: &str, text: &'static str) -> Vec<&'static str> {
    text.split(before).skip(1).map(|rest| rest.split('"').nth(1).unwrap()).collect()
}

/// What is needed here.
struct Needed {
    /// Every package, by its id.
    packages: HashMap<String, Value>,
    /// Those that are in a crate of ours or build it, as `cargo deny` takes them: not what its tests alone need.
    built: BTreeSet<String>,
    /// Those that are ours, with what each of them asks for.
    ours: BTreeMap<String, Value>,
}

fn needed() -> Needed {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", &target];
    let output = Command::new(env!("CARGO")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reported: Value = serde_json::from_slice(&output.stdout).unwrap();
    let by_id = |list: &Value| -> HashMap<String, Value> {
        list.as_array().unwrap().iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one.clone())).collect()
    };
    let (packages, nodes) = (by_id(&reported["packages"]), by_id(&reported["resolve"]["nodes"]));
    let mut built = BTreeSet::new();
    let members = reported["workspace_members"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
    let ours: BTreeMap<String, Value> = members.map(|id| (id.clone(), nodes[&id]["deps"].clone())).collect();
    let mut left: Vec<String> = ours.keys().cloned().collect();
    while let Some(id) = left.pop() {
        if !built.insert(id.clone()) {
            continue;
        }
        for needed in nodes[&id]["deps"].as_array().unwrap() {
            if needed["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev") {
                left.push(needed["pkg"].as_str().unwrap().to_owned());
            }
        }
    }
    let packages = packages.into_iter().filter(|(id, _)| nodes.contains_key(id)).collect();
    Needed { packages, built, ours }
}

/// Whether a licence expression can be met by licences that are allowed.
fn is_met(expression: &str, allowed: &[&str]) -> bool {
    let is_outside = |at: usize| expression[..at].matches('(').count() == expression[..at].matches(')').count();
    for joint in [" OR ", " AND "] {
        if let Some((at, _)) = expression.match_indices(joint).find(|(at, _)| is_outside(*at)) {
            let sides = [&expression[..at], &expression[at + joint.len()..]].map(|side| is_met(side, allowed));
            return if joint == " OR " { sides.contains(&true) } else { !sides.contains(&false) };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_met(inner, allowed),
        None => allowed.contains(&expression),
    }
}

#[test]
fn what_is_built_in_is_allowed_comes_from_the_registry_and_is_there_once() {
    let allowed: Vec<_> = DENY.split("allow = [").nth(1).unwrap().split(']').next().unwrap().split('"').collect();
    assert!(is_met("ISC AND (GPL-3.0 OR MIT)", &allowed) && !is_met("MIT AND GPL-3.0 OR GPL-2.0", &allowed));
    let Needed { packages, built, ours } = needed();
    let mut versions = BTreeMap::<&str, Vec<&str>>::new();
    for (id, package) in &packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        // The older way of writing it.
        let license = text("license").replace(" / ", "/").replace('/', " OR ");
        assert!(is_met(&license, &allowed), "{id}: {license:?}");
        // Only what is ours comes from nowhere.
        let source = if ours.contains_key(id) { "" } else { REGISTRY };
        assert_eq!(text("source"), source, "{id}");
        if built.contains(id) {
            versions.entry(text("name")).or_default().push(text("version"));
        }
    }
    assert!(versions.len() > 100, "it looked at all of them: {}", versions.len());
    let known = quoted("{ crate =", DENY);
    let is_known = |name: &str, version: &str| known.contains(&name) || known.contains(&&*format!("{name}@{version}"));
    for (name, versions) in &versions {
        let unknown = versions.iter().filter(|version| !is_known(name, version)).count();
        assert!(unknown <= 1, "{name} is there more than once: {versions:?}; deny.toml knows why others are");
    }
    for known in known {
        let name = known.split('@').next().unwrap();
        assert!(versions.get(name).is_some_and(|versions| versions.len() > 1), "{known} is there once, or not at all");
    }
}

/// The names in the Rust files at a path, which may be a file or a directory.
fn names_in(path: &Path, names: &mut BTreeSet<String>) {
    if let Ok(entries) = std::fs::read_dir(path) {
        entries.for_each(|entry| names_in(&entry.unwrap().path(), names));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        names.extend(text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned));
    }
}

#[test]
fn every_dependency_is_named_by_the_code_that_asks_for_it() {
    let Needed { packages, ours, .. } = needed();
    let mut unused = Vec::new();
    let mut count = 0;
    for (id, dependencies) in &ours {
        let package = &packages[id];
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let (mut own, mut of_tests) = (BTreeSet::new(), BTreeSet::new());
        names_in(&folder.join("src"), &mut own);
        names_in(&folder.join("build.rs"), &mut own);
        for folder in ["tests", "benches", "examples"].map(|name| folder.join(name)) {
            names_in(&folder, &mut of_tests);
        }
        for dependency in dependencies.as_array().unwrap() {
            count += 1;
            let name = dependency["name"].as_str().unwrap();
            let is_of_tests = dependency["dep_kinds"].as_array().unwrap().iter().all(|kind| kind["kind"] == "dev");
            let is_named = own.contains(name) || is_of_tests && of_tests.contains(name);
            if !is_named {
                unused.push(format!("{}: {name}", package["name"].as_str().unwrap()));
            }
        }
    }
    assert!(count > 100, "it looked at all of them: {count}");
    assert!(unused.is_empty(), "no code names these dependencies: {unused:#?}");
}

/// Where `SECURITY.md` names a test: `folder/file.rs::function`, below `tests/` or from the root.
fn named_tests(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(".rs::"))
}

#[test]
fn every_test_that_the_security_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    let mut named = 0;
    for (file, function) in named_tests(include_str!("../SECURITY.md")) {
        named += 1;
        let places = [root.join("tests").join(format!("{file}.rs")), root.join(format!("{file}.rs"))];
        let text = places.iter().find_map(|place| std::fs::read_to_string(place).ok()).unwrap_or_default();
        let name = function.rsplit("::").next().unwrap();
        if !text.contains(&format!("fn {name}(")) {
            missing.push(format!("{file}.rs::{function}"));
        }
    }
    assert!(named > 50, "{named} tests are named");
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist: {missing:#?}");
}
