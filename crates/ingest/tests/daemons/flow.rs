//! Deposits from their batch to their report.

use std::io::Write as _;
use std::time::Duration;

use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::manifest::{ManifestProfile, ManifestRow, Writer};
use queuekeeper_ingest::settings::Settings;
use queuekeeper_queue::record::{DaemonNote, ItemStatus, ProgressNote};
use queuekeeper_queue::state::BatchState;
use queuekeeper_store::ocfl::Root;
use queuekeeper_testkit::origin::OriginFault;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use serde_json::json;

use super::contents::zip;
use super::settings::{only, quick};
use super::world::{SESSION, WAIT_LIMIT, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_becomes_an_object_with_an_identifier_an_inventory_row_and_a_report() {
    let world = World::new().await;
    world.origin.serve("/a.txt", "content");
    let daemons = world.start();
    let (batch, _) =
        world.deposit(json!({"type": "file", "filename": "a.txt", "payload_url": world.origin.url("/a.txt")})).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let job = world.job(report.completed[0]).await;
    let ark = job.identifiers().value.ark.into_owned();
    assert!(ark.starts_with("ark:/99999/fk4"), "{ark}");

    let object = world.services.catalogue.object(&ark).await.unwrap().unwrap();
    assert_eq!((object.current_version, object.title.as_deref()), (1, Some("A title")));
    let files = world.services.catalogue.files(&ark, 1, "", 100).await.unwrap();
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    let system = ["mrt-dc.xml", "mrt-erc.txt", "mrt-ingest.txt", "mrt-membership.txt", "mrt-mom.txt", "mrt-owner.txt"];
    let expected: Vec<_> =
        ["producer/a.txt".to_owned()].into_iter().chain(system.map(|name| format!("system/{name}"))).collect();
    assert_eq!(paths, expected);
    assert_eq!(files[0].size, 7);

    let store = world.services.stores.values().next().unwrap().clone();
    let root = Root::open(store, "demo".parse().unwrap()).await.unwrap();
    let verified = root.object(&ark).unwrap().verify().await.unwrap();
    assert!(verified.is_valid(), "{verified:?}");
    assert_eq!(world.left(), Vec::<String>::new());
    daemons.stop().await;

    // The root and its three files, and the version, each change once, content before what names it.
    world.check_object(&ark, 1).await;
    let events = world.services.catalogue.events_after(0, 100).await.unwrap();
    let changed: Vec<_> = events.iter().map(|event| event.subject.key.as_ref().map(ToString::to_string)).collect();
    let names = changed.iter().flatten().map(|key| key.rsplit('/').next().unwrap()).collect::<Vec<_>>();
    assert_eq!(changed[0], None);
    assert_eq!(names[..3], ["config.json", "ocfl_layout.json", "0=ocfl_1.1"]);
    let last =
        ["inventory.json", "inventory.json.sha512", "inventory.json", "inventory.json.sha512", "0=ocfl_object_1.1"];
    assert_eq!(names[names.len() - 5..], last);
    assert_eq!(names.len(), 3 + paths.len() + 5);
    assert!(events.iter().all(|event| event.user == "ingest"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_a_download_is_stands_in_the_znode_of_its_process() {
    let world = World::with(quick()).await;
    for path in ["/a", "/b"] {
        world.origin.serve(path, vec![b'x'; 200_000]);
    }
    // 13 pieces, each after a wait: longer than a note takes.
    world.origin.fail("/b", [OriginFault::Slow(Duration::from_secs(1))]);
    let mut manifest = Writer::new(Vec::new(), ManifestProfile::Ingest).unwrap();
    for name in ["a", "b"] {
        let url = Some(world.origin.url(&format!("/{name}")).parse().unwrap());
        manifest
            .write(&ManifestRow { url, size: Some(200_000), name: format!("{name}.bin"), ..ManifestRow::default() })
            .unwrap();
    }
    world.origin.serve("/manifest", manifest.finish().unwrap());
    let daemons = world.start();
    let url = world.origin.url("/manifest");
    let (batch, _) =
        world.deposit(json!({"type": "object-manifest", "filename": "m.checkm", "payload_url": url})).await;
    let note = async || {
        let name = world.children("/queuekeeper/progress").await.pop()?;
        let data = world.queue.client().get_data(&format!("/queuekeeper/progress/{name}")).await.ok()?.0;
        ProgressNote::decode(&data)
    };
    let job = eventually_some(WAIT_LIMIT, "one file is there and some of the other", async || {
        let (job, progress) = note().await?.jobs.pop_first()?;
        let file = progress.fetching.first().filter(|file| file.name == "b.bin" && file.bytes > 0)?;
        assert_eq!((file.size, file.bytes <= 200_000), (Some(200_000), true));
        // The manifest is a file, too.
        (progress.files == 2 && progress.bytes > 200_000).then_some(job)
    })
    .await;
    let (state, report) = world.ended(batch).await;
    assert_eq!((state, report.completed), (BatchState::Completed, vec![job]));
    eventually(WAIT_LIMIT, "nothing is being downloaded", async || note().await == Some(ProgressNote::default())).await;
    daemons.stop().await;
    eventually(WAIT_LIMIT, "it ends with the session", async || note().await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_gets_more_workers_while_jobs_wait_and_fewer_again() {
    let mut settings = Settings { adjust_workers: Duration::from_millis(20), ..quick() };
    settings.workers.insert(Daemon::Downloading, 1);
    settings.most_workers.insert(Daemon::Downloading, 4);
    let world = World::with(settings).await;
    let mut batches = Vec::new();
    for number in 0..6 {
        let path = format!("/{number}");
        world.origin.serve(&path, vec![b'x'; 100_000]);
        world.origin.fail(&path, [OriginFault::LengthOffBy(0), OriginFault::Slow(Duration::from_secs(1))]);
        let deposit =
            json!({"type": "file", "filename": format!("{number}.txt"), "payload_url": world.origin.url(&path)});
        batches.push(world.deposit(deposit).await.0);
    }
    let daemons = world.start();
    let workers = async || {
        let name = world.children("/queuekeeper/daemons").await.pop()?;
        let data = world.queue.client().get_data(&format!("/queuekeeper/daemons/{name}")).await.ok()?.0;
        DaemonNote::decode(&data)?.workers.get("downloading").copied()
    };
    eventually(WAIT_LIMIT, "there are as many as there may be", async || workers().await == Some(4)).await;
    for batch in batches {
        assert_eq!(world.ended(batch).await.0, BatchState::Completed);
    }
    eventually(WAIT_LIMIT, "one is left", async || workers().await == Some(1)).await;
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposit_takes_no_more_requests_where_more_batches_are_kept() {
    let settings = Settings { look_again: Duration::from_hours(1), ..quick() };
    let world = World::with(settings).await;
    world.origin.serve("/a.txt", "content");
    let daemons = world.start();
    let received = || {
        let mut stream = std::net::TcpStream::connect(world.server.connect_string()).unwrap();
        stream.write_all(b"srvr").unwrap();
        let text = std::io::read_to_string(stream).unwrap();
        let count = text.lines().find_map(|line| line.strip_prefix("Received: ")).unwrap();
        count.trim().parse::<u64>().unwrap()
    };
    // Waiting by watches takes the same few requests each time.
    let deposit = async || {
        let url = world.origin.url("/a.txt");
        let (batch, _) = world.deposit(json!({"type": "file", "filename": "a.txt", "payload_url": url})).await;
        let status = format!("/batches/{batch}/status");
        loop {
            let (data, _, changed) = world.queue.client().get_and_watch_data(&status).await.unwrap();
            if ItemStatus::<BatchState>::decode(&data).value.status.state == Some(BatchState::Completed) {
                return;
            }
            changed.changed().await;
        }
    };
    // Of five each, as one leaves some to the next.
    let mut counts = Vec::new();
    for _ in 0..10 {
        let before = received();
        for _ in 0..5 {
            tokio::time::timeout(WAIT_LIMIT, deposit()).await.unwrap();
        }
        counts.push(received() - before);
    }
    // Time takes requests as well: those that took least tell how many a deposit takes.
    let [first, last] = [&counts[1..4], &counts[7..]].map(|counts| counts.iter().copied().min().unwrap());
    assert!(last * 4 < first * 5, "{counts:?}");
    // Some forty each with the deposit itself, and waiting for its end.
    assert!(first < 300, "{counts:?}");
    daemons.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storing_reads_from_the_disk_whatever_urls_its_manifest_has_for_others() {
    let working_url = Some("http://nowhere.invalid/ingestqueue/".parse().unwrap());
    let world = World::with(Settings { working_url, ..quick() }).await;
    world.origin.serve("/a.zip", zip(&[("a b/Größe%20.txt", "one"), (".hidden", "two"), ("#?&+.txt", "three")]));
    // Another process has no such URL.
    let before = [Daemon::Batch, Daemon::Pending, Daemon::Estimating, Daemon::Provisioning, Daemon::Downloading];
    let before = [&before[..], &[Daemon::Processing]].concat();
    let settings = only(&before, world.services.settings.clone());
    let daemons = world.start_anew(settings, SESSION).await;
    let url = world.origin.url("/a.zip");
    let (batch, _) = world.deposit(json!({"type": "container", "filename": "a.zip", "payload_url": url})).await;
    let job = eventually_some(WAIT_LIMIT, "the job waits for Storing", async || {
        world.children("/jobs/states/storing").await.pop()
    });
    let job = job.await.split_once('-').unwrap().1.to_owned();
    daemons.stop().await;
    let (store, _) = world.queue.client().get_data(&format!("/jobs/{job}/store")).await.unwrap();
    assert!(String::from_utf8(store).unwrap().contains("http://nowhere.invalid/ingestqueue/bid-"));
    let daemons = world.start_anew(quick(), SESSION).await;
    let (state, report) = world.ended(batch).await;
    assert_eq!(state, BatchState::Completed, "{:?}", world.jobs(batch).await);
    let ark = world.ark(report.completed[0]).await;
    world.check_object(&ark, 1).await;
    assert_eq!(world.producer(&ark, 1).await, ["#?&+.txt", ".hidden", "a b/Größe%20.txt"]);
    daemons.stop().await;
}
