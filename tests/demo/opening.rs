//! The initial queue of a demo.

use std::time::Duration;

use queuekeeper_queue::state::{JobState, State as _};
use serde_json::Value;

use super::program::Demo;
use queuekeeper_testkit::wait::eventually_some;

const LIMIT: Duration = Duration::from_mins(10);

async fn get(demo: &Demo, path: &str) -> Option<Value> {
    let answer = reqwest::get(format!("{}/api/v1/{path}", demo.web)).await.ok()?;
    if answer.status() != 200 {
        return None;
    }
    serde_json::from_str(&answer.text().await.ok()?).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_initial_jobs_do_not_count_as_throughput() {
    // So slow that few jobs are completed in ten seconds.
    let demo = Demo::start(&["--jobs", "1000", "--rate", "0.5"]);
    let overview = eventually_some(LIMIT, "the queue is filled", async || {
        get(&demo, "overview").await.filter(|overview| overview["jobs"].as_u64() >= Some(1_000))
    })
    .await;
    let metrics = demo.metrics().await;
    assert!(metrics.jobs("completed") > 300.0, "many are done already");
    let mut seen = 0.0;
    for from in JobState::ALL {
        // Of jobs that were submitted since, many may have come to where they wait for a worker.
        for to in [JobState::Completed, JobState::Failed, JobState::Held, JobState::Deleted] {
            seen += metrics.transitions((from.label(), to.label()));
        }
    }
    // The machine may be slow; but the initial jobs are hundreds.
    assert!(seen < 50.0, "{seen} transitions were seen");
    for figure in ["completed_1h", "failed_1h"] {
        assert!(overview[figure].as_u64().unwrap() < 50, "{figure} of {overview}");
    }
    // The first figures are recorded a moment after the queue is filled.
    let points = eventually_some(LIMIT, "there is a history", async || {
        let history = get(&demo, "history?points=2160").await?;
        let points: Vec<_> = history["points"].as_array()?.iter().filter(|it| !it.is_null()).cloned().collect();
        Some(points).filter(|points| !points.is_empty())
    })
    .await;
    for point in points {
        // One job in a step of ten seconds is 360 an hour; hundreds would be more than 100,000.
        assert!(point["completed_per_hour"].as_f64().unwrap() < 18_000.0, "{point}");
    }
}
