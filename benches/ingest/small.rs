//! Many small files of one batch manifest, against a bare loop that writes the same objects.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use queuekeeper_ingest::manifest::{ManifestProfile, ManifestRow, Writer};
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_queue::state::BatchState;

use crate::delays::Delays;
use crate::world::{Program, World, cpu_ms};
use crate::{one, quantile};

/// How large each file is, in bytes.
const SIZE: usize = 1_000;

/// How many objects the bare loop writes.
const SAMPLE: usize = 500;

/// How many scrapes are timed before the deposit.
const SCRAPES: usize = 200;

/// How many files are deposited one after the other before it, for the delay of the sidecar at rest.
const AT_REST: u32 = 100;

pub(crate) async fn run(files: usize) -> anyhow::Result<()> {
    println!("small: {files} files of {SIZE} bytes, deposited as one batch manifest, the sidecar beside the daemons");
    let world = World::start("all").await?;
    let sidecar = world.sidecar().await?;
    let mut idle = Vec::new();
    for _ in 0..SCRAPES {
        idle.push(scrape(&sidecar).await?);
    }
    let began = Delays::so_far(&sidecar).await?;
    for number in 0..AT_REST {
        one::deposit(&world, number).await?;
    }
    let rested = Delays::so_far(&sidecar).await?;
    let at_rest = rested.since(&began);
    let manifest = manifest(&world, files)?;
    let cpu = || -> anyhow::Result<[f64; 3]> {
        let server = world.server.pid().map_or(Ok(0.0), cpu_ms)?;
        Ok([world.daemons.cpu_ms()?, server, sidecar.cpu_ms()?])
    };
    let (began, before) = (Instant::now(), cpu()?);
    let batch = world.deposit(manifest).await?;
    let (mut busy, mut created) = (Vec::new(), None);
    let mut expansion = Box::pin(world.wait_for(batch, BatchState::Reporting));
    let mut end = Box::pin(world.wait_for(batch, BatchState::Completed));
    loop {
        tokio::select! {
            ended = &mut end => { ended?; break }
            all = &mut expansion, if created.is_none() => {
                all?;
                created = Some((began.elapsed(), Delays::so_far(&sidecar).await?));
            }
            () = tokio::time::sleep(Duration::from_millis(200)) => busy.push(scrape(&sidecar).await?),
        }
    }
    let (took, after) = (began.elapsed(), cpu()?);
    let [daemons, server, beside] = std::array::from_fn(|at| (after[at] - before[at]) / files as f64);
    let rate = files as f64 / took.as_secs_f64();
    let objects = objects(&world.objects())?;
    anyhow::ensure!(objects.len() == files + AT_REST as usize, "{} objects of {files} files", objects.len());
    let bare = write_bare(&objects, &world.objects(), &world.beside("bare"))?;
    let delays = Delays::so_far(&sidecar).await?;
    let (creating, created) = created.context("the batch was not seen Reporting")?;
    println!(
        "  {took:.1?}, {rate:.1} objects a second, {:.2} of a bare loop that writes and syncs the same files ({bare:.1} \
         a second); goal 0.5",
        rate / bare
    );
    println!(
        "  processor time of an object: daemons {daemons:.1} ms, ZooKeeper {server:.1} ms, sidecar {beside:.1} ms, of \
         {:.1} ms that two cores have",
        2_000.0 / rate
    );
    println!(
        "  memory: daemons at most {} MB, sidecar {} MB; its scrape at rest p50 {:.1?}, meanwhile {:.1?}: {:.1} times, of 2",
        world.daemons.peak_mb()?,
        sidecar.peak_mb()?,
        quantile(&mut idle, 0.5),
        quantile(&mut busy, 0.5),
        quantile(&mut busy, 0.5).as_secs_f64() / quantile(&mut idle, 0.5).as_secs_f64()
    );
    println!("  delay of the sidecar at rest: {at_rest}");
    println!("  while the jobs are created, in {creating:.1?}: {}", created.since(&rested));
    let beside = delays.since(&created);
    println!(
        "  after that: {beside}; {:.1} and {:.1} times those at rest, of 2",
        beside.quantile_ms(0.5) / at_rest.quantile_ms(0.5),
        beside.quantile_ms(0.99) / at_rest.quantile_ms(0.99)
    );
    validate(&objects)?;
    println!("  {} objects are valid to ocfl-py", objects.len());
    Ok(())
}

/// Has another project's tool validate objects, by hundreds.
fn validate(objects: &[PathBuf]) -> anyhow::Result<()> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin/ocfl-validate.py");
    for some in objects.chunks(500) {
        let checked = Command::new(&tool).arg("--quiet").args(some).output().context("ocfl-py; run .ci/install")?;
        let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
        anyhow::ensure!(checked.status.success(), "ocfl-py: {said}");
    }
    Ok(())
}

async fn scrape(sidecar: &Program) -> anyhow::Result<Duration> {
    let began = Instant::now();
    anyhow::ensure!(sidecar.get("/metrics").await.is_some(), "the sidecar does not answer");
    Ok(began.elapsed())
}

/// Serves the files, and makes the manifest that names them.
fn manifest(world: &World, files: usize) -> anyhow::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), ManifestProfile::SingleFileBatch)?;
    for number in 0..files {
        let path = format!("/files/{number}.txt");
        world.origin.serve(&path, format!("{number:>SIZE$}").into_bytes());
        writer.write(&ManifestRow {
            url: Some(world.origin.url(&path).parse::<ContentUrl>()?),
            name: format!("{number}.txt"),
            local_ids: vec![format!("small-{number}")],
            title: Some(format!("File {number}")),
            ..ManifestRow::default()
        })?;
    }
    Ok(writer.finish()?)
}

/// The directories of all objects.
fn objects(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        if folder.join("inventory.json").exists() {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Writes the files of some objects again, each synced with its directory, and says how many objects that are a second.
fn write_bare(objects: &[PathBuf], root: &Path, to: &Path) -> anyhow::Result<f64> {
    let sample = &objects[..objects.len().min(SAMPLE)];
    let mut files = Vec::new();
    for object in sample {
        let mut folders = vec![object.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((to.join(path.strip_prefix(root)?), fs::read(path)?));
                }
            }
        }
    }
    let began = Instant::now();
    for (path, content) in &files {
        let Some(folder) = path.parent() else { continue };
        fs::create_dir_all(folder)?;
        let mut file = File::create(path)?;
        file.write_all(content)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
    }
    Ok(sample.len() as f64 / began.elapsed().as_secs_f64())
}
