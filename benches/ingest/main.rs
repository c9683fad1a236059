//! What the daemons reach, as ratios of one run: `cargo bench --bench ingest -- [NAME ..] [--files N] [--rows N]
//! [--size BYTES]`, where NAME is `one`, `small`, `large`, `expansion` or `space`.
//!
//! ZooKeeper forces each transaction to disk, as in production. Content lies in `BENCH_DIR`, a temporary directory by
//! default; `large` needs three times its size there, and its size in memory. Needs `curl`, `sha256sum`, `sha512sum`
//! and `tee`.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod delays;
mod expansion;
mod large;
mod one;
mod small;
mod space;
mod world;

use anyhow::Context as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut names, mut files, mut rows, mut size) = (Vec::new(), 2_000, 40_000, 2 << 30);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> anyhow::Result<usize> {
            let number = arguments.next().with_context(|| format!("{argument} takes a number"))?;
            number.parse().with_context(|| format!("{argument} {number}"))
        };
        match argument.as_str() {
            "--bench" => {}
            "--files" => files = number()?,
            "--rows" => rows = number()?,
            "--size" => size = number()?,
            _ => names.push(argument),
        }
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if wanted("one") {
        one::run().await?;
    }
    if wanted("small") {
        small::run(files).await?;
    }
    if wanted("large") {
        large::run(size).await?;
    }
    if wanted("expansion") {
        expansion::run(rows).await?;
    }
    if wanted("space") {
        space::run().await?;
    }
    Ok(())
}

/// The value below which that share of the values lie.
fn quantile<T: Ord + Copy>(values: &mut [T], share: f64) -> T {
    values.sort_unstable();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the share is between 0 and 1")]
    let at = ((values.len() - 1) as f64 * share).round() as usize;
    values[at]
}
