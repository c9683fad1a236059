//! What each page and each list of the API costs under load, against `/-/healthy`, and against a small queue.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::served::Served;
use crate::{connect, quantile, server};

const RATE: u32 = 500;
const REQUESTS: usize = 300;

/// Pages and lists. What stands in braces is another text each time, so that nothing is known of it from before.
const PATHS: [&str; 33] = [
    "/",
    "/jobs",
    "/api/v1/jobs?limit=500",
    "/jobs?state=failed",
    "/jobs?state=pending&locked=false",
    "/jobs?collection=merritt_demo_content",
    "/jobs?batch=bid0000000000",
    "/jobs?min_age=1s&min_retries=0",
    "/jobs?min_retries=1",
    "/jobs?fault=retries_exhausted",
    "/jobs?group=GROUP",
    "/jobs?sort=id&direction=desc",
    "/jobs?sort=priority",
    "/jobs?sort=space_needed&direction=desc",
    "/jobs?sort=retries&direction=desc",
    "/jobs?sort=space_needed&cursor=CURSOR",
    "/jobs?text=rbn_000042.zip",
    "/jobs?text=rbn",
    "/jobs?text=nothing+has+this",
    "/jobs?text={rare}",
    "/jobs?text={common}",
    "/jobs?text=404&state=failed",
    "/failures",
    "/batches",
    "/access",
    "/locks",
    "/faults",
    "/tree",
    "/jobs/jid0000000042",
    "/api/v1/jobs",
    "/api/v1/jobs?text=rbn&state=pending&sort=space_needed",
    "/api/v1/failures",
    "/api/v1/overview",
];

/// One path at one size.
struct Cost {
    page: [Duration; 2],
    healthy: [Duration; 2],
    bytes: usize,
    code: u16,
}

pub(crate) async fn run(largest: usize) -> anyhow::Result<()> {
    let sizes = [2_000, largest];
    println!("pages: first byte to last, in turn with GET /-/healthy, at {RATE} transitions/s");
    println!("  p50 and p99 beyond /-/healthy in ms; the ratio is of the whole p50 to that of {} jobs", sizes[0]);
    println!("  both trees have {} batches", crate::fill::batches_of(largest));
    let mut small: HashMap<&str, Duration> = HashMap::new();
    for jobs in sizes {
        let server = server().await?;
        let client = connect(&server).await?;
        // A page that lists batches, or what is wrong with them, has as much to show of the small tree.
        crate::fill::fill_batches(&client, jobs, crate::fill::batches_of(largest)).await?;
        let served = Served::start(&server.connect_string(), &[]).await?;
        let load = Load::start(client, jobs, 0, RATE);
        println!("  {jobs} jobs");
        for path in PATHS {
            let cost = measure(&served, path).await?;
            if cost.code != 200 {
                println!("    {:>4} {path}", cost.code);
                continue;
            }
            let beyond = |at: usize| cost.page[at].as_secs_f64() * 1e3 - cost.healthy[at].as_secs_f64() * 1e3;
            let first = *small.entry(path).or_insert(cost.page[0]);
            let ratio = cost.page[0].as_secs_f64() / first.as_secs_f64();
            let is_large = !path.starts_with("/api/") && cost.bytes > 100 * 1024;
            let is_over = beyond(0) > 5.0 || beyond(1) > 20.0 || ratio > 2.0 || is_large;
            println!(
                "    p50 +{:5.2}  p99 +{:6.2}  ratio {ratio:4.2}  {:>6} bytes  {path}{}",
                beyond(0),
                beyond(1),
                cost.bytes,
                if is_over { "  OVER" } else { "" }
            );
        }
        println!("    {} transitions", load.stop().await?);
    }
    Ok(())
}

async fn measure(served: &Served, path: &'static str) -> anyhow::Result<Cost> {
    let (mut page, mut healthy) = (Vec::new(), Vec::new());
    let path = filled(served, path).await?;
    let (mut bytes, mut code) = (0, 200);
    for round in 0..REQUESTS {
        healthy.push(time(served, "/-/healthy").await?.0);
        let (duration, size, status) = time(served, &another(&path, round)).await?;
        page.push(duration);
        (bytes, code) = (bytes.max(size), status);
        if code != 200 {
            break;
        }
    }
    let both = |times: &mut Vec<Duration>| [quantile(times, 0.5), quantile(times, 0.99)];
    Ok(Cost { page: both(&mut page), healthy: both(&mut healthy), bytes, code })
}

/// The path with what only the server knows.
async fn filled(served: &Served, path: &str) -> anyhow::Result<String> {
    let first = |json: &str, name: &str| {
        let at = json.split(&format!("\"{name}\":\"")).nth(1)?;
        Some(at.split('"').next()?.to_owned())
    };
    let mut path = path.to_owned();
    if path.contains("GROUP") {
        let group = first(&served.get("/api/v1/failures").await?.1, "group").unwrap_or_default();
        path = path.replace("GROUP", &group);
    }
    if path.contains("CURSOR") {
        let cursor = first(&served.get("/api/v1/jobs?sort=space_needed").await?.1, "next").unwrap_or_default();
        path = path.replace("CURSOR", &cursor);
    }
    Ok(path)
}

/// The path with texts that have not been looked for yet.
fn another(path: &str, round: usize) -> String {
    // What every title has, from each of its letters on and of many lengths.
    const TITLE: &str = "robbins+papers,+box+";
    let (from, length) = (round % 16, 2 + round / 16 % 18);
    let common: String = TITLE.chars().cycle().skip(from).take(length.min(TITLE.len() - from)).collect();
    path.replace("{rare}", &format!("rbn_{round:06}.zip")).replace("{common}", &common)
}

async fn time(served: &Served, path: &str) -> anyhow::Result<(Duration, usize, u16)> {
    let started = Instant::now();
    let (status, body) = served.get(path).await?;
    Ok((started.elapsed(), body.len(), status))
}
