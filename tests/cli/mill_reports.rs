//! Reports on the integrity of spaces, from the command line and on pages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use queuekeeper_testkit::process::Program;
use queuekeeper_testkit::smtp::{Smtp, SmtpOptions, header, part};
use queuekeeper_testkit::wait::eventually_some;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::mill_pages::Pages;
use super::mill_verify::rot;
use super::program::{queuekeeper, run};
use super::stores::command;

/// Changes a report in the catalogue, as if a page of the space had never been reached and nothing were wrong.
async fn plant_incomplete(home: &Path, number: u64) {
    let amount = |items| json!({"items": items, "bytes": 10 * items});
    let coverage = json!({
        "stored": amount(5), "read": amount(2), "provider": amount(0), "unproven": amount(0), "failed": amount(0),
        "foreign": amount(0), "skipped": {"its turn is in another loop": amount(1)}, "gone": amount(0),
        "never_reached": amount(2), "dead": amount(0), "missing": amount(0),
    });
    let options = SqliteConnectOptions::new().filename(home.join("catalogue.db")).busy_timeout(Duration::from_mins(1));
    let mut database = options.connect().await.unwrap();
    let sql = "UPDATE bit_runs SET result = 'incomplete', coverage = ?, is_complete = FALSE WHERE id = ?";
    let changed = sqlx::query(sql).bind(coverage.to_string()).bind(i64::try_from(number).unwrap());
    assert_eq!(changed.execute(&mut database).await.unwrap().rows_affected(), 1);
    database.close().await.unwrap();
}

