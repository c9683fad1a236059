//! The mill as a process: what one store has, appears in the other one.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use queuekeeper_testkit::process::{Program, free_port};
use queuekeeper_testkit::readers::promtool_is_content;
use queuekeeper_testkit::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};

use super::program::{self, queuekeeper};
use super::stores::command;

const POLICY: &str = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"},]}"#;

#[expect(clippy::too_many_lines, reason = "one story, from its beginning to its end")]
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_followed_at_once_and_what_it_ends_or_would_destroy_waits_for_an_operator() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "copies", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let config = |mill: &str| {
        let [objects, copies] = ["objects", "copies"].map(|name| home.join(name).display().to_string());
        let text = format!(
            "stores:\n  main: {{url: \"file://{objects}\"}}\n  replica: {{url: \"file://{copies}\"}}\n\
             catalogue: {{url: \"sqlite:catalogue.db\"}}\n{mill}"
        );
        fs::write(home.join("config.yml"), text).unwrap();
    };
    config("");
    command(home, "mill queues").await.is(2, &["has no key mill"]);
    let accounts = |second: &str| {
        format!(
            "mill:\n  accounts:\n    one:\n      stores: {{\"1\": main, \"2\": replica}}\n\
             \x20     limits: {{replica: {{requests: 500, leave_out: [\"*.tmp\"]}}}}\n{second}  policies: {{directory: policies}}\n"
        )
    };
    config(&accounts("    two: {stores: {\"1\": main}, prefix: two}\n"));
    command(home, "mill queues").await.is(2, &["mill: accounts: two: it shares a store with one"]);
    config(&accounts("    two: {stores: {\"1\": cold}}\n"));
    command(home, "mill queues").await.is(2, &["two: there is no cold below stores"]);
    let prices = |prices: &str| config(&format!("{}  prices: {prices}\n", accounts("")));
    prices("{currency: USD, stores: {cold: {per_gib: 0.09}}}");
    command(home, "mill queues").await.is(2, &["mill: prices: cold: there is no cold below stores"]);
    prices("{currency: USD, stores: {main: {per_gib: -1}}}");
    command(home, "mill queues").await.is(2, &["mill: prices: main: a price is 0 or more"]);
    prices("{currency: \"\", stores: {}}");
    command(home, "mill queues").await.is(2, &["prices: currency: expected 1 to 8 characters, such as USD"]);
    config(&accounts(""));
    let shown = "one in replica: at most 500 requests a second; leaves out *.tmp";
    let file = home.join("config.yml").display().to_string();
    program::run(home, &["check-config", &file]).await.is(0, &[shown]);
    command(home, "mill queues")
        .await
        .is(1, &["one has no policy, so none of its content is copied: duplication-accounts.json"]);
    fs::write(home.join("policies/duplication-accounts.json"), r#"["one"]"#).unwrap();
    let policy = home.join("policies/one-duplication-policy.json");
    fs::write(&policy, POLICY.replace("\"2\"", "\"7\"")).unwrap();
    command(home, "mill policy check")
        .await
        .is(1, &["one-duplication-policy.json: default policy: ", "no store \"7\""]);
    fs::write(&policy, POLICY).unwrap();
    command(home, "mill policy check")
        .await
        .is(0, &["one: its policy file is valid, and no copy would stop being maintained"]);
    command(home, "mill queues")
        .await
        .is(0, &["audit", "bit: no loop has begun yet", "no worker process has reported", shown]);

    fs::write(&policy, POLICY.replacen('{', "{\"spacesToIgnor\": [\"tmp\"], ", 1)).unwrap();
    command(home, "mill policy check")
        .await
        .is(1, &["one-duplication-policy.json: the key \"spacesToIgnor\" is unknown; use spacesToIgnore"]);
    command(home, "mill policy plan one").await.is(1, &["the key \"spacesToIgnor\" is unknown"]);
    let list = home.join("policies/duplication-accounts.json");
    fs::write(&list, r#"["own"]"#).unwrap();
    let stray = "duplication-accounts.json names \"own\", which is not in the configuration, but not \"one\"";
    command(home, "mill policy check").await.is(1, &["one: not in the list of accounts", stray]);
    command(home, "mill queues").await.is(1, &[stray]);
    command(home, "mill policy plan one").await.is(1, &["the key \"spacesToIgnor\" is unknown"]);
    fs::write(&list, r#"["one"]"#).unwrap();
    command(home, "mill produce duplication --once --frequency 0s")
        .await
        .is(2, &["expected a duration of at least 1s"]);
    fs::write(&policy, POLICY.replacen('{', "{\"owner\": \"ours\", ", 1)).unwrap();
    command(home, "mill policy check")
        .await
        .is(0, &["one: its policy file is valid", "the unknown key \"owner\", which has no effect"]);
    command(home, "mill policy plan one").await.is(0, &["nothing would change"]);
    command(home, "mill spaces one/other").await.is(4, &["one has no space “other”"]);
    command(home, "mill dead-letters --account other").await.is(4, &["no account “other”"]);
    command(home, "mill held --account other").await.is(4, &["no account “other”"]);
    command(home, "mill held --destination other").await.is(4, &["No account has a store “other”"]);

    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    command(home, &format!("store put {content} main/theses/before --create-space")).await.is(0, &[]);
    let web = format!("127.0.0.1:{}", free_port());
    let run = "mill run --produce duplication,stats --workers 3 --brake.items 0 --brake.percent 0 --config.file";
    let run: Vec<_> = run.split(' ').chain([&*file, "--web.listen-address", &web]).collect();
    let mut child = Program(queuekeeper(home, &run).spawn().unwrap());
    // Nobody reads the log, which would fill the pipe.
    let log = child.0.stderr.take().unwrap();
    let log = std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let copy = async |key: &str| fs::read_to_string(home.join("copies/theses").join(key)).ok();
    // What was there is found by the loop, and what comes is followed.
    let minute = Duration::from_mins(1);
    eventually(minute, "it is copied", async || copy("before").await.as_deref() == Some("one\n")).await;
    command(home, &format!("store put {content} main/theses/a/b")).await.is(0, &[]);
    eventually(minute, "it is copied", async || copy("a/b").await.as_deref() == Some("one\n")).await;

    fs::write(&content, "two\n").unwrap();
    command(home, &format!("store put {content} main/theses/before --replace")).await.is(0, &[]);
    let held = async || command(home, "mill held -o json").await.json()["tasks"].as_array().unwrap().clone();
    eventually(minute, "the brake holds it", async || !held().await.is_empty()).await;
    assert_eq!(copy("before").await.as_deref(), Some("one\n"));
    command(home, "mill queues")
        .await
        .is(1, &["The brake holds a task", "loop 1 is done", " of 3 workers busy", "AUDIT, DUP"]);
    command(home, "mill held").await.is(0, &["one in replica: 1 held", "one/theses/before", "the limit being 0"]);
    command(home, "mill spaces").await.is(0, &["one/theses  main     source", "complete"]);
    command(home, &format!("store put {content} main/theses/x.tmp")).await.is(0, &[]);
    let left_out = "mill spaces one/theses --key x.tmp";
    let is_done = async || command(home, &format!("{left_out} -o json")).await.json()["is_done"] == true;
    eventually(minute, "its change is looked at", is_done).await;
    let why =
        ["as the policies require", "The copy in replica is left out: replica does not accept keys such as *.tmp"];
    command(home, left_out).await.is(0, &why);
    assert_eq!(copy("x.tmp").await, None);
    command(home, "mill spaces one/theses --prefix x").await.is(0, &["fewer, as keys are left out", "LEFT OUT IN"]);
    let get = async |path: &str| {
        let answer = reqwest::get(format!("http://{web}{path}")).await.ok()?;
        (answer.status() == 200).then_some(answer.text().await.ok()?)
    };
    assert_eq!(get("/-/ready").await.as_deref(), Some("ready\n"));
    let metrics = get("/metrics").await.unwrap();
    for line in [
        "mill_bytes_total{direction=\"written\"} 8",
        "mill_task_duration_seconds_count{kind=\"AUDIT\"} ",
        "mill_task_duration_seconds_count{kind=\"NOOP\"} 0",
        "queuekeeper_store_requests_total{store=\"replica\",operation=\"put\",outcome=\"ok\"} ",
        "mill_workers{state=\"idle\"} ",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // Alerts lead from these to the pages of a server, which there are none of here.
    assert!(!metrics.contains("mill_tasks"), "{metrics}");
    promtool_is_content(&metrics);
    command(home, "mill spaces one/theses --prefix a").await.is(0, &["a/b  main, replica"]);
    let why = command(home, "mill spaces one/theses --key before").await;
    why.is(0, &["The copy in replica is held by the brake until task", "is released or dropped: "]);
    // A pause stops what would be begun, and what waits goes on by itself after it.
    let pause = "--account one --store replica --reason moves";
    command(home, "mill pause --reason moves").await.is(2, &["--account"]);
    command(home, "mill pause --account other --reason moves").await.is(4, &["there is no account \"other\""]);
    command(home, "mill pause --store other --reason moves").await.is(4, &["no account has a store other"]);
    command(home, &format!("mill pause {pause}")).await.is(0, &["one in replica is paused"]);
    command(home, &format!("mill pause {pause}")).await.is(3, &["one in replica is already paused; nothing was done"]);
    command(home, &format!("store put {content} main/theses/paused")).await.is(0, &[]);
    let task = "mill spaces one/theses --key paused -o json";
    let state = async || command(home, task).await.json()["tasks"][0]["state"].as_str().map(str::to_owned);
    eventually(minute, "it is set aside", async || state().await.as_deref() == Some("paused")).await;
    let why = command(home, "mill spaces one/theses --key paused").await;
    why.is(0, &["The copy in replica waits because ", " paused one in replica at ", ": moves."]);
    command(home, "mill queues").await.is(1, &["PAUSED", "one in replica is paused, for ", "1 task waits"]);
    assert_eq!(copy("paused").await, None);
    command(home, "mill spaces one/theses --key a/b").await.is(0, &["as the policies require"]);
    command(home, "mill resume --store replica --reason moved").await.is(3, &["store replica is not paused"]);
    command(home, "mill resume --account one --store replica --reason moved")
        .await
        .is(0, &["one in replica is resumed"]);
    eventually(minute, "it is copied", async || copy("paused").await.as_deref() == Some("two\n")).await;
    command(home, "mill spaces one/theses --key other").await.is(4, &["No store of one is known to have other"]);
    command(home, "mill dead-letters").await.is(0, &["there are no dead letters"]);
    let number = held().await[0]["number"].to_string();
    command(home, &format!("mill retry {number} --reason right"))
        .await
        .is(0, &[&format!("task {number} waits for a worker")]);
    command(home, &format!("mill drop {number} 9999 --reason wrong"))
        .await
        .is(4, &["neither a dead letter nor held: "]);
    eventually(Duration::from_mins(2), "it is copied", async || copy("before").await.as_deref() == Some("two\n")).await;

    fs::write(&policy, "{}").unwrap();
    command(home, "mill queues")
        .await
        .is(1, &["The policy file of one would stop maintaining copies; this waits for an admin"]);
    let plan = command(home, "mill policy plan one").await;
    plan.is(
        0,
        &["to be copied: about 0 items", "no longer maintained, but not deleted: 3 items", "theses  main  replica"],
    );
    command(home, "mill policies")
        .await
        .is(0, &["all other spaces: main to replica", "waiting to end: main to replica"]);
    command(home, "mill policy check")
        .await
        .is(0, &["copies that an admin has to allow to stop: 1 to 2; that would begin instead: none"]);
    command(home, "mill policy apply one --reason closed").await.is(0, &["one: the policy file is in force"]);
    command(home, "mill policy apply other --reason closed").await.is(4, &["there is no account \"other\""]);
    let trail = fs::read_to_string(home.join(".local/state/queuekeeper/audit.jsonl")).unwrap();
    let actions: Vec<_> = trail
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|record| record["record"] == "requested")
        .map(|record| format!("{} {} {}", record["action"], record["targets"], record["reason"]))
        .collect();
    let [paused, again, wrong, resumed, released, applied] = &actions[..] else { panic!("{actions:?}") };
    let of_pause = r#""pause_mill" ["mill:account:one/store:replica"] "moves""#;
    assert_eq!((paused.as_str(), again.as_str()), (of_pause, of_pause));
    assert_eq!(wrong, r#""resume_mill" ["mill:store:replica"] "moved""#);
    assert_eq!(resumed, r#""resume_mill" ["mill:account:one/store:replica"] "moved""#);
    assert_eq!(released, &format!(r#""release_task" ["task:{number}"] "right""#));
    assert_eq!(applied, r#""apply_policy" ["policy:one"] "closed""#);
    command(home, "mill queues").await.is(0, &[]);
    command(home, "mill policies one").await.is(0, &["all other spaces: no copy", ": closed"]);
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert!(child.0.wait().unwrap().success());
    let log = log.join().unwrap();
    assert!(log.iter().all(|line| !line.contains("ERROR")), "{log:#?}");
    command(home, "catalogue check").await.is(0, &["no problems found"]);
    command(home, &format!("store put {content} main/theses/later")).await.is(0, &[]);
    command(home, "mill queues")
        .await
        .is(1, &["No process of the mill is running, and a change of content waits for one"]);
    let number = async || {
        let queues = command(home, "mill queues --output json").await;
        serde_json::from_str::<serde_json::Value>(&queues.out).unwrap()["producers"][0]["number"].as_u64().unwrap()
    };
    let (before, produce) = (number().await, "mill produce duplication --once");
    command(home, produce).await.is(0, &["the next one is not due"]);
    assert_eq!(number().await, before);
    command(home, &format!("{produce} --now")).await.is(0, &["the next one is not due"]);
    assert_eq!(number().await, before + 1);
    command(home, "mill produce stats --now").await.is(2, &["--now is for duplication and bit"]);
    command(home, "mill produce bit").await.is(2, &["--once"]);
    let now = command(home, "mill produce bit --now").await;
    now.is(0, &["bit: no process leads; the next loop starts within 1 min of", "/x-duracloud-admin/bit-integrity"]);
    command(home, "mill produce stats --once --now").await.is(2, &["--now is for duplication and bit"]);
}
