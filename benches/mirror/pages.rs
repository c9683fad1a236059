//! What each page and each list of the API costs under load, beside `/-/healthy`, and against a small queue.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::load::Load;
use crate::served::Served;
use crate::{connect, quantile, server};

const RATE: u32 = 500;
const REQUESTS: usize = 300;

/// What a page or a list may take, how much more than in the first queue, and how long a page may be.
const P99_LIMIT: Duration = Duration::from_millis(10);
const RATIO_LIMIT: f64 = 2.0;
const BYTES_LIMIT: usize = 100 << 10;

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
    /// p50 and p99.
    page: [Duration; 2],
    healthy: [Duration; 2],
    /// The most bytes that were sent.
    sent: usize,
    /// How many these are when they are not packed.
    bytes: usize,
    code: u16,
}

pub(crate) async fn run(sizes: &[usize]) -> anyhow::Result<()> {
    println!(
        "pages: request to last byte, packed as every browser asks, in turn with GET /-/healthy, at {RATE} transitions/s"
    );
    let batches = crate::fill::batches_of(crate::largest(sizes));
    println!("  p50 and p99 in ms; the ratio is of p50 to that of {} jobs; every tree has {batches} batches", sizes[0]);
    let mut small: HashMap<&str, Duration> = HashMap::new();
    for jobs in sizes {
        let server = server(*jobs).await?;
        let client = connect(&server).await?;
        // A page that lists batches, or what is wrong with them, has as much to show of the small tree.
        crate::fill::fill_batches(&client, *jobs, batches).await?;
        let served = Served::start(&server.connect_string(), &[]).await?;
        let load = Load::start(client, *jobs, 0, RATE);
        println!("  {jobs} jobs");
        for path in PATHS {
            let cost = measure(&served, path).await?;
            if cost.code != 200 {
                println!("    {:>4} {path}", cost.code);
                continue;
            }
            let first = *small.entry(path).or_insert(cost.page[0]);
            let ratio = cost.page[0].as_secs_f64() / first.as_secs_f64();
            let [[p50, p99], [healthy_p50, healthy_p99]] =
                [cost.page, cost.healthy].map(|times| times.map(|time| time.as_secs_f64() * 1e3));
            let is_large = !path.starts_with("/api/") && cost.bytes > BYTES_LIMIT;
            println!(
                "    p50 {p50:6.2} (healthy {healthy_p50:5.2})  p99 {p99:6.2} (healthy {healthy_p99:5.2})  ratio {ratio:4.2}  \
                 {:>6} bytes sent, plainly {:>6}  {path}{}{}{}",
                cost.sent,
                cost.bytes,
                if cost.page[1] > P99_LIMIT { "  OVER at p99" } else { "" },
                if ratio > RATIO_LIMIT { "  OVER as a ratio" } else { "" },
                if is_large { "  OVER in bytes" } else { "" }
            );
        }
        println!("    {} transitions", load.stop().await?);
    }
    Ok(())
}

async fn measure(served: &Served, path: &'static str) -> anyhow::Result<Cost> {
    let (mut page, mut healthy) = (Vec::new(), Vec::new());
    let path = filled(served, path).await?;
    let (mut sent, mut code) = (0, 200);
    for round in 0..REQUESTS {
        healthy.push(time(served.get("/-/healthy")).await?.0);
        let (duration, (status, size, _)) = time(served.packed(&another(&path, round), "*/*")).await?;
        page.push(duration);
        (sent, code) = (sent.max(size), status);
        if code != 200 {
            break;
        }
    }
    // After the others, so that no search is known from this one.
    let bytes = served.get(&another(&path, 0)).await?.1.len();
    let both = |times: &mut Vec<Duration>| [quantile(times, 0.5), quantile(times, 0.99)];
    Ok(Cost { page: both(&mut page), healthy: both(&mut healthy), sent, bytes, code })
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

async fn time<T>(answer: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<(Duration, T)> {
    let started = Instant::now();
    let answer = answer.await?;
    Ok((started.elapsed(), answer))
}
