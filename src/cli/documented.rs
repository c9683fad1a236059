//! The documentation's tables of commands and daemons, against those that there are.

use std::collections::BTreeSet;
use std::path::Path;

use queuekeeper_ingest::daemon::{Daemon, Exchange};

use super::command;

/// The rows of the table with this head.
fn rows(document: &'static str, head: &str) -> impl Iterator<Item = &'static str> {
    let (_, table) = document.split_once(head).unwrap();
    table.lines().skip(2).take_while(|line| line.starts_with('|'))
}

/// What is written as code in the first column of a row.
fn code(row: &'static str) -> impl Iterator<Item = &'static str> {
    row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)
}

/// What is written as code in the first column of the table of commands.
fn spans() -> impl Iterator<Item = &'static str> {
    rows(include_str!("../../docs/operate.md"), "| command | what it does |").flat_map(code)
}

fn words(span: &str) -> impl Iterator<Item = &str> {
    span.split([' ', ',', '[', ']']).filter(|word| !word.is_empty())
}

fn names_below(command: &clap::Command) -> Vec<String> {
    let below = command.get_subcommands();
    below.flat_map(|command| [vec![command.get_name().to_owned()], names_below(command)].concat()).collect()
}

#[test]
fn the_documentation_names_every_command_with_those_below_it_and_no_other() {
    let all = command();
    let mut missing = Vec::new();
    for command in all.get_subcommands() {
        let name = command.get_name();
        let named: Vec<_> = spans().filter(|span| words(span).next() == Some(name)).flat_map(words).collect();
        let wanted = [vec![name.to_owned()], names_below(command)].concat();
        missing.extend(wanted.into_iter().filter(|wanted| !named.contains(&wanted.as_str())));
    }
    assert_eq!(missing, [""; 0], "the table of commands in docs/operate.md lacks these");
    for first in spans().filter_map(|span| words(span).next()) {
        assert!(all.find_subcommand(first).is_some(), "the table of commands in docs/operate.md has {first}");
    }
}

#[test]
fn the_documentation_names_every_daemon_and_how_it_is_exchanged() {
    let java = include_str!("../../docs/from-java.md");
    let names = |kept: &dyn Fn(Exchange) -> bool| -> BTreeSet<&str> {
        Daemon::ALL.into_iter().filter(|daemon| kept(daemon.spec().exchange)).map(Daemon::name).collect()
    };
    let does = rows(include_str!("../../docs/ingest.md"), "| daemon | does |").flat_map(code).collect::<BTreeSet<_>>();
    assert_eq!(does, names(&|_| true), "in docs/ingest.md");
    let reads = rows(java, "| daemon | reads | writes |").flat_map(code).collect::<BTreeSet<_>>();
    assert_eq!(reads, names(&|exchange| exchange != Exchange::None), "in docs/from-java.md");
    let exchanges = rows(java, "| exchange | alone? | before you do |");
    let alone = exchanges.filter(|row| row.split('|').nth(2).unwrap().trim().starts_with("yes"));
    assert_eq!(alone.flat_map(code).collect::<BTreeSet<_>>(), names(&|exchange| exchange == Exchange::Alone));
}

/// All files of Rust below a directory, together.
fn code_below(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| {
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        match (path.is_dir(), is_rust) {
            (true, _) if path.ends_with("target") => String::new(),
            (true, _) => code_below(&path),
            (false, true) => std::fs::read_to_string(&path).unwrap(),
            (false, false) => String::new(),
        }
    });
    texts.collect()
}

#[test]
fn the_page_for_those_who_change_the_program_names_files_and_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code: String = ["src", "crates", "tests"].map(|directory| code_below(&root.join(directory))).concat();
    let mut named = [0, 0];
    let page = include_str!("../../CONTRIBUTING.md");
    // What has spaces is a command.
    for span in page.split('`').skip(1).step_by(2).filter(|span| !span.contains(char::is_whitespace)) {
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c));
        match span.rsplit_once("::") {
            Some((_, name)) if is_name(name) && name.contains('_') => {
                named[0] += 1;
                assert!(code.contains(&format!("fn {name}(")), "there is no test {span}");
            }
            _ if span.contains('/') && !span.starts_with('/') && !span.contains("TARGET") => {
                named[1] += 1;
                assert!(root.join(span).exists(), "there is no {span}");
            }
            _ => {}
        }
    }
    assert!(named[0] > 20 && named[1] > 80, "{named:?}");
}