/// The loop of checks that began with the mill has written reports, of which one is then incomplete.
pub(super) async fn reports_are_shown(home: &Path, pages: &Pages) {
    let found = eventually_some(Duration::from_mins(2), "the report is stored", async || {
        pages.json("/api/v1/mill/reports?account=one&store=main").await["items"].as_array()?.first().cloned()
    });
    let number = found.await["number"].as_u64().unwrap();
    pages.get("/mill/reports", &["one/theses", "success", "/api/v1/mill/reports"]).await;
    pages.get("/mill/spaces/one/theses", &["mill/reports?account=one&#38;space=theses"]).await;
    plant_incomplete(home, number).await;
    pages.get("/mill", &["The newest report on 1 space is incomplete"]).await;
    pages.get("/mill/reports?unsuccessful=true&space=theses", &["2 items never reached"]).await;
    pages.get("/mill/reports?unsuccessful=true&store=replica", &["No report matches"]).await;
    let (_, empty) = pages.ask("vera", "/mill/reports?account=other", None).await;
    assert!(empty.contains("no account"), "{empty}");
    let one = format!("/mill/reports/{number}");
    pages
        .get(
            &one,
            &[
                "Report on one/theses in main",
                "not complete",
                "skipped: its turn is in another loop",
                "All items (CSV)",
            ],
        )
        .await;
    assert_eq!(pages.json(&format!("/api/v1{one}")).await["coverage"][0]["part"], "never_reached");
    let (code, csv) = pages.ask("vera", &format!("/api/v1{one}/file?format=csv"), None).await;
    assert!(code == 200 && csv.starts_with("date,account,store,") && csv.contains(",success,read,"), "{code}: {csv}");
    let (code, tsv) = pages.ask("vera", &format!("/api/v1{one}/file"), None).await;
    assert!(code == 200 && tsv.starts_with("date\taccount\t"), "{code}: {tsv}");
    let (code, events) = pages.ask("vera", &format!("/api/v1{one}/file?format=premis"), None).await;
    assert!(code == 200 && events.contains("<premis:event>"), "{code}: {events}");
    assert_eq!(pages.json(&format!("/api/v1{one}/file?format=seal")).await["account"], "one");
    let (code, text) = pages.ask("vera", "/api/v1/mill/reports?store=nope", None).await;
    assert!(code == 404 && text.contains("no store"), "{code}: {text}");
    for wrong in ["4711", "4711/file", "x"] {
        let (code, text) = pages.ask("vera", &format!("/api/v1/mill/reports/{wrong}"), None).await;
        assert!(code == 404 && text.contains("There is no report"), "{code}: {text}");
    }
    assert_eq!(pages.ask("vera", &format!("/api/v1{one}/file?format=xml"), None).await.0, 400);
    let (_, metrics) = pages.ask("vera", "/metrics", None).await;
    assert!(metrics.contains("mill_bit_report_incomplete{account=\"one\",store=\"replica\"} 0"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_listed_and_shown_and_their_files_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "policies"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let config = format!(
        "stores:\n  main: {{url: \"file://{}\"}}\ncatalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill:\n  accounts:\n    one: {{stores: {{\"1\": main}}, mail: [keeper@example.edu]}}\n  policies: {{directory: policies}}\n",
        home.join("objects").display()
    );
    fs::write(home.join("config.yml"), config).unwrap();
    let mailed = "mail on reports: one to keeper@example.edu, sent by mill run with --mail.server or --mail.directory";
    run(home, &["check-config", home.join("config.yml").to_str().unwrap()]).await.is(0, &[mailed]);
    let content = home.join("content").display().to_string();
    fs::write(&content, "one\n").unwrap();
    for key in ["a", "=1+1"] {
        command(home, &format!("store put {content} main/theses/{key} --create-space")).await.is(0, &[]);
    }
    command(home, "mill reports").await.is(0, &["there are no such reports"]);
    command(home, "mill reports 1").await.is(4, &["no report"]);
    rot(&home.join("objects/theses/a"));

    let file = home.join("config.yml").display().to_string();
    let words = "mill run --workers 2 --queues bit-integrity,bit-report --produce bit --web.listen-address 127.0.0.1:0";
    let smtp = Smtp::start(SmtpOptions::default());
    let server = format!("127.0.0.1:{}", smtp.port());
    let mail =
        "--mail.from mill@example.edu --mail.tls none --web.external-url https://ops.example.org/q/ --mail.server";
    let words: Vec<_> =
        words.split(' ').chain(["--config.file", &file]).chain(mail.split(' ')).chain([&*server]).collect();
    let mut run = queuekeeper(home, &words);
    let mill = Program(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let found = eventually_some(Duration::from_mins(1), "the report is stored", async || {
        command(home, "mill reports --output json").await.json()["items"].as_array()?.first().cloned()
    });
    let found: Value = found.await;
    let number = found["number"].as_u64().unwrap();
    let received = eventually_some(Duration::from_mins(1), "the mail is sent", async || smtp.received().pop()).await;
    drop(mill);
    assert_eq!(
        (&received["to"], header(&received, "from")),
        (&json!(["keeper@example.edu"]), vec!["queuekeeper <mill@example.edu>"])
    );
    let text = part(&received, "text/plain");
    assert!(text.contains(&format!("https://ops.example.org/q/mill/reports/{number}. ")), "{text}");
    assert_eq!(
        json!([
            found["space"],
            found["result"],
            found["is_complete"],
            found["is_newest"],
            found["loop"],
            found["items"]
        ]),
        json!(["theses", "failure", true, true, 1, 2]),
        "{found}"
    );
    assert_eq!((&found["proven"], &found["lacks"]), (&json!(1), &json!(["1 item not as recorded"])), "{found}");
    command(home, "mill reports --account one --space theses").await.is(0, &["one/theses", "failure", "1 item not as"]);
    command(home, &format!("mill reports --before {number}")).await.is(0, &["there are no such reports"]);
    let known = format!("mill reports --store main --space theses --before {number}");
    command(home, &known).await.is(0, &["there are no such reports"]);
    command(home, "mill reports --store nope").await.is(4, &["no store “nope”", "main"]);
    for unknown in ["nope", "x-duracloud-admi", "a/b"] {
        command(home, &format!("mill reports --space {unknown}")).await.is(4, &[&format!("no space “{unknown}”")]);
    }
    command(home, "mill reports --account other").await.is(4, &["no account", "other"]);
    command(home, &format!("mill reports {number} --space theses")).await.is(2, &["cannot be used with"]);
    command(home, "mill queues")
        .await
        .is(1, &["The newest report on 1 space is a failure, and not all of its errors are repaired"]);

    let one = format!("mill reports {number}");
    command(home, &one).await.is(0, &["one/theses in main", "not as recorded", "proven by reading", "content damaged"]);
    let detail = command(home, &format!("{one} --output json")).await.json();
    let parts: Vec<_> = detail["coverage"].as_array().unwrap().iter().map(|part| &part["part"]).collect();
    assert_eq!(parts, ["failed", "stored", "read"], "{detail}");
    assert_eq!((&detail["failed"][0]["key"], &detail["next"]), (&json!("a"), &Value::Null), "{detail}");
    let place = &detail["files"][0];
    let stored = home.join("objects").join(place["space"].as_str().unwrap()).join(place["key"].as_str().unwrap());
    let table = fs::read_to_string(&stored).unwrap();
    let read = async |format| command(home, &format!("{one} --file {format}")).await;
    assert_eq!(read("tsv").await.out, table);
    read("coverage").await.is(0, &["failed\t\t1\t4"]);
    assert_eq!(read("json").await.json()["items"].as_array().unwrap().len(), 2);
    read("premis").await.is(0, &["<premis:event>", "Outcome>fail<"]);
    assert_eq!(read("seal").await.json()["files"]["tsv"]["bytes"], table.len());
    let csv = read("csv").await;
    csv.is(0, &["date,account,store,space,key,result,", ",%3D1%2B1,success,read,"]);
    assert_eq!(csv.out.lines().count(), 3, "{csv:?}");
    read("xml").await.is(2, &["tsv, coverage, json, csv"]);

    plant_incomplete(home, number).await;
    command(home, "mill queues")
        .await
        .is(1, &["The newest report on 1 space is incomplete: some items were not proven"]);
    command(home, "mill reports --unsuccessful").await.is(0, &["incomplete", "2 items never reached"]);
    command(home, &one).await.is(0, &["skipped: its turn is in another loop", "never reached"]);
    fs::remove_file(&stored).unwrap();
    read("csv").await.is(4, &["were not found in the store"]);
}
