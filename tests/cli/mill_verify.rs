//! Checks of content from the command line: at once, and by a process that does nothing else.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use queuekeeper_testkit::process::{Program, free_port};
use queuekeeper_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::program::{Ran, queuekeeper, run};
use super::prompts::terminal;
use super::stores::command;

/// Lets the content of a file rot in place: its size and time stay.
pub(super) fn rot(file: &Path) {
    let modified = fs::metadata(file).unwrap().modified().unwrap();
    let mut content = fs::read(file).unwrap();
    content[0] ^= 1;
    fs::write(file, content).unwrap();
    fs::File::options().write(true).open(file).unwrap().set_modified(modified).unwrap();
}

/// What a command writes to a terminal.
fn on_terminal(home: &Path, arguments: &str) -> String {
    let (mut ours, its) = terminal();
    let file = home.join("config.yml");
    let words: Vec<_> = arguments.split(' ').chain(["--config.file", file.to_str().unwrap()]).collect();
    let mut command = queuekeeper(home, &words);
    command.stdout(its.try_clone().unwrap()).stderr(its);
    let mut child = command.spawn().unwrap();
    // The child has the last handles of the other side: reading ends with it, by an error.
    drop(command);
    let mut screen = Vec::new();
    let _ended = ours.read_to_end(&mut screen);
    child.wait().unwrap();
    String::from_utf8(screen).unwrap()
}

/// Lists what is wrong, and has it repaired.
async fn decide(home: &Path) {
    let errors = command(home, "mill errors").await;
    errors.is(
        0,
        &[
            "one: 1 open",
            "main",
            "one/theses/b/c",
            "content damaged",
            "Repairs in main are started by an operator, because the account one does not have repair: automatic there.",
            "repaired from another copy",
            "Possible: repair, drop",
        ],
    );
    let list = command(home, "mill errors one --output json").await.json();
    let error = &list["errors"][0];
    assert_eq!(
        (&error["findings"], &error["is_repairable"], &error["repair_started"], &list["next"]),
        (&json!(["content_damaged"]), &json!(true), &Value::Null, &Value::Null),
        "{list}"
    );
    let number = &error["number"];
    assert_eq!(error["waits_for"], json!("policy"), "{error}");
    let both = (error["expected"].as_str().unwrap(), error["actual"].as_str().unwrap());
    assert!(both.0 != both.1 && both.0.starts_with("4 bytes, ") && both.1.starts_with("4 bytes, "), "{error}");
    assert_eq!(both.0.split(':').next(), both.1.split(':').next(), "one digest is compared with another: {error}");
    // Wherever one looks, the copy is not proven.
    command(home, "mill spaces").await.is(0, &["BIT ERRORS"]);
    let spaces = command(home, "mill spaces -o json").await.json();
    let copies = &spaces["items"][0]["copies"];
    assert_eq!((&copies[0]["bit_errors"], &copies[1]["bit_errors"]), (&json!(1), &json!(0)), "{spaces}");
    let items = command(home, "mill spaces one/theses -o json").await.json();
    let of = |at: usize| items["items"][at]["copies"][0].clone();
    assert_eq!((&of(0)["bit_error"], of(0)["proven"].is_string()), (&Value::Null, true), "{items}");
    assert_eq!((&of(1)["bit_error"], &of(1)["proven"]), (number, &Value::Null), "{items}");
    command(home, "mill spaces one/theses").await.is(0, &["BIT ERROR IN"]);
    command(home, &format!("mill errors --after {number}"))
        .await
        .is(0, &["there are no bit errors with a number above "]);
    let of_item = command(home, "mill spaces one/theses --key b/c").await;
    let of_error = format!("The copy in main has bit error {number}: ");
    let waits = "Repairs in main are started by an operator";
    of_item.is(0, &[&of_error, waits, "CHECKED", "failure", "content damaged"]);
    let of_item = command(home, "mill spaces one/theses --key b/c -o json").await.json();
    let check = &of_item["checks"][0];
    assert_eq!((&check["store"], &check["findings"]), (&json!("main"), &json!(["content_damaged"])), "{of_item}");
    command(home, "mill errors other").await.is(4, &["no account", "other"]);
    let repair = async |what: &str| command(home, &format!("mill repair {what} --reason rotten")).await;
    command(home, &format!("mill repair {number}")).await.is(2, &["--reason"]);
    repair("4711").await.is(4, &["there is no open bit error 4711"]);
    repair("one/main/theses/a").await.is(4, &["there is no known problem with one/main/theses/a"]);
    for what in ["one/main/theses", "abc"] {
        repair(what).await.is(2, &["expected the number of a bit error, or an item: ACCOUNT/STORE/SPACE/KEY"]);
    }
    repair("one/1/theses/b/c").await.is(0, &["the repair of one/main/theses/b/c waits for a worker"]);
    repair(&number.to_string()).await.is(3, &["a repair of this copy has not ended; nothing was done"]);
    let resolve = async |what: &str| command(home, &format!("mill resolve {what} --reason rotten")).await;
    resolve("mend one/main/theses/b/c").await.is(2, &["repair, rewrite, correct, adopt, accept, drop"]);
    resolve(&format!("accept {number}")).await.is(3, &["accept does not resolve this: content damaged"]);
    resolve(&format!("drop {number}")).await.is(3, &["a repair of this copy has not ended; nothing was done"]);
    command(home, "mill errors")
        .await
        .is(0, &["Its repair from another copy, which ", "requested, waits in bit-error for a worker."]);
    let trail = fs::read_to_string(home.join(".local/state/queuekeeper/audit.jsonl")).unwrap();
    let records: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        records.iter().map(|of| (&of["record"], &of["outcome"])).collect::<Vec<_>>(),
        [
            (&json!("requested"), &Value::Null),
            (&json!("outcome"), &json!("done")),
            (&json!("requested"), &Value::Null),
            (&json!("outcome"), &json!("conflict")),
            (&json!("requested"), &Value::Null),
            (&json!("outcome"), &json!("conflict")),
            (&json!("requested"), &Value::Null),
            (&json!("outcome"), &json!("conflict"))
        ],
        "{trail}"
    );
    assert_eq!(
        (&records[0]["action"], &records[0]["targets"], &records[0]["reason"]),
        (&json!("repair_copy"), &json!(["copy:one/main/theses/b/c"]), &json!("rotten"))
    );
}

