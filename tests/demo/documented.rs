//! The commands of the documentation, run against a demo.

use std::fmt::Write as _;
use std::process::{Command, Output};
use std::time::Duration;

use super::program::Demo;
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(4);

/// All pages with commands.
const PAGES: [&str; 13] = [
    include_str!("../../README.md"),
    include_str!("../../SECURITY.md"),
    include_str!("../../docs/alerts.md"),
    include_str!("../../docs/deposit.md"),
    include_str!("../../docs/design.md"),
    include_str!("../../docs/from-java.md"),
    include_str!("../../docs/ingest.md"),
    include_str!("../../docs/metrics.md"),
    include_str!("../../docs/mill.md"),
    include_str!("../../docs/operate.md"),
    include_str!("../../docs/performance.md"),
    include_str!("../../docs/security.md"),
    include_str!("../../docs/stores.md"),
];

/// The blocks that are run, by the beginning of their first command.
const RUN: [&str; 4] =
    ["curl 'http://127.0.0.1:12181/", "ask() {", "export QUEUEKEEPER_ZOOKEEPER=", "queuekeeper dump "];

/// The blocks that are not run, and why.
const LEFT_OUT: [(&str, &str); 19] = [
    (".ci/audit", "it installs programs, and asks for a database that is not here"),
    (".ci/install zookeeper && cargo run", "it installs packages and builds; what it starts is what is run here"),
    (".ci/install zookeeper prometheus", "the same with Prometheus, whose demo has tests of its own"),
    (".ci/install && .ci/test", "it is what runs this"),
    ("cargo run -- standalone", "it builds, and runs until it is ended; tests/cli/standalone.rs runs both commands"),
    ("cargo run -- object request", "it needs an object; tests/cli/access.rs runs the command"),
    ("queuekeeper ingest ", "it needs stores and a ZooKeeper of one's own; tests/cli/ingest.rs runs it"),
    (".ci/package build", "it builds for many minutes; packaging/try runs what it makes"),
    ("queuekeeper serve ", "it needs a ZooKeeper of one's own; its flags have tests of their own"),
    ("deposits=http", "it needs daemons and a token; tests/cli/deposits.rs makes each of its requests"),
    ("queuekeeper dashboards files", "it writes below /etc; tests/cli/dashboards.rs runs the command itself"),
    ("queuekeeper rules check", "it needs rules and a message of Alertmanager; tests/cli/rules.rs runs both commands"),
    ("queuekeeper check-config config.yml --probe", "it needs stores; tests/cli/stores.rs runs each of its commands"),
    ("mkdir damaged", "it needs a backup; tests/cli/catalogue.rs restores one, tests/cli/repairs.rs rebuilds"),
    ("mkdir policies", "it needs stores, and runs until it is ended; tests/cli/mill.rs runs each of its commands"),
    ("queuekeeper mill pause", "it needs a catalogue and a mill; tests/cli/mill.rs runs both commands"),
    ("copy=/srv/", "it needs stores and a mill; tests/cli/drill.rs runs this block, and compares what it prints"),
    ("queuekeeper mill verify", "it needs a catalogue and a mill; tests/cli/mill_verify.rs runs its commands"),
    ("queuekeeper token ci", "it needs users and a tokens file; tests/web/who.rs and tests/cli run the commands"),
];

/// The blocks of the documentation that are for a shell.
fn blocks() -> Vec<&'static str> {
    PAGES.into_iter().flat_map(blocks_of).collect()
}

fn blocks_of(page: &'static str) -> Vec<&'static str> {
    let parts: Vec<_> = page.split("```").collect();
    // Text and blocks alternate, each block with its language on its first line.
    assert!(parts.len() % 2 == 1, "each block has its end");
    parts.iter().skip(1).step_by(2).filter_map(|block| block.strip_prefix("sh\n")).collect()
}

fn bash(arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUEUEKEEPER_")) {
        command.env_remove(name);
    }
    command.args(["--noprofile", "--norc"]).args(arguments).stdin(std::process::Stdio::null());
    command
}

/// A command and its comment.
struct CommandLine {
    command: String,
    comment: String,
}

/// The commands of a block: as many lines each as bash needs for a whole one.
fn commands(block: &str) -> Vec<CommandLine> {
    let (mut found, mut text) = (Vec::new(), String::new());
    for line in block.lines() {
        writeln!(text, "{line}").unwrap();
        let is_whole = bash(&["-n", "-c", &text]).output().unwrap().status.success();
        if is_whole && !line.trim_end().ends_with(['|', '\\']) {
            let comment = line.split_once(" # ").map(|(_, comment)| comment.to_owned()).unwrap_or_default();
            found.push(CommandLine { command: std::mem::take(&mut text), comment });
        }
    }
    assert_eq!(text, "", "the last command is not whole");
    found
}

