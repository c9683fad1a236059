//! The commands of the documentation that need a queue as that of the demo, run against one.

use std::fmt::Write as _;
use std::process::{Command, Output};
use std::time::Duration;

use super::program::Demo;
use queuekeeper_testkit::documentation::{block, commands};
use queuekeeper_testkit::wait::eventually;

const LIMIT: Duration = Duration::from_mins(10);

fn bash(arguments: &[&str]) -> Command {
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUEUEKEEPER_")) {
        command.env_remove(name);
    }
    command.args(["--noprofile", "--norc"]).args(arguments).stdin(std::process::Stdio::null());
    command
}

/// Runs a block line by line, and compares the exit code of each with what its comment says.
async fn run(demo: &Demo, text: &str) {
    let home = tempfile::tempdir().unwrap();
    let ended = home.path().join("ended");
    let lines = commands(text);
    let (web, zookeeper) = (demo.web.trim_start_matches("http://"), &demo.zookeeper);
    let mut script = String::new();
    for line in &lines {
        let command = line
            .command
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
    for (line, code) in lines.iter().zip(ended) {
        assert!(line.codes().contains(&code), "{} ended with {code}, not {:?}: {said}", line.command, line.codes());
    }
    // Where no exit code shows a failure, the output does.
    assert!(!said.contains("\"status\":4") && !said.contains("command not found"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_documentation_end_as_it_says() {
    // The README starts it so, and all else of it is as it comes.
    let (_, options) = block("README.md", ".ci/install zookeeper && cargo run ").split_once(" demo").unwrap();
    let demo = Demo::start(&options.split_whitespace().chain(["--rate", "0.1"]).collect::<Vec<_>>());
    eventually(LIMIT, "the demo is ready", async || {
        reqwest::get(format!("{}/-/ready", demo.web)).await.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    // What changes jobs comes last.
    for block in [
        block("docs/operate.md", "curl 'http://127.0.0.1:12181/"),
        block("docs/operate.md", "queuekeeper dump "),
        block("docs/operate.md", "export QUEUEKEEPER_ZOOKEEPER="),
        block("docs/operate.md", "ask() {"),
    ] {
        run(&demo, block).await;
    }
}
