//! One episode after the other, and what came of them.

#![expect(clippy::print_stdout, reason = "the report is what the long form is for")]

use std::collections::BTreeMap;
use std::time::Duration;

use rand::seq::SliceRandom;
use serde_json::Value;
use tokio::time::Instant;

use super::episode::Episode;
use super::world::{Recovery, World, number};
use crate::support::prometheus::{Alerts, Prometheus};
use queuekeeper_testkit::proxy::Proxy;

/// Within which the mirror should say what the tree says.
const GOAL: Duration = Duration::from_secs(2);

/// How many jobs move after each episode, to see that events are heard again.
const MOVED: usize = 10;

/// Plays every episode of a part once in a random order, and goes on for as long as is configured. A part is every so
/// many episodes of all, from one on.
async fn survives(members: usize, (first, every): (usize, usize)) {
    let seed = number("QUEUEKEEPER_CHAOS_SEED").unwrap_or_else(rand::random);
    let minutes = number("QUEUEKEEPER_CHAOS_MINUTES").unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(minutes * 60);
    println!("{members} server(s), seed {seed}");
    let mut world = World::start(members, seed).await;
    let prometheus = (minutes > 0).then(|| {
        world.is_visited();
        Prometheus::start(&world.program.address(), Alerts::Patient)
    });
    let mut recoveries: BTreeMap<Episode, Vec<Recovery>> = BTreeMap::new();
    loop {
        let all = Episode::ALL.into_iter().filter(|kind| kind.is_for(members));
        let mut episodes: Vec<Episode> = all.skip(first).step_by(every).collect();
        episodes.shuffle(&mut world.rng);
        for episode in episodes {
            let name = format!("{episode:?} (seed {seed})");
            println!("  {name}");
            let looks = world.looks();
            let over = episode.happens(&mut world).await;
            let recovery = world.comes_right(&name, over).await;
            world.cluster.proxies.iter().for_each(Proxy::restore);
            let taken = recoveries.entry(episode).or_default();
            taken.append(&mut world.early);
            taken.push(recovery);
            if world.daemons.is_crowded() {
                world.daemons.clear().await;
                let recovery = world.comes_right(&format!("the end of {name}"), Instant::now()).await;
                recoveries.entry(episode).or_default().push(recovery);
            }
            world.daemons.work(MOVED).await;
            world.comes_right(&format!("{name}, and more work"), Instant::now()).await;
            world.holds_no_more(&name).await;
            world.is_looked_at_after(looks).await;
        }
        if Instant::now() >= until {
            break;
        }
    }
    report(&recoveries);
    println!("  {} looks at the program meanwhile: no fault, no age that nothing has", world.looks());
    if let Some(prometheus) = prometheus {
        nothing_was_raised(&prometheus, minutes).await;
    }
    println!("  at first {:?}", world.base());
    println!("  at last  {:?}", world.holds_no_more("all").await);
}

/// However often all was lost and found again, it was never for as long as an alert waits.
async fn nothing_was_raised(prometheus: &Prometheus, minutes: u64) {
    let ask = async |query: String| {
        let answer = prometheus.ask("query", &[("query", &query)]).await.expect("Prometheus answers");
        answer["result"].as_array().expect("a list").clone()
    };
    let time = format!("{}m", minutes + 10);
    let scraped = ask(format!("count_over_time(queuekeeper_mirror_synced[{time}])")).await;
    let scrapes: f64 = scraped[0]["value"][1].as_str().expect("a number").parse().expect("a number");
    assert!(scrapes > 20.0 * minutes as f64, "Prometheus has scraped all the time, not {scrapes} times");
    let raised = ask(format!(r#"max by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{time}]))"#)).await;
    let waited = ask(format!("max by (alertname) (max_over_time(ALERTS[{time}]))")).await;
    let names = |alerts: &[Value]| -> Vec<String> {
        alerts.iter().map(|alert| alert["metric"]["alertname"].to_string()).collect()
    };
    assert!(raised.is_empty(), "these alerts were raised: {:?}", names(&raised));
    println!("  {scrapes} scrapes; no alert was raised; these waited, and came to nothing: {:?}", names(&waited));
}

fn report(recoveries: &BTreeMap<Episode, Vec<Recovery>>) {
    let mut all = 0;
    let mut late = 0;
    println!("  {:<16} {:>8}  seconds until right: median, most (mirror; program)", "episode", "times");
    for (episode, taken) in recoveries {
        let of = |take: fn(&Recovery) -> Duration| {
            let mut times: Vec<Duration> = taken.iter().map(take).collect();
            times.sort_unstable();
            (times[times.len() / 2].as_secs_f64(), times[times.len() - 1].as_secs_f64())
        };
        let (mirror, program) = (of(|taken| taken.mirror), of(|taken| taken.program));
        all += taken.len();
        late += taken.iter().filter(|taken| taken.mirror.max(taken.program) > GOAL).count();
        let name = format!("{episode:?}");
        println!("  {name:<16} {:>8}  {:.2} {:.2}; {:.2} {:.2}", taken.len(), mirror.0, mirror.1, program.0, program.1);
    }
    println!("  {all} episodes, no difference; {late} took longer than {GOAL:?}");
}

// Three servers take longer for each episode than one does: the two halves run side by side.

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_and_all_that_may_happen_to_it() {
    survives(1, (0, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_and_half_of_what_may_happen_to_them() {
    survives(3, (0, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_and_the_other_half() {
    survives(3, (1, 2)).await;
}
