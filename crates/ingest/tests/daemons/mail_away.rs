//! Mail servers that are away, refuse, and break off; and callbacks that a job has failed.

use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_mail::settings::{MailTls, Route, SmtpServer};
use queuekeeper_queue::record::DaemonNote;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::smtp::{Smtp, SmtpOptions, header};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::{Value, json};

use super::mail::{LIMIT, mailing, mails, plain};
use super::settings::{only, quick};
use super::world::{SESSION, World};

/// The same with time for an answer: no process ends here while it has a mail.
fn patient(route: Route) -> Settings {
    let mut settings = mailing(route);
    settings.mail.lease = Duration::from_mins(2);
    settings
}

impl World {
    async fn row(&self, what: &str, condition: &str) -> Value {
        let sql = format!(
            "SELECT error, attempts, delivered IS NOT NULL, ended IS NOT NULL, settled FROM outbox WHERE {condition}"
        );
        eventually_some(LIMIT, what, async || self.sql(&sql).pop()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_waits_out_a_server_that_is_away_refuses_for_a_time_or_breaks_off_and_holds_up_no_batch() {
    let world = World::with(quick()).await;
    let mut server = Smtp::start(SmtpOptions::default());
    world.add_profile("mailed", "notification: {addresses: [staff@library.example, gone@library.example]}\n");
    server.stop();
    let mut settings = patient(Route::Smtp(plain(&server)));
    (settings.mail.noted_after, settings.mail.reply_to) = (Duration::ZERO, Some("anna@library.example".to_owned()));
    let daemons = world.start_anew(settings, SESSION).await;
    let noted = async || {
        let name = world.children("/queuekeeper/daemons").await.pop()?;
        let data = world.queue.client().get_data(&format!("/queuekeeper/daemons/{name}")).await.ok()?.0;
        DaemonNote::decode(&data)?.mail
    };
    let (batch, uuid) = world.deposit_file(&json!({})).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Completed);
    let row = world.row("it is tried more than once", "attempts > 2").await;
    assert!(row[0].as_str().unwrap().contains("refused") && row[2] == 0, "{row}");
    let note = eventually_some(LIMIT, "the process says why it waits", async || {
        noted().await.filter(|note| !note.why.is_empty())
    });
    let note = note.await;
    assert!(note.waiting == 1 && note.why.contains("refused"), "{note:?}");
    server.restart();
    server.refuse("gone@library.example", "550 5.1.1 no such user");
    let mail = mails(&server, 1).await.pop().unwrap();
    assert_eq!(mail["to"], json!(["staff@library.example"]));
    assert!(header(&mail, "subject")[0].contains(&uuid));
    assert_eq!(header(&mail, "reply-to"), ["anna@library.example"]);
    eventually(LIMIT, "none waits any more", async || noted().await.is_none()).await;
    let row = world.row("it is settled", "ended IS NOT NULL").await;
    assert_eq!(row[2], 1);
    let error = row[0].as_str().unwrap();
    assert!(
        error.starts_with("gone@library.example: ") && error.contains("550") && error.contains("no such user"),
        "{error}"
    );

    // It breaks off in the middle, is busy, and takes a mail without saying so.
    server.fail(&[("BODY", 1, "cut"), ("MAIL", 1, "452 busy"), ("RCPT", 1, "451 later"), ("DATA", 1, "cut")]);
    let (batch, uuid) = world.deposit_file(&json!({})).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Completed);
    world.row("both mails are settled", "ended IS NOT NULL AND id = 2").await;
    daemons.stop().await;
    let copies: Vec<_> = server.received().split_off(1);
    let mut to: Vec<_> = copies.iter().map(|mail| mail["to"].clone()).collect();
    to.dedup();
    // Of two recipients one had it already when the other was taken, and the one that was not recorded got it twice.
    assert!(copies.len() >= 2, "{to:?}");
    for copy in &copies {
        assert!(header(copy, "subject")[0].contains(&uuid));
        for part in ["headers", "parts"] {
            assert_eq!(copy[part], copies[0][part]);
        }
    }
    let settled: Value =
        serde_json::from_str(world.sql("SELECT settled FROM outbox WHERE id = 2")[0][0].as_str().unwrap_or("{}"))
            .unwrap();
    assert!(settled.as_object().unwrap().values().all(Value::is_null), "{settled}");
    assert_eq!(world.sql("SELECT COUNT(*), COUNT(delivered) FROM outbox"), [json!([2, 2])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_in_the_clear_or_to_a_server_that_no_authority_vouches_for() {
    let world = World::with(quick()).await;
    let [authority, other] = ["authority", "other"].map(|name| Authority::new(world.directory.path(), name));
    let in_the_clear = Smtp::start(SmtpOptions::default());
    let implicit = Smtp::start(SmtpOptions::default().with_tls(&authority.certify("mail"), true));
    world.add_profile("mailed", "notification: {addresses: [staff@library.example]}\n");
    let at = |server: &Smtp, tls, authority: &Authority| SmtpServer {
        host: "localhost".to_owned(),
        port: server.port(),
        tls,
        credentials_file: None,
        ca_file: Some(authority.ca_file.clone()),
    };
    let (batch, _) = world.deposit_file(&json!({})).await;
    for (server, expected) in [
        (at(&in_the_clear, MailTls::StartTls, &authority), "STARTTLS"),
        (at(&implicit, MailTls::Implicit, &other), "certificate"),
        (at(&in_the_clear, MailTls::Implicit, &authority), ""),
    ] {
        let daemons = world.start_anew(patient(Route::Smtp(server)), SESSION).await;
        world.ended(batch).await;
        let sql = "SELECT error FROM outbox WHERE error IS NOT NULL";
        let error = eventually_some(LIMIT, "it is refused", async || world.sql(sql).pop()).await;
        assert!(error[0].as_str().unwrap().contains(expected), "{error}");
        daemons.stop().await;
        world.sql("UPDATE outbox SET error = NULL, due = 0");
    }
    let files = [("missing", "No such file"), ("empty", "no certificate")];
    std::fs::write(world.directory.path().join("empty"), "").unwrap();
    for (file, expected) in files {
        let ca_file = Some(world.directory.path().join(file));
        let server = SmtpServer { ca_file, ..at(&implicit, MailTls::Implicit, &authority) };
        assert!(server.check().unwrap_err().contains(expected), "{file}");
    }
    assert!(in_the_clear.received().is_empty() && implicit.received().is_empty());
    let daemons = world.start_anew(patient(Route::Smtp(at(&implicit, MailTls::Implicit, &authority))), SESSION).await;
    let mail = mails(&implicit, 1).await.pop().unwrap();
    daemons.stop().await;
    assert_eq!((&mail["defects"], &mail["to"]), (&json!([]), &json!(["staff@library.example"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_is_refused_to_all_is_given_up_with_the_servers_sentence() {
    let world = World::with(quick()).await;
    let mut server = Smtp::start(SmtpOptions::default());
    world.add_profile("mailed", "notification: {addresses: [staff@library.example]}\n");
    server.fail(&[("DATA", 1, "554 5.7.1 it looks like spam")]);
    let daemons = world.start_anew(patient(Route::Smtp(plain(&server))), SESSION).await;
    world.deposit_file(&json!({})).await;
    let row = world.row("it is given up", "ended IS NOT NULL").await;
    assert!(row[0].as_str().unwrap().contains("it looks like spam"), "{row}");
    assert_eq!((&row[1], &row[2]), (&json!(1), &json!(0)));
    daemons.stop().await;
    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_fails_is_reported_to_the_depositors_system_and_waits_for_nothing() {
    let world = World::with(quick()).await;
    let callback = format!("callback: {}\n", world.origin.url("/cb"));
    world.add_profile("mailed", &callback);
    let creating = world.start_anew(only(&[Daemon::Batch], quick()), SESSION).await;
    let (batch, _) = world.deposit_file(&json!({"payload_url": world.origin.url("/missing")})).await;
    let job = eventually_some(LIMIT, "its job is there", async || {
        world.queue.batch_report(batch).await.ok()?.processing.first().copied()
    })
    .await;
    creating.stop().await;
    let configuration: Value =
        serde_json::from_slice(world.job(job).await.data(queuekeeper_queue::path::JobNode::Configuration).unwrap())
            .unwrap();
    let id = configuration["jobID"].as_str().unwrap().to_owned();
    let path = format!("/cb/mc/{id}");
    world.origin.serve(&path, "thanks");
    world.origin.fail(&path, [OriginFault::Status(503, None), OriginFault::Status(503, None)]);
    let daemons = world.start_anew(quick(), SESSION).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Failed);
    let key = format!("{id}/downloading/0");
    let row = world.row("it is delivered", "delivered IS NOT NULL").await;
    daemons.stop().await;
    assert_eq!(row[1], 3);
    let sent = world.sql("SELECT message, kind, content FROM outbox");
    assert_eq!((sent.len(), &sent[0][0], &sent[0][1]), (1, &json!(key), &json!("failed-callback")));
    let body: Value = serde_json::from_str(sent[0][2].as_str().unwrap()).unwrap();
    let state = &body["job:jobState"];
    assert_eq!((&state["job:jobID"], &state["job:jobStatus"]), (&json!(id), &json!("FAILED")));
    assert!(state["job:jobStatusMessage"].as_str().unwrap().contains("404"), "{body}");
    let at = |key: &str| state[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(at("job:submissionDate") < at("job:consumptionDate"), "{body}");
    assert!(at("job:consumptionDate") < at("job:completionDate"), "{body}");
    let calls: Vec<_> = world.origin.take_requests().into_iter().filter(|request| request.path == path).collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.method == "POST" && call.headers["idempotency-key"] == key.as_str()));

    // A callback that is refused for good fails its job, and calls nobody about that.
    let (batch, _) = world.deposit_file(&json!({})).await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Failed);
    assert!(world.message(report.failed[0]).await.contains("404"));
    eventually(LIMIT, "nothing waits", async || {
        world.sql("SELECT COUNT(*) FROM outbox WHERE ended IS NULL") == [json!([0])]
    })
    .await;
    daemons.stop().await;
    let rows = world.sql("SELECT kind, delivered IS NOT NULL FROM outbox ORDER BY id");
    assert_eq!(rows, [json!(["failed-callback", 1]), json!(["callback", 0])]);
}
