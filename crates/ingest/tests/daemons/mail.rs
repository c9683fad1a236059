//! Reports by mail, through a real mail server, read by Python's parser.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_mail::settings::{MailSettings, MailTls, Route, SmtpServer};
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::state::BatchState;
use queuekeeper_queue::{ItemChange, JobChange};
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::smtp::{Smtp, SmtpOptions, header, parse, part};
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::{Value, json};

use super::contents::manifest;
use super::settings::quick;
use super::world::{SESSION, World};

pub(super) const LIMIT: Duration = Duration::from_mins(3);

/// Settings with a mail server, or with what else is given.
pub(super) fn mailing(route: Route) -> Settings {
    let (retry_first, retry_most) = (Duration::from_millis(100), Duration::from_millis(400));
    let (from, lease) = ("keeper@keeper.example".to_owned(), Duration::from_secs(20));
    let mail = MailSettings { from, route, lease, retry_first, retry_most, ..MailSettings::default() };
    Settings { mail, ..quick() }
}

/// The same with an admin who gets copies.
fn copied(mut settings: Settings) -> Settings {
    settings.mail.copies = vec!["admin@keeper.example".to_owned()];
    settings
}

/// A server that is spoken to in the clear.
pub(super) fn plain(server: &Smtp) -> SmtpServer {
    let host = "127.0.0.1".to_owned();
    SmtpServer { host, port: server.port(), tls: MailTls::None, credentials_file: None, ca_file: None }
}

