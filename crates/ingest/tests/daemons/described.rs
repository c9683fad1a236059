//! What deposited files say of their object, and what is odd about a package.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use futures::TryStreamExt as _;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_mail::settings::Route;
use queuekeeper_queue::id::Priority;
use queuekeeper_queue::state::{BatchState, JobState};
use queuekeeper_store::ocfl::Snapshot;
use queuekeeper_testkit::smtp::{Smtp, SmtpOptions, part};
use queuekeeper_testkit::wait::eventually_some;
use serde_json::json;
use uuid::Uuid;

use super::contents::{manifest, zip};
use super::mail::{LIMIT, mailing, mails, plain};
use super::settings::{only, quick};
use super::world::{SESSION, World};

async fn text(stored: &Snapshot, version: u32, path: &str) -> String {
    let content = stored.open(version, path).await.unwrap();
    let pieces: Vec<_> = content.chunks.try_collect().await.unwrap();
    String::from_utf8(pieces.concat()).unwrap()
}

/// The files at and below a directory.
fn files(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metadata_among_the_files_is_in_the_object_the_inventory_and_the_message() {
    let world = World::with(quick()).await;
    let dublin_core = "<DublinCore xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Own title</dc:title>\
        <dc:date>1999</dc:date><dc:subject>s; t</dc:subject></DublinCore>";
    let files = [
        ("a.txt", "content"),
        ("mrt-dc.xml", dublin_core),
        ("mrt-erc.txt", "erc:\nwho: Erc Creator\n"),
        ("mrt-embargo.txt", "embargoEndDate: 2031-01-31\n"),
    ];
    world.origin.serve("/one.zip", zip(&files));
    world.origin.serve("/two.zip", zip(&[("b.txt", "more")]));
    world.origin.serve("/bad.zip", zip(&[("mrt-embargo.txt", "embargoEndDate: soon\n")]));
    let daemons = world.start();
    let deposit = |name: &str, update: bool| {
        json!({"type": "container", "filename": name, "payload_url": world.origin.url(&format!("/{name}")),
               "localID": "obj", "update": update, "title": "", "creator": "Form"})
    };
    let (batch, _) = world.deposit(deposit("one.zip", false)).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let job = report.completed[0];
    let ark = world.ark(job).await;
    let stored = world.check_stored(&ark, 1).await;
    let erc = format!("erc:\nwho: Erc Creator\nwhat: Own title\nwhen: 1999\nwhere: {ark}\nwhere: obj\n");
    assert_eq!(text(&stored, 1, "system/mrt-erc.txt").await, erc);
    assert_eq!(text(&stored, 1, "producer/mrt-dc.xml").await, dublin_core);
    let xml = text(&stored, 1, "system/mrt-dc.xml").await;
    for element in ["title>Own title<", "creator>Form<", "subject>s<", "subject>t<", "date>1999<"] {
        assert!(xml.contains(&format!("<dc:{element}/dc:")), "{xml}");
    }
    let ingest = text(&stored, 1, "system/mrt-ingest.txt").await;
    for line in [
        "creator:\tErc Creator\n",
        "packageIntegrity:\tno digest was supplied\n",
        "manifestValidity:\tthere is no manifest\n",
        "handlers:\tdownloading; unpacking; processing\n",
    ] {
        assert!(ingest.contains(line), "{line:?} is not in {ingest}");
    }
    assert!(!ingest.contains("retrievedIdentifier"), "{ingest}");
    let terms = async || {
        let object = world.services.catalogue.object(&ark).await.unwrap().unwrap();
        [object.title, object.creator, object.date].map(Option::unwrap)
    };
    assert_eq!(terms().await, ["Own title", "Erc Creator", "1999"]);
    let message = "Success, with warnings: its mrt-embargo.txt declares an embargo until 2031-01-31";
    assert_eq!(world.message(job).await, message);

    // An update that names none of them keeps title and date.
    let (batch, _) = world.deposit(deposit("two.zip", true)).await;
    assert_eq!(world.ended(batch).await.0, BatchState::Completed, "{:?}", world.jobs(batch).await);
    assert_eq!(terms().await, ["Own title", "Form", "1999"]);
    let stored = world.check_stored(&ark, 2).await;
    let ingest = text(&stored, 2, "system/mrt-ingest.txt").await;
    assert!(ingest.contains(&format!("retrievedIdentifier:\t{ark}\n")), "{ingest}");

    let (batch, _) = world.deposit(deposit("bad.zip", true)).await;
    let (state, report) = world.ended(batch).await;
    daemons.stop().await;
    let message = world.message(report.failed[0]).await;
    assert_eq!(state, BatchState::Failed);
    assert_eq!(message, "mrt-embargo.txt: embargoEndDate \"soon\" is not a date such as 2030-01-31");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_odd_about_a_package_is_in_the_report_although_its_job_had_failed_since() {
    let world = World::with(quick()).await;
    let server = Smtp::start(SmtpOptions::default());
    world.add_profile("mailed", "notification: {addresses: [staff@library.example]}\n");
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for folder in ["x/empty", "y"] {
        writer.add_directory(folder, options).unwrap();
    }
    let empty = writer.finish().unwrap().into_inner();
    world.origin.serve("/empty.zip", empty);
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    writer.add_directory("x/empty", options).unwrap();
    for name in ["\u{e9}.txt", "e\u{301}.txt"] {
        writer.start_file(name, options).unwrap();
        writer.write_all(b"content").unwrap();
    }
    world.origin.serve("/odd.zip", writer.finish().unwrap().into_inner());
    let deposit = |name: &str| {
        json!({"type": "container", "filename": name, "profile": "mailed",
               "payload_url": world.origin.url(&format!("/{name}"))})
    };
    let fail_file = world.directory.path().join("working/Store_FAIL");
    fs::write(&fail_file, "").unwrap();
    let daemons = world.start_anew(mailing(Route::Smtp(plain(&server))), SESSION).await;
    let (batch, _) = world.deposit(deposit("odd.zip")).await;
    let (_, report) = world.ended(batch).await;
    let job = report.failed[0];
    assert!(world.message(job).await.contains("Store_FAIL"));
    fs::remove_file(fail_file).unwrap();
    mails(&server, 1).await;
    world.queue.change_job(job, &queuekeeper_queue::JobChange::resume(), jiff::Timestamp::now()).await.unwrap();
    let again = queuekeeper_queue::ItemChange::to(BatchState::UpdateReporting).by_operator();
    eventually_some(LIMIT, "it is completed", async || {
        (world.job(job).await.state() == Some(JobState::Completed)).then_some(())
    })
    .await;
    world.queue.change_batch(batch, &again, jiff::Timestamp::now()).await.unwrap();
    let mail = mails(&server, 2).await.pop().unwrap();
    let warnings = "Success, with warnings: names that differ by Unicode normalization only: \
        \"\u{e9}.txt\" and \"e\u{301}.txt\"; empty folders, which are not stored: \"x/empty\"";
    let shown = warnings.replace("e\u{301}", "e\\u{301}");
    assert_eq!(world.message(job).await, shown);
    let (body, table) = (part(&mail, "text/plain"), part(&mail, "text/csv"));
    assert!(body.contains("Completed jobs with warnings (1)") && body.contains(&shown), "{body}");
    assert!(table.contains("empty folders, which are not stored"), "{table}");

    // What holds no file is no object.
    let (batch, _) = world.deposit(deposit("empty.zip")).await;
    let (_, report) = world.ended(batch).await;
    daemons.stop().await;
    let message = world.message(report.failed[0]).await;
    assert_eq!(message, "container \"empty.zip\" holds no file, so there is nothing to store");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_holds_a_presigned_url_is_readable_by_the_owner_of_the_daemons_only() {
    const SECRET: &str = "signature=SECRET";
    let world = World::with(quick()).await;
    let path = format!("/a?{SECRET}");
    world.origin.serve(&path, "content");
    let url = world.origin.url(&path);
    let row = |name: &str| format!("{url} | | | 7 | | {name} |");
    world.origin.serve("/object.checkm", manifest(ManifestProfile::Ingest, [row("a"), row("b")]));
    world.origin.serve("/batch.checkm", manifest(ManifestProfile::SingleFileBatch, [row("a"), row("b")]));
    let until = [Daemon::Batch, Daemon::Pending, Daemon::Estimating, Daemon::Provisioning, Daemon::Downloading];
    let daemons = world.start_anew(only(&until, quick()), SESSION).await;
    for (kind, name) in [("object-manifest", "object.checkm"), ("single-file-batch-manifest", "batch.checkm")] {
        let url = world.origin.url(&format!("/{name}"));
        world.deposit(json!({"type": kind, "filename": name, "payload_url": url})).await;
    }
    let (new, uuid) = (NewDeposit { profile: "demo".to_owned(), ..NewDeposit::default() }, Uuid::new_v4());
    let new = NewDeposit { file_name: "c".to_owned(), kind: Some(DepositType::File), ..new };
    let made = new.refer(&world.queue, Some(&world.services.working), uuid, &url.parse().unwrap()).await.unwrap();
    eventually_some(LIMIT, "all are downloaded", async || {
        (world.children("/jobs/states/processing").await.len() == 4).then_some(())
    })
    .await;
    daemons.stop().await;
    let submission = world.queue.load_batch(made.batch).await.unwrap().submission.unwrap();
    let submission = String::from_utf8(submission).unwrap();
    assert!(submission.contains("/a?..\"") && !submission.contains(SECRET), "{submission}");
    let mut found = Vec::new();
    for path in files(&world.directory.path().join("working")) {
        if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(SECRET) {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push(name.split('-').next().unwrap_or_default().to_owned());
        }
    }
    found.sort();
    assert_eq!(found, [".url", ".url", ".url", ".url", "batch.checkm", "object.checkm"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_without_a_profile_is_estimated_and_gets_its_room_and_fails_where_the_profile_is_needed() {
    let world = World::with(quick()).await;
    world.add_profile("gone", "priority: 40\n");
    world.origin.serve("/a", "content");
    let daemons = world.start_anew(only(&[Daemon::Batch, Daemon::Pending], quick()), SESSION).await;
    let url = world.origin.url("/a");
    let (batch, _) =
        world.deposit(json!({"type": "file", "filename": "a", "profile": "gone", "payload_url": url})).await;
    let waits_in = async |state: JobState| {
        eventually_some(LIMIT, "the job waits", async || {
            let job = *world.queue.batch_report(batch).await.ok()?.processing.first()?;
            (world.job(job).await.state() == Some(state)).then_some(job)
        })
        .await
    };
    waits_in(JobState::Estimating).await;
    daemons.stop().await;
    fs::remove_file(world.directory.path().join("profiles/gone.yaml")).unwrap();
    let daemons = world.start_anew(only(&[Daemon::Estimating], quick()), SESSION).await;
    let job = world.job(waits_in(JobState::Provisioning).await).await;
    daemons.stop().await;
    assert_eq!((job.space_needed().unwrap(), job.priority().unwrap()), (None, Priority::new(50).unwrap()));
    // Alone beside Java's daemons, which have profiles of their own.
    let daemons = world.start_anew(only(&[Daemon::Provisioning], quick()), SESSION).await;
    waits_in(JobState::Downloading).await;
    daemons.stop().await;
    let daemons = world.start_anew(quick(), SESSION).await;
    let (_, report) = world.ended(batch).await;
    daemons.stop().await;
    assert!(world.message(report.failed[0]).await.starts_with("there is no profile \"gone\""));
}
