use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::world::{PERSISTENT, World};

/// The znodes of a job, made and removed in one transaction each.
fn nodes(number: usize) -> Vec<(String, String)> {
    let job = format!("/jobs/jid{number:010}");
    let children = ["bid", "configuration", "notes", "priority", "status"];
    let below = children.iter().map(|name| (format!("{job}/{name}"), format!("{number}")));
    [(job.clone(), String::new())].into_iter().chain(below).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_of_a_queue_that_moves_has_each_job_whole_or_not_at_all() {
    const JOBS: usize = 3_000;
    let world = World::new().await;
    world.make(&[("/jobs", b"")]).await;
    let write = async |numbers: std::ops::Range<usize>, is_made: bool| {
        let mut writer = world.client.new_multi_writer();
        for number in numbers {
            let mut nodes = nodes(number);
            if !is_made {
                nodes.reverse();
            }
            for (path, data) in nodes {
                if is_made {
                    writer.add_create(&path, data.as_bytes(), &PERSISTENT).unwrap();
                } else {
                    writer.add_delete(&path, None).unwrap();
                }
            }
        }
        writer.commit().await.unwrap();
    };
    for first in (0..JOBS).step_by(500) {
        write(first..first + 500, true).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let moving = async {
        for number in (0..JOBS).rev().cycle() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            write(number..number + 1, false).await;
            write(number..number + 1, true).await;
        }
    };
    let dumping = async {
        let mut dumps = Vec::new();
        for _ in 0..4 {
            dumps.push(world.dump(None).await);
        }
        stop.store(true, Ordering::Relaxed);
        dumps
    };
    let ((), dumps) = tokio::join!(moving, dumping);
    for dump in &dumps {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for line in std::str::from_utf8(dump).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let Some(job) = line.get("path").and_then(|path| path.as_str()?.strip_prefix("/jobs/jid")) {
                *found.entry(job[..10].to_owned()).or_default() += 1;
            }
        }
        assert!(found.values().all(|count| *count == nodes(0).len()), "{found:?}");
        assert!(found.len() + 10 > JOBS, "{}", found.len());
        let copy = World::new().await;
        assert_eq!(copy.load(dump, None, false).await.unwrap().read.jobs, found.len() as u64);
    }
}
