//! The documentation's table of commands, against the commands that there are.

use super::command;

/// What is written as code in the first column of the table.
fn spans() -> impl Iterator<Item = &'static str> {
    let (_, table) = include_str!("../../docs/operate.md").split_once("| command | what it does |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
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
