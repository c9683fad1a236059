//! The mail on a report, through a real mail server, read by Python's parser.

use std::time::Duration;

use queuekeeper_mail::MAIL;
use queuekeeper_mail::delivery::Delivery;
use queuekeeper_mail::metrics::OutboxMetrics;
use queuekeeper_mail::settings::{MailSettings, MailTls, Route, SmtpServer};
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::bit::reporter::Reporter;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_testkit::smtp::{Smtp, SmtpOptions, header, part};
use queuekeeper_testkit::wait::eventually;
use serde_json::json;
use tokio::sync::watch;

use super::reports::{requested, write, write_report_by};
use super::world::Bit;
use crate::duplicate::world::{World, item, main, on_all};

const LIMIT: Duration = Duration::from_mins(1);

/// A key that would be a header, were it on a line of its own.
const HOSTILE: &str = "x\r\nBcc: eve@evil.example";

/// The mails that wait, of all processes.
pub(super) async fn waiting(world: &World) -> u64 {
    let waiting = world.catalogue.waiting_messages().await.unwrap();
    waiting.iter().filter(|waiting| waiting.kind == MAIL).map(|waiting| waiting.count).sum()
}

/// How mails are made, from one address, with an admin who gets a copy.
fn made(route: Route) -> ReportMail {
    let settings = MailSettings {
        from: "keeper@keeper.example".to_owned(),
        copies: vec!["admin@keeper.example".to_owned()],
        retry_first: Duration::from_millis(50),
        route,
        ..MailSettings::default()
    };
    ReportMail { settings, pages: Some("https://ops.example.org/queue".to_owned()), ..ReportMail::default() }
}

/// Names an address for the account.
pub(super) fn address(bit: &mut Bit) {
    bit.checker.accounts.get_mut("account1").unwrap().mail = vec!["ada@example.edu".to_owned()];
}

/// Sends what waits, in two processes at a time, until nothing does.
async fn send(world: &World, mail: &ReportMail) -> String {
    let (stop, stopping) = watch::channel(false);
    let metrics = OutboxMetrics::new(&[MAIL]);
    let deliver = || Delivery {
        catalogue: &world.catalogue,
        settings: &mail.settings,
        look_again: Duration::from_millis(20),
        posted: &mail.posted,
        metrics: &metrics,
        tried: &|_| {},
    };
    let sent = async {
        eventually(LIMIT, "the mails are sent", async || waiting(world).await == 0).await;
        stop.send_replace(true);
    };
    tokio::join!(deliver().run(stopping.clone()), deliver().run(stopping), sent);
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

on_all! {
    async fn a_report_that_is_no_success_is_mailed_once_and_a_success_never(world: World) {
        let mut server = Smtp::start(SmtpOptions::default());
        let (host, port) = ("127.0.0.1".to_owned(), server.port());
        let server_at = SmtpServer { host, port, tls: MailTls::None, credentials_file: None, ca_file: None };
        let (mail, mut bit) = (made(Route::Smtp(server_at)), Bit::new(&world, "read"));
        address(&mut bit);
        write(&world, &["a", "rotten"]).await;
        let reporter = |bit: &Bit| Reporter { checker: bit.checker.clone(), mail: mail.clone() };
        let task = requested(&world, &mut bit).await;
        write_report_by(&world, &reporter(&bit), task).await;
        assert_eq!(waiting(&world).await, 0, "a success");

        world.rot("rotten");
        world.put(&main(), false, &item(HOSTILE), "0123456789", "text/plain").await;
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        let task = requested(&world, &mut bit).await;
        // Two processes report on it at a time, each of which makes a mail.
        let (first, second, lease) = (reporter(&bit), reporter(&bit), Lease::unlimited());
        tokio::join!(first.process(&task, &lease), second.process(&task, &lease));
        assert_eq!(waiting(&world).await, 1);
        server.fail(&[("DATA", 1, "451 later")]);
        let metrics = Box::pin(send(&world, &mail)).await;
        assert!(metrics.contains(r#"deliveries_total{kind="mail",outcome="delayed"} 1"#), "{metrics}");
        assert!(metrics.contains(r#"deliveries_total{kind="mail",outcome="delivered"} 1"#), "{metrics}");

        let received = server.received();
        assert_eq!(received.len(), 1, "{received:?}");
        let mail = &received[0];
        assert_eq!(mail["to"], json!(["ada@example.edu", "admin@keeper.example"]));
        assert_eq!(mail["defects"], json!([]));
        assert_eq!(header(mail, "subject"), ["Mill: FAIL -- Bit report: account1/theses in main"]);
        assert_eq!((header(mail, "bcc"), header(mail, "cc")), (vec![], vec!["admin@keeper.example"]));
        let text = part(mail, "text/plain");
        let number = bit.errors().await["rotten"].id;
        for said in [
            "Of the space theses in main, some content is not as recorded.",
            "Result:      failure",
            "- 1 item not as recorded.",
            "- 1 item stored and not recorded.",
            "stored:      3 items, 30 bytes",
            "read:        1 item, 10 bytes",
            "Bit errors (2)",
            &format!("{number}  rotten\n    content damaged\n"),
            "queuekeeper mill reports ",
            "https://ops.example.org/queue/mill/reports/",
            "queuekeeper mill errors account1, or https://ops.example.org/queue/mill/errors?account=account1",
        ] {
            assert!(text.replace('\r', "").contains(said), "{said}: {text}");
        }
        assert!(text.contains("Bcc: eve@evil.example") && text.lines().all(|line| !line.starts_with("Bcc")), "{text}");
    }

    async fn a_report_of_an_account_without_an_address_sends_nothing(world: World) {
        let (mail, mut bit) = (made(Route::None), Bit::new(&world, "read"));
        write(&world, &["rotten"]).await;
        world.rot("rotten");
        let task = requested(&world, &mut bit).await;
        write_report_by(&world, &Reporter { checker: bit.checker.clone(), mail: mail.clone() }, task).await;
        assert_eq!(waiting(&world).await, 0);

        // With one, it waits for a process that has a way out.
        address(&mut bit);
        world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
        let task = requested(&world, &mut bit).await;
        write_report_by(&world, &Reporter { checker: bit.checker.clone(), mail: mail.clone() }, task).await;
        let (_stop, stopping) = watch::channel(false);
        let metrics = OutboxMetrics::new(&[MAIL]);
        let delivery = Delivery {
            catalogue: &world.catalogue,
            settings: &mail.settings,
            look_again: LIMIT,
            posted: &mail.posted,
            metrics: &metrics,
            tried: &|_| {},
        };
        delivery.run(stopping).await;
        assert_eq!(waiting(&world).await, 1);
        assert_eq!(world.catalogue.remove_messages_of_no_batch(Duration::ZERO).await.unwrap(), 0, "it has not ended");
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("mails");
        Box::pin(send(&world, &made(Route::Directory(folder.clone())))).await;
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
        world.tamper("UPDATE outbox SET ended = ended - 1".to_owned()).await;
        assert_eq!(world.catalogue.remove_messages_of_no_batch(Duration::ZERO).await.unwrap(), 1);
    }
}