/// The rows of a table of jobs without its heading, each as its fields.
fn rows(mail: &Value) -> Vec<Vec<String>> {
    let text = part(mail, "text/csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.records().map(|row| row.unwrap().iter().map(ToOwned::to_owned).collect());
    rows.collect()
}

/// The jobs of the two attached lists: those that failed, and those that were completed.
fn attached(mail: &Value) -> (Vec<Value>, Vec<Value>) {
    let list = |name: &str, key: &str| {
        let part = mail["parts"].as_array().unwrap().iter().find(|part| part["name"] == name).unwrap();
        assert_eq!(part["type"], "application/json");
        let list: Value = serde_json::from_str(part["text"].as_str().unwrap()).unwrap();
        list[key].as_array().unwrap().clone()
    };
    (list("failed.json", "failedJobs"), list("completed.json", "completedJobs"))
}

/// Whom a mail is to, and who gets a copy: an admin, if it is a report.
fn check_recipients(mail: &Value) {
    let admin = header(mail, "subject")[0].contains("Processed").then_some("admin@keeper.example");
    let all: Vec<&str> = ["ada@depositor.example"].into_iter().chain(admin).collect();
    assert_eq!((&mail["to"], header(mail, "to")), (&json!(all), vec!["ada@depositor.example"]));
    assert_eq!(header(mail, "cc"), Vec::from_iter(admin));
}

impl World {
    /// Deposits a manifest of files of which those that are named cannot be fetched.
    async fn deposit_files(&self, files: usize, missing: &[usize], say: &Value) -> (BatchId, String) {
        self.origin.serve("/there", "content");
        let row = |row| {
            let path = if missing.contains(&row) { format!("/missing-{row}") } else { "/there".to_owned() };
            format!("{} | | | 7 | | file-{row}.txt", self.origin.url(&path))
        };
        self.origin.serve("/all.checkm", manifest(ManifestProfile::SingleFileBatch, (0..files).map(row)));
        let mut all = json!({"type": "single-file-batch-manifest", "filename": "all.checkm", "profile": "mailed",
                             "payload_url": self.origin.url("/all.checkm")});
        all.as_object_mut().unwrap().extend(say.as_object().unwrap().clone());
        self.deposit(all).await
    }

    pub(super) async fn deposit_file(&self, say: &Value) -> (BatchId, String) {
        self.origin.serve("/there", "content");
        let url = self.origin.url("/there");
        let mut all = json!({"type": "file", "filename": "a.txt", "profile": "mailed", "payload_url": url});
        all.as_object_mut().unwrap().extend(say.as_object().unwrap().clone());
        self.deposit(all).await
    }
}

pub(super) async fn mails(server: &Smtp, count: usize) -> Vec<Value> {
    eventually(LIMIT, &format!("{count} mails"), async || server.received().len() >= count).await;
    server.received()
}

/// Checks how a failed job is listed as JSON.
fn check_failed(listed: &Value, job: JobId) {
    assert_eq!((&listed["status"], &listed["jobID"]), (&json!("Failed"), &json!(job.to_string())));
    assert!(listed["message"].as_str().unwrap().contains("404"), "{listed}");
}

async fn mail_about(server: &Smtp, subject: &str) -> Value {
    eventually_some(LIMIT, subject, async || {
        server.received().into_iter().find(|mail| header(mail, "subject")[0].contains(subject))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_reported_once_although_its_daemon_ends_before_its_state_and_again_when_what_failed_is_resumed() {
    const FILES: usize = 300;
    let missing = [3, 7, 11, 250];
    let world = World::with(quick()).await;
    let authority = Authority::new(world.directory.path(), "authority");
    let options = SmtpOptions { login: Some(("keeper", "correct horse")), ..SmtpOptions::default() };
    let server = Smtp::start(options.with_tls(&authority.certify("mail"), false));
    let credentials = world.directory.path().join("mail.yaml");
    std::fs::write(&credentials, "username: keeper\npassword: correct horse\n").unwrap();
    let smtp = SmtpServer {
        host: "localhost".to_owned(),
        port: server.port(),
        tls: MailTls::StartTls,
        credentials_file: Some(credentials),
        ca_file: Some(authority.ca_file.clone()),
    };
    smtp.check().unwrap();
    let settings = || copied(mailing(Route::Smtp(smtp.clone())));
    world.add_profile("mailed", "notification: {addresses: [staff@library.example], queued: true}\n");

    // The outcome of the deposit is written between the mail and the state: here it cannot be.
    let (batch, uuid) = world.deposit_files(FILES, &missing, &json!({"notification": "ada@depositor.example"})).await;
    let bare = uuid.trim_start_matches("bid-").replace('-', "");
    world.sql(&format!(
        "INSERT INTO deposits (batch, depositor, profile, object_count, byte_count, received)
         VALUES (x'{bare}', 'ada', 'mailed', 1, 1, 0)"
    ));
    world.sql("CREATE TRIGGER away BEFORE UPDATE OF outcome ON deposits BEGIN SELECT RAISE(ABORT, 'away'); END");
    let reported = async || world.sql("SELECT message, content, attempts FROM outbox WHERE message LIKE 'report-%'");
    let daemons = world.start_anew(settings(), SESSION).await;
    let before = eventually_some(LIMIT, "the report is written down", async || reported().await.pop()).await;
    daemons.abort().await;
    let state = world.queue.load_batch(batch).await.unwrap().check_loadable().unwrap();
    assert_eq!(state, BatchState::Reporting);
    world.sql("DROP TRIGGER away");

    let daemons = world.start_anew(settings(), SESSION).await;
    let (state, report) = world.ended_within(LIMIT, batch).await;
    assert_eq!((state, report.failed.len(), report.completed.len()), (BatchState::Failed, 4, FILES - 4));
    let first = mail_about(&server, "Submission Processed:").await;
    let received = server.received();
    let after = reported().await;
    assert_eq!(after.len(), 1);
    assert_eq!((&after[0][0], &after[0][1]), (&before[0], &before[1]));
    let (queued, first) = (&received[0], &first);
    let subject = format!("Ingest: OK -- Submission Queued: {uuid} (A title)");
    assert_eq!(header(queued, "subject"), [subject.as_str()]);
    assert!(part(queued, "text/plain").contains(&format!("Jobs:        {FILES}")), "{queued}");
    for mail in &received {
        assert_eq!((&mail["tls"], &mail["user"], &mail["defects"]), (&json!(true), &json!("keeper"), &json!([])));
        check_recipients(mail);
        assert_eq!((&mail["from"], &mail["is_ascii"]), (&json!("keeper@keeper.example"), &json!(true)));
        assert_eq!(header(mail, "auto-submitted"), ["auto-generated"]);
    }
    // Between an attempt and its end the daemons were ended: whatever came twice is one mail to its receiver.
    let ids: BTreeSet<_> = received.iter().flat_map(|mail| header(mail, "message-id")).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(header(first, "subject"), [format!("Ingest: FAIL -- Submission Processed: {uuid} (A title)").as_str()]);
    let (text, html, table) = (part(first, "text/plain"), part(first, "text/html"), rows(first));
    assert_eq!(table.len(), FILES);
    for (row, job) in table.iter().zip(&report.failed) {
        assert_eq!((row[0].as_str(), row[1].as_str(), row[2].as_str()), (job.to_string().as_str(), "Failed", ""));
        assert!(row[3].starts_with("file-") && row[6].contains("404"), "{row:?}");
        for part in [text, html] {
            assert!(part.contains(&row[0]) && part.contains(&row[3]), "{part}");
        }
    }
    let (failed, completed) = attached(first);
    assert_eq!((failed.len(), completed.len()), (4, FILES - 4));
    check_failed(&failed[0], report.failed[0]);
    assert_eq!(completed[9]["configuration"]["filename"], table[4 + 9][3]);
    for (row, job) in table[4..].iter().zip(&report.completed) {
        assert_eq!((row[0].as_str(), row[1].as_str()), (job.to_string().as_str(), "Completed"));
        assert_eq!(row[5], world.ark(*job).await);
    }

    // Two of them can be had now; one is not tried again.
    world.origin.serve("/missing-3", "content");
    world.origin.serve("/missing-7", "content");
    let now = Timestamp::now;
    let deleted = report.failed[3];
    for job in &report.failed[..3] {
        world.queue.change_job(*job, &JobChange::resume(), now()).await.unwrap();
    }
    let delete = JobChange::to(queuekeeper_queue::state::JobState::Deleted).by_operator();
    world.queue.change_job(deleted, &delete, now()).await.unwrap();
    let again = ItemChange::to(BatchState::UpdateReporting).by_operator();
    world.queue.change_batch(batch, &again, now()).await.unwrap();
    let second = mail_about(&server, "Submission Processed Again:").await;
    daemons.stop().await;
    assert_eq!(header(&second, "subject"), [format!("Ingest: FAIL -- Submission Processed Again: {uuid} (A title)")]);
    assert!(!ids.contains(header(&second, "message-id")[0]));
    let text = part(&second, "text/plain");
    for line in [
        "This is report 2",
        "Since report 1",
        "1 had failed, and have not been completed since",
        "2 had failed, and are completed now",
        "1 had failed, and are deleted now",
        &format!("{} are completed, as before", FILES - 4),
    ] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let changed: BTreeSet<_> =
        rows(&second).into_iter().filter(|row| row[2] == "Failed").map(|row| row[1].clone()).collect();
    assert_eq!(changed, ["Completed", "Deleted", "Failed"].map(str::to_owned).into());
    assert_eq!(reported().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_submission_adds_no_header_no_recipient_and_no_markup() {
    let world = World::with(quick()).await;
    let server = Smtp::start(SmtpOptions::default());
    world.add_profile("mailed", "notification: {addresses: [staff@library.example]}\n");
    let title = "x\r\nBcc: x@evil.example\r\n\r\n<script>alert(1)</script>\u{202e}é";
    let say = json!({
        "title": title,
        "filename": "<img src=x onerror=alert(1)>,\"=1+1\".txt",
        "submitter": "eve\r\n.\r\nMAIL FROM:<eve@evil.example>",
        "notification": "<ada@depositor.example>\r\nBcc: x@evil.example, \"a\r\nb\"@evil.example; evil@@x",
        "localID": "=HYPERLINK(\"http://evil.example\")",
    });
    let daemons = world.start_anew(copied(mailing(Route::Smtp(plain(&server)))), SESSION).await;
    let (batch, uuid) = world.deposit_file(&say).await;
    let (state, _) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let mail = mails(&server, 1).await.pop().unwrap();
    eventually(LIMIT, "it is settled", async || !world.sql("SELECT 1 FROM outbox WHERE ended > 0").is_empty()).await;
    daemons.stop().await;
    assert_eq!((&mail["defects"], &mail["is_ascii"]), (&json!([]), &json!(true)));
    // What stands behind the line break is an address of its own to a reader of addresses, and gets its mail openly.
    assert_eq!(mail["to"], json!(["ada@depositor.example", "x@evil.example", "admin@keeper.example"]));
    let names: Vec<_> = mail["headers"].as_array().unwrap().iter().map(|header| header[0].as_str().unwrap()).collect();
    let expected =
        ["from", "subject", "date", "message-id", "auto-submitted", "to", "cc", "mime-version", "content-type"];
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), expected.iter().collect(), "{names:?}");
    assert_eq!(names.len(), expected.len());
    let subject = header(&mail, "subject")[0];
    assert!(subject.starts_with(&format!("Ingest: OK -- Submission Processed: {uuid} (x")), "{subject:?}");
    assert!(subject.contains("Bcc: x@evil.example") && subject.contains('é') && !subject.contains('\u{202e}'));
    let (text, html) = (part(&mail, "text/plain"), part(&mail, "text/html"));
    assert!(!text.contains("\nBcc") && !text.contains("\n.") && text.contains("<script>alert(1)</script>"), "{text}");
    assert!(!html.contains("<script") && !html.contains("<img") && html.contains("&lt;script&gt;"), "{html}");
    let table = rows(&mail);
    assert_eq!((table.len(), table[0][3].as_str()), (1, say["filename"].as_str().unwrap()));
    assert!(table[0][4].starts_with("'=HYPERLINK"), "{table:?}");
    // Those that are none are named on the row, and lose the mail to nobody else.
    let row = world.sql("SELECT delivered IS NOT NULL, error FROM outbox");
    let error = row[0][1].as_str().unwrap();
    assert!(row[0][0] == 1 && error.contains("evil@@x: ") && error.contains("is not a mail address"), "{row:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_mail_server_each_report_is_a_file_and_what_a_profile_does_not_want_is_not_sent() {
    let world = World::with(quick()).await;
    let reports = world.directory.path().join("reports");
    world.add_profile("mailed", "");
    world.add_profile("quiet", "report: {suppress: true}\n");
    world.add_profile("silent", "report: {mail: false}\n");
    let settings = mailing(Route::Directory(reports.clone()));
    let daemons = [world.start_anew(settings.clone(), SESSION).await, world.start_anew(settings, SESSION).await];
    let mut expected = BTreeSet::new();
    for (profile, is_failed, is_mailed) in [
        ("mailed", false, true),
        ("mailed", true, true),
        ("quiet", false, false),
        ("quiet", true, true),
        ("silent", true, false),
    ] {
        let path = if is_failed { "/missing" } else { "/there" };
        let (batch, uuid) =
            world.deposit_file(&json!({"profile": profile, "payload_url": world.origin.url(path)})).await;
        let (state, _) = world.ended(batch).await;
        assert_eq!(state, if is_failed { BatchState::Failed } else { BatchState::Completed });
        expected.extend(is_mailed.then_some(uuid));
    }
    // One that becomes no job has no report, but a mail.
    world.origin.serve("/wrong.checkm", "nonsense");
    let wrong = json!({"type": "single-file-batch-manifest", "payload_url": world.origin.url("/wrong.checkm")});
    let (batch, refused) = world.deposit_file(&wrong).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Failed);
    expected.insert(refused.clone());
    // Reported again by a program that does not look for jobs, it is still none that went well.
    let again = ItemChange::to(BatchState::UpdateReporting).by_operator();
    world.queue.change_batch(batch, &again, Timestamp::now()).await.unwrap();
    assert_eq!(world.ended(batch).await.0, BatchState::Failed);
    let plan = world.queue.plan_report_again(batch, "again", Timestamp::now()).await;
    assert!(plan.unwrap_err().to_string().contains("it has no jobs"));
    let files = || {
        let entries = std::fs::read_dir(&reports).into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "eml")).collect::<Vec<_>>()
    };
    eventually(LIMIT, "all files are there", async || files().len() > expected.len()).await;
    let [first, second] = daemons;
    first.stop().await;
    second.stop().await;
    assert_eq!(world.sql("SELECT COUNT(*) FROM outbox WHERE delivered IS NULL"), [json!([0])]);
    let (mut found, mut of_refused) = (BTreeSet::new(), Vec::new());
    for path in files() {
        let mail = parse(&path);
        assert_eq!((&mail["defects"], header(&mail, "to").as_slice()), (&json!([]), &["undisclosed-recipients:;"][..]));
        let subject = header(&mail, "subject")[0];
        let uuid = expected.iter().find(|uuid| subject.contains(uuid.as_str())).unwrap();
        if *uuid == refused {
            assert!(subject.starts_with("Ingest: FAIL"), "{subject}");
            of_refused.push(part(&mail, "text/plain").to_owned());
            found.insert(uuid.clone());
            continue;
        }
        assert_eq!(rows(&mail).len(), 1);
        assert!(found.insert(uuid.clone()), "{uuid} is reported twice");
    }
    assert_eq!(found, expected);
    for why in ["No job was created", "The submission has no jobs"] {
        assert_eq!(of_refused.iter().filter(|text| text.contains(why)).count(), 1, "{of_refused:?}");
    }
}
