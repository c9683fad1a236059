//! Evidence for auditors from the command line: the chain of reports, and the audit log of a space.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use queuekeeper_testkit::process::{Program, free_port};
use queuekeeper_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};

use super::program::queuekeeper;
use super::stores::command;

/// Has the spaces checked and reported on.
async fn run_loop(home: &Path) {
    let file = home.join("config.yml").display().to_string();
    let web = format!("127.0.0.1:{}", free_port());
    let words = "mill run --workers 2 --queues bit-integrity,bit-report --produce bit --config.file";
    let words: Vec<_> = words.split(' ').chain([&*file, "--web.listen-address", &web]).collect();
    let mut child = Program(queuekeeper(home, &words).stderr(std::process::Stdio::null()).spawn().unwrap());
    let is_reported = async || {
        let answer = reqwest::get(format!("http://{web}/metrics")).await.ok()?;
        let text = answer.text().await.ok()?;
        text.contains("mill_task_duration_seconds_count{kind=\"BIT_REPORT\"} 1").then_some(())
    };
    let what = "the space is reported on";
    eventually(Duration::from_mins(1), what, async || is_reported().await.is_some()).await;
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert!(child.0.wait().unwrap().success());
}

/// The file of a report with this ending.
fn file(home: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(home.join("replica/x-reports/bit-integrity/main/theses")).unwrap();
    let mut files = files.map(|entry| entry.unwrap().path());
    files.find(|path| path.file_name().unwrap().to_str().unwrap().ends_with(ending)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn auditors_get_the_chain_of_reports_verified_and_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "replica", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let [objects, replica] = ["objects", "replica"].map(|name| home.join(name).display().to_string());
    let account = "{stores: {\"1\": main, \"2\": replica}, primary: \"2\", admin_space: x-reports}";
    let text = format!(
        "stores:\n  main: {{url: \"file://{objects}\"}}\n  replica: {{url: \"file://{replica}\"}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill: {{accounts: {{one: {account}}}, policies: {{directory: policies}}}}\n"
    );
    fs::write(home.join("config.yml"), text).unwrap();
    fs::write(home.join("policies/duplication-accounts.json"), r#"["one"]"#).unwrap();
    fs::write(home.join("policies/one-duplication-policy.json"), "{}").unwrap();
    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    let put = format!("store put {content} main/theses/a\tb --create-space");
    command(home, &put).await.is(0, &[]);
    command(home, "store rm main/theses/a\tb --yes").await.is(0, &[]);
    command(home, &put).await.is(0, &[]);
    let put = format!("store put {content} replica/one.x-reports/a --create-space");
    command(home, &put).await.is(3, &["the space one.x-reports is reserved for queuekeeper itself"]);

    command(home, "mill verify-reports one").await.is(0, &["0 reports, 0 wrong\n"]);
    command(home, "mill verify-reports two").await.is(4, &["no account “two” in the configuration"]);
    run_loop(home).await;
    let whole = command(home, "mill verify-reports one").await;
    whole.is(0, &["1 report, 0 wrong; the last seal has SHA-256 "]);
    let last = whole.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    command(home, &format!("mill verify-reports one --store-only --seal {last}")).await.is(0, &["1 report, 0 wrong"]);
    let noted = format!("mill verify-reports one --seal {}", "0".repeat(64));
    command(home, &noted).await.is(7, &["no seal of the chain has this hash", "1 wrong"]);
    for seal in ["zz", &"0".repeat(63), &"g".repeat(64)] {
        command(home, &format!("mill verify-reports one --seal {seal}"))
            .await
            .is(2, &["expected 64 hexadecimal digits"]);
    }
    let upper = last.to_ascii_uppercase();
    command(home, &format!("mill verify-reports one --seal {upper}")).await.is(0, &["1 report, 0 wrong"]);
    // An auditor has neither the catalogue nor the other store.
    let config = fs::read_to_string(home.join("config.yml")).unwrap();
    fs::write(home.join("config.yml"), config.replace("catalogue: {url: \"sqlite:catalogue.db\"}\n", "")).unwrap();
    fs::rename(home.join("objects"), home.join("away")).unwrap();
    command(home, "mill verify-reports one --store-only").await.is(0, &["1 report, 0 wrong"]);
    command(home, "mill verify-reports one").await.is(2, &["the file names none"]);
    fs::rename(home.join("away"), home.join("objects")).unwrap();
    fs::write(home.join("config.yml"), config).unwrap();
    let table = file(home, "-1.tsv");
    fs::write(&table, fs::read_to_string(&table).unwrap().replace("success", "failure")).unwrap();
    for option in ["", " --store-only"] {
        let found = command(home, &format!("mill verify-reports one{option}")).await;
        found.is(
            7,
            &["replica/x-reports/bit-integrity/main/theses/", "-1: the file .tsv was changed\n", "1 report, 1 wrong"],
        );
    }
    fs::remove_file(file(home, "-1.seal.json")).unwrap();
    command(home, "mill verify-reports one").await.is(7, &["-1: its seal is missing; it was report 1\n"]);

    // The audit log of the space.
    let log = command(home, "mill audit one/1/theses --format tsv").await;
    log.is(0, &[]);
    let lines: Vec<Vec<_>> = log.out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][..5], ["ACCOUNT", "STORE_ID", "SPACE_ID", "CONTENT_ID", "CONTENT_MD5"]);
    let actions: Vec<_> = lines[1..].iter().map(|line| (line[3], line[12])).collect();
    let key = "a%09b";
    let expected = [("", "CREATE_SPACE"), (key, "ADD_CONTENT"), (key, "DELETE_CONTENT"), (key, "ADD_CONTENT")];
    assert_eq!(actions, expected, "{}", log.out);
    assert_eq!(lines[2][..3], ["one", "1", "theses"]);
    assert_eq!((lines[2][5], lines[2][13].is_empty()), ("4", false), "{}", log.out);
    for what in ["one", "one/1", "one/1/theses/a"] {
        command(home, &format!("mill audit {what}")).await.is(2, &["name a space: ACCOUNT/STORE/SPACE"]);
    }
    let unknown = command(home, "mill audit one/1/nope").await;
    unknown.is(4, &["the audit log has no events of a space nope in main"]);
    assert_eq!(unknown.out, "");
    command(home, "mill audit one/1/theses --format xml").await.is(2, &["tsv"]);
}