/// Stops automatic repairs, and resumes them.
async fn stop_repairs(home: &Path) {
    let act = async |what: &str| command(home, &format!("mill {what} --reason disks")).await;
    act("stop-repairs cold").await.is(4, &["no account has a store \"cold\""]);
    act("stop-repairs").await.is(0, &["automatic repairs in all stores are stopped"]);
    act("stop-repairs").await.is(3, &["repairs in all stores are already stopped; nothing was done"]);
    act("stop-repairs main").await.is(0, &["automatic repairs in main are stopped"]);
    let stops = command(home, "mill errors --output json").await.json()["stops"].clone();
    command(home, "mill errors").await.is(0, &["automatic repairs in main are stopped, for "]);
    assert_eq!(
        (&stops[0]["store"], &stops[1]["store"], &stops[1]["reason"]),
        (&json!(""), &json!("main"), &json!("disks"))
    );
    act("resume-repairs").await.is(0, &["automatic repairs in all stores are resumed"]);
    act("resume-repairs main").await.is(0, &["automatic repairs in main are resumed"]);
    act("resume-repairs main").await.is(3, &["repairs in main are not stopped; nothing was done"]);
}

/// Takes what another program wrote into the record.
async fn adopt(home: &Path) {
    fs::create_dir(home.join("replica/found")).unwrap();
    for name in ["x", "y"] {
        fs::write(home.join("replica/found").join(name), "found").unwrap();
    }
    command(home, "mill adopt one/2/found").await.is(2, &["--reason"]);
    command(home, "mill adopt one/2 --reason ours").await.is(2, &["name a space: ACCOUNT/STORE/SPACE"]);
    command(home, "mill adopt one/2/none --reason ours").await.is(4, &["there is no such space, or it is empty"]);
    let view = command(home, "mill adopt one/2/found --dry-run").await;
    view.is(0, &["2 items would be adopted with 10 bytes, 0 recorded before, 0 left"]);
    let adopted = command(home, "mill adopt one/2/found --reason ours").await;
    adopted.is(0, &["2 items adopted with 10 bytes, 0 recorded before, 0 left"]);
    fs::write(home.join("replica/found/y"), "changed outside").unwrap();
    let again = command(home, "mill adopt one/2/found --reason ours").await;
    again.is(
        7,
        &[
            "one/replica/found/y: it differs from its record in the listing",
            "0 items adopted",
            "1 recorded before, 1 left",
        ],
    );
    let trail = fs::read_to_string(home.join(".local/state/queuekeeper/audit.jsonl")).unwrap();
    let records: Vec<Value> = trail.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_adoption: Vec<_> = records.iter().filter(|of| of["action"] == json!("adopt_content")).collect();
    assert_eq!(of_adoption[1]["targets"], json!(["space:one/replica/found"]), "{trail}");
    assert!(trail.contains("2 items adopted with 10 bytes"), "{trail}");
    command(home, "mill verify one/replica/found/x").await.is(0, &["1 item proven"]);

    // What is there later is adopted one by one, by a worker.
    fs::write(home.join("replica/found/z"), "later").unwrap();
    command(home, "mill verify one/replica/found/z").await.is(7, &["one/replica/found/z: stored, not recorded"]);
    let later = command(home, "mill resolve adopt one/2/found/z --reason ours").await;
    later.is(0, &["adopt of one/replica/found/z waits for a worker"]);

    // All commands take a key as it is.
    let content = home.join("content").display().to_string();
    command(home, &format!("store put {content} replica/found/p%2Fq")).await.is(0, &[]);
    command(home, "mill verify one/replica/found/p%2Fq").await.is(0, &["1 item proven"]);
    command(home, "mill spaces one/found --key p%2Fq").await.is(0, &["one/found: p%2Fq\n"]);
    command(home, &format!("store put {content} replica/found/p+r")).await.is(0, &[]);
    // Decoded, that would be behind p+r.
    let after = command(home, "mill spaces one/found --after p%2Fq").await;
    after.is(0, &["p+r", "x"]);
    assert!(!after.out.contains("p%2Fq"), "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_checked_at_once_and_by_a_process_for_that_alone() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "replica", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let [objects, replica] = ["objects", "replica"].map(|name| home.join(name).display().to_string());
    let text = format!(
        "stores:\n  main: {{url: \"file://{objects}\"}}\n  replica: {{url: \"file://{replica}\"}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill: {{accounts: {{one: {{stores: {{\"1\": main, \"2\": replica}}}}}}, policies: {{directory: policies}}}}\n"
    );
    fs::write(home.join("config.yml"), text).unwrap();
    fs::write(home.join("policies/duplication-accounts.json"), r#"["one"]"#).unwrap();
    fs::write(home.join("policies/one-duplication-policy.json"), "{}").unwrap();
    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    command(home, &format!("store put {content} main/theses/a --create-space")).await.is(0, &[]);
    command(home, &format!("store put {content} main/theses/b/c")).await.is(0, &[]);

    command(home, "mill verify one/main").await.is(0, &["2 items proven by reading 8 bytes, 0 wrong, 0 not checked"]);
    // No loop is known yet by which a proof could be too old.
    command(home, "mill spaces").await.is(0, &["not checked", "oldest proof today"]);
    command(home, "mill verify one/1/theses/b/c").await.is(0, &["1 item proven"]);
    command(home, "mill verify one/1/theses/none").await.is(4, &["no such item"]);
    command(home, "mill verify one/main/nospace").await.is(4, &["there is no such space, or it is empty"]);
    command(home, "mill verify one/cold").await.is(4, &["one has no store “cold”"]);
    command(home, "mill verify other/main").await.is(4, &["no account “other”"]);
    command(home, "mill verify one/main/x-queuekeeper-aside").await.is(4, &["“x-queuekeeper-aside” is reserved"]);
    command(home, "mill verify one/main//a").await.is(2, &["name the space that the item is in"]);
    // Another store that is away does not matter.
    fs::rename(home.join("replica"), home.join("away")).unwrap();
    command(home, "mill verify one/main/theses/a").await.is(0, &["1 item proven"]);
    command(home, "mill compare one/main").await.is(0, &["2 items with 8 bytes as recorded"]);
    let away = command(home, "mill verify one/replica --background --dry-run").await;
    let why = "there is no such directory; create it, or mount its volume";
    assert!(away.code == 1 && away.err.matches(why).count() == 1, "{away:?}");
    fs::rename(home.join("away"), home.join("replica")).unwrap();
    command(home, "mill verify one").await.is(2, &["ACCOUNT/STORE"]);
    rot(&home.join("objects/theses/b/c"));
    command(home, "mill verify one/main").await.is(
        7,
        &["one/main/theses/b/c: content damaged\n", "1 item proven by reading 4 bytes, 1 wrong", "1 wrong, 0 not"],
    );
    // The line of progress makes room for each line that stays.
    let screen = on_terminal(home, "mill verify one/main");
    assert!(screen.contains("\r\x1b[Kone/main/theses/b/c: content damaged\r\n"), "{screen:?}");
    command(home, "catalogue check").await.is(0, &["no problems found"]);

    // What is wrong waits for an operator, which is said where people look.
    command(home, "mill queues").await.is(1, &["A copy differs from its records: it has a bit error"]);
    decide(home).await;
    let list = home.join("list");
    fs::write(&list, "one/main/theses\n").unwrap();
    let produce = format!("mill produce bit --once --bit.include {}", list.display());
    command(home, &produce).await.is(2, &["--bit.include", "line 1: expected /account/store/space"]);
    fs::write(&list, "# nothing\n").unwrap();
    command(home, &produce).await.is(2, &["it names no space"]);
    fs::write(&list, "/one/1/*\n").unwrap();
    command(home, &produce).await.is(0, &["bit: the requested checks have not ended"]);
    let spaces = command(home, "mill spaces -o json").await.json();
    let proofs = &spaces["items"][0]["copies"][0]["proofs"];
    let days = 24 * 60 * 60;
    assert_eq!((&proofs["age"], &proofs["max_age_seconds"]), (&json!("fresh"), &json!(60 * days)), "{spaces}");
    let queues = command(home, "mill queues").await;
    queues.is(
        1,
        &["duplication: no loop has begun yet", "bit: loop 1 has requested all checks, those of a space have not"],
    );

    let file = home.join("config.yml").display().to_string();
    let wrong: Ran = run(home, &["mill", "run", "--queues", "bits", "--config.file", &file]).await;
    wrong.is(2, &["expected one or more of duplication-high,"]);
    let web = format!("127.0.0.1:{}", free_port());
    let words = "mill run --workers 2 --queues bit-integrity --produce bit --config.file";
    let words: Vec<_> = words.split(' ').chain([&*file, "--web.listen-address", &web]).collect();
    let mut child = Program(queuekeeper(home, &words).spawn().unwrap());
    let mut log = child.0.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).map(|_bytes| text)
    });
    let metrics = async || {
        let answer = reqwest::get(format!("http://{web}/metrics")).await.ok()?;
        answer.text().await.ok()
    };
    let has = async |line: &str| metrics().await.is_some_and(|text| text.contains(line));
    let page = "mill_task_duration_seconds_count{kind=\"BIT_PAGE\"} 1";
    eventually(Duration::from_mins(1), "the page is checked", async || has(page).await).await;
    let item = "mill_task_duration_seconds_count{kind=\"BIT\"} 1";
    eventually(Duration::from_mins(1), "the damaged one is checked again", async || has(item).await).await;
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert!(child.0.wait().unwrap().success());
    let log = log.join().unwrap().unwrap();
    assert!(!log.contains("ERROR"), "{log}");
    command(home, &produce).await.is(0, &["bit: the loop is done, and the next one is not due"]);
    rot(&home.join("objects/theses/b/c"));
    command(home, "mill verify one/main/theses").await.is(0, &["2 items proven"]);
    adopt(home).await;
    stop_repairs(home).await;
}
