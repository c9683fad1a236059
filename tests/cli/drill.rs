//! The fire drill of the documentation, as it is written there.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use queuekeeper_testkit::process::Program;
use queuekeeper_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};

use super::program::queuekeeper;
use super::stores::command;

const PAGE: &str = include_str!("../../docs/mill.md");

/// The lines of the drill.
fn lines() -> Vec<&'static str> {
    let (_, behind) = PAGE.split_once("```sh\ncopy=/srv/").expect("the page has the drill");
    let begin = PAGE.len() - behind.len() - "copy=/srv/".len();
    PAGE[begin..].split("```").next().unwrap().lines().collect()
}

/// What a line may end with, and what it prints, by its comment.
fn expected(line: &str) -> (i32, Vec<&str>) {
    let comment = line.rsplit_once(" # ").map_or("", |(_, comment)| comment);
    let code = comment.split_once("exits with ").and_then(|(_, after)| after.split([':', ' ']).next()?.parse().ok());
    let printed = comment.split_once("prints ").map_or("", |(_, printed)| printed);
    (code.unwrap_or(0), printed.split('"').skip(1).step_by(2).collect())
}

/// Stores, accounts and policies as the page has them before the drill.
fn configure(home: &Path) {
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["main", "replica", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let [main, replica] = ["main", "replica"].map(|name| home.join(name).display().to_string());
    let text = format!(
        "stores:\n  main: {{url: \"file://{main}\"}}\n  replica: {{url: \"file://{replica}\"}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill: {{accounts: {{account1: {{stores: {{\"1\": main, \"2\": replica}}}}}}, policies: {{directory: policies}}}}\n"
    );
    fs::write(home.join("config.yml"), text).unwrap();
    fs::write(home.join("policies/duplication-accounts.json"), r#"["account1"]"#).unwrap();
    let policy = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;
    fs::write(home.join("policies/account1-duplication-policy.json"), policy).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fire_drill_of_the_documentation_prints_what_it_says_and_leads_to_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    configure(home);
    let file = home.join("config.yml").display().to_string();
    let web = format!("127.0.0.1:{}", queuekeeper_zookeeper::child::free_port().unwrap());
    let words = ["mill", "run", "--workers", "2", "--config.file", &file, "--web.listen-address", &web];
    let mut mill = Program(queuekeeper(home, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let is_ready =
        async || reqwest::get(format!("http://{web}/-/ready")).await.is_ok_and(|answer| answer.status() == 200);
    eventually(Duration::from_mins(1), "the mill is ready", is_ready).await;

    let lines = lines();
    let mut script = String::from("exec 2>&1\n");
    for line in &lines {
        writeln!(script, "{}\necho \"@@ $?\"", line.replace("/srv", &home.display().to_string())).unwrap();
    }
    let mut bash = Command::new("timeout");
    bash.args(["180", "bash", "--noprofile", "--norc", "-c", &script]).current_dir(home).stdin(Stdio::null());
    let program = Path::new(env!("CARGO_BIN_EXE_queuekeeper")).parent().unwrap();
    bash.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
    bash.env("HOME", home).env_remove("XDG_STATE_HOME").env("QUEUEKEEPER_CONFIG_FILE", &file);
    let output = tokio::task::spawn_blocking(move || bash.output()).await.unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut texts = Vec::new();
    let mut rest = printed.as_str();
    while let Some((text, behind)) = rest.split_once("@@ ") {
        let (code, behind) = behind.split_once('\n').unwrap();
        texts.push((text, code.parse::<i32>().unwrap()));
        rest = behind;
    }
    assert_eq!(texts.len(), lines.len(), "{printed}");
    let mut compared = 0;
    for (line, (text, code)) in lines.iter().zip(texts) {
        let (expected_code, expected) = expected(line);
        assert_eq!(code, expected_code, "{line}: {printed}");
        for part in expected {
            assert!(text.contains(part), "{line} does not print {part:?}: {printed}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "the page says what is printed");

    // What was requested at the end comes, beside the process that leads.
    let has_report = async || command(home, "mill reports").await.out.contains("account1/drill");
    eventually(Duration::from_mins(3), "the report is there", has_report).await;
    kill_process(Pid::from_child(&mill.0), Signal::TERM).unwrap();
    assert!(mill.0.wait().unwrap().success());
}