/// The exit codes that a command may have when no prompt can be answered.
fn codes(comment: &str) -> Vec<i32> {
    if comment.split([' ', ',', ';']).any(|word| word == "prompts") {
        return vec![2];
    }
    let other = comment.split_once("exits with ").and_then(|(_, after)| after.split(' ').next()?.parse().ok());
    [0].into_iter().chain(other).collect()
}

/// Runs a block line by line, and records the exit code and output of each.
async fn run(block: &'static str) {
    let demo = Demo::start(&["--rate", "0.1"]);
    eventually(LIMIT, "the demo is ready", async || {
        reqwest::get(format!("{}/-/ready", demo.web)).await.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let ended = home.path().join("ended");
    let lines = commands(block);
    let (web, zookeeper) = (demo.web.trim_start_matches("http://"), &demo.zookeeper);
    let mut script = String::new();
    for CommandLine { command, .. } in &lines {
        let command = command
            .replace("zk1:2181,zk2:2181,zk3:2181/merritt", zookeeper)
            .replace("zk1:2181/merritt", zookeeper)
            .replace("zk9:2181/copy", &format!("{zookeeper}/copy"))
            .replace("127.0.0.1:12181", web)
            .replace("Authorization: Bearer $TOKEN", "Sec-Fetch-Site: none");
        writeln!(script, "{command}echo $? >>'{}'", ended.display()).unwrap();
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_queuekeeper")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut bash = bash(&["-c", &script]);
    bash.env("PATH", path).env("HOME", home.path()).env_remove("XDG_STATE_HOME").current_dir(home.path());
    let output: Output = tokio::task::spawn_blocking(move || bash.output()).await.unwrap().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let ended = std::fs::read_to_string(&ended).unwrap();
    let ended: Vec<i32> = ended.lines().map(|code| code.parse().unwrap()).collect();
    assert_eq!(ended.len(), lines.len(), "{said}");
    for (CommandLine { command, comment }, code) in lines.iter().zip(ended) {
        assert!(codes(comment).contains(&code), "{command} ended with {code}, not {:?}: {said}", codes(comment));
    }
    // Where no exit code shows a failure, the output does.
    assert!(!said.contains("\"status\":4") && !said.contains("command not found"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_documentation_end_as_it_says() {
    let blocks = blocks();
    let of = |begin: &str| blocks.iter().filter(|block| block.starts_with(begin)).count();
    for begin in RUN.into_iter().chain(LEFT_OUT.map(|(begin, _)| begin)) {
        assert!(of(begin) >= 1, "no block begins with {begin}");
    }
    for block in &blocks {
        let is_run = RUN.iter().any(|begin| block.starts_with(begin));
        let is_left_out = LEFT_OUT.iter().any(|(begin, why)| block.starts_with(begin) && !why.is_empty());
        assert!(is_run != is_left_out, "this block is neither run nor left out for a reason:\n{block}");
    }
    for block in blocks.into_iter().filter(|block| RUN.iter().any(|begin| block.starts_with(begin))) {
        run(block).await;
    }
}

/// The links of a page to files, without those below a heading.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains(':') && !file.contains(' '))
}

#[test]
fn every_page_is_looked_at_and_every_link_leads_to_a_file() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(top.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs: Vec<_> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    assert_eq!(docs.len() + 2, PAGES.len());
    let others = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| top.join(name));
    for path in docs.into_iter().chain(others) {
        let page = std::fs::read_to_string(&path).unwrap();
        for link in links(&page) {
            assert!(path.parent().unwrap().join(link).exists(), "{} leads to {link}", path.display());
        }
    }
}

#[test]
fn the_exit_codes_that_a_line_may_have_are_in_its_comment() {
    assert_eq!(codes("shows what will be written, then prompts"), [2]);
    assert_eq!(codes("what would repair the faults? exits with 3 if none can be repaired"), [0, 3]);
    assert_eq!(codes("does it flow, and if not, where and why?"), [0]);
    let two = commands("a \\\n  b # 1\nc '{\nd}'  # asks\n");
    assert_eq!(two.iter().map(|line| &*line.comment).collect::<Vec<_>>(), ["1", "asks"]);
}
