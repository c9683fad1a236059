//! What was seen, as a table that a picture can be drawn of, and whether it is flat.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use super::Look;
use crate::quantile;

/// How much more of something the last quarter may have than the second. Delays are also those of whatever else the
/// machine does.
const FLAT: f64 = 1.15;
const DELAYS_FLAT: f64 = 1.5;

/// The figures of a sample that should not grow, with the limit of each.
const LIMITS: [(&str, f64); 6] = [
    ("resident_mib", FLAT),
    ("descriptors", FLAT),
    ("threads", FLAT),
    ("tasks", FLAT),
    ("delay_p50_ms", DELAYS_FLAT),
    ("api_p50_ms", DELAYS_FLAT),
];

/// From how many seconds on the limits are for something: a shorter run is still warming up.
const LONG_ENOUGH: f64 = 20.0 * 60.0;

const COLUMNS: [&str; 12] = [
    "seconds",
    "resident_mib",
    "descriptors",
    "threads",
    "tasks",
    "core_percent",
    "delay_p50_ms",
    "delay_most_ms",
    "api_p50_ms",
    "api_p99_ms",
    "scrape_p50_ms",
    "scrape_most_ms",
];

/// One row: the figures of [`COLUMNS`], and the processor time so far.
pub(super) struct Sample {
    row: [f64; COLUMNS.len()],
    cpu: f64,
}

impl Sample {
    pub(super) fn new(
        at: Duration,
        look: &Look,
        delays: &mut [Duration],
        api: &mut [Duration],
        scrapes: &mut [Duration],
    ) -> Self {
        let ms = |times: &mut [Duration], share| match times {
            [] => f64::NAN,
            times => quantile(times, share).as_secs_f64() * 1e3,
        };
        let row = [
            at.as_secs_f64(),
            look.resident / 1_048_576.0,
            look.descriptors,
            look.threads,
            look.tasks,
            f64::NAN,
            ms(delays, 0.5),
            ms(delays, 1.0),
            ms(api, 0.5),
            ms(api, 0.99),
            ms(scrapes, 0.5),
            ms(scrapes, 1.0),
        ];
        Self { row, cpu: look.cpu }
    }
}

/// The rows so far, in a file and here.
pub(super) struct Record {
    path: PathBuf,
    file: File,
    rows: Vec<Sample>,
}

impl Record {
    /// Begins `endurance.tsv` in the folder of what is built.
    pub(super) fn create() -> anyhow::Result<Self> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("endurance.tsv");
        let mut file = File::create(&path)?;
        writeln!(file, "{}", COLUMNS.join("\t"))?;
        Ok(Self { path, file, rows: Vec::new() })
    }

    pub(super) fn add(&mut self, mut sample: Sample) -> anyhow::Result<()> {
        if let Some(last) = self.rows.last() {
            sample.row[5] = (sample.cpu - last.cpu) / (sample.row[0] - last.row[0]) * 100.0;
        }
        let row: Vec<String> = sample.row.iter().map(|value| format!("{value:.3}")).collect();
        writeln!(self.file, "{}", row.join("\t"))?;
        self.rows.push(sample);
        Ok(())
    }

    /// Says how the last quarter differs from the second, as the first one warms everything up, and gives what grew
    /// beyond its limit in a run that is long enough for them.
    pub(super) fn finish(self, before: &Look, after: &Look) -> anyhow::Result<Vec<String>> {
        let quarter = self.rows.len() / 4;
        anyhow::ensure!(quarter > 0, "too short to be compared");
        let is_long = self.rows.last().is_some_and(|sample| sample.row[0] >= LONG_ENOUGH);
        let mut grown = Vec::new();
        println!("  medians of the second and the last quarter, and the most:");
        for (name, limit) in LIMITS {
            let at = COLUMNS.iter().position(|column| *column == name).expect("it is a column");
            let of = |rows: &[Sample]| {
                let mut values: Vec<f64> = rows.iter().map(|sample| sample.row[at]).filter(|v| !v.is_nan()).collect();
                values.sort_by(f64::total_cmp);
                (values[values.len() / 2], values[values.len() - 1])
            };
            let (second, last) = (of(&self.rows[quarter..2 * quarter]).0, of(&self.rows[3 * quarter..]).0);
            let most = of(&self.rows).1;
            let ratio = last / second;
            println!("  {name:>14}: {second:>8.1} {last:>8.1}, ratio {ratio:.2} of {limit}; most {most:.1}");
            // What is no number is not flat either.
            let is_flat = ratio < limit;
            if is_long && !is_flat {
                grown.push(format!("{name} by {ratio:.2}, of which {limit} is the limit"));
            }
        }
        if !is_long {
            println!("  a run of less than {:.0} minutes is not held to these limits", LONG_ENOUGH / 60.0);
        }
        println!(
            "  before and after: {:.0} and {:.0} MiB, {} and {} descriptors, {} and {} threads, {} and {} tasks",
            before.resident / 1_048_576.0,
            after.resident / 1_048_576.0,
            before.descriptors,
            after.descriptors,
            before.threads,
            after.threads,
            before.tasks,
            after.tasks
        );
        println!(
            "  every sample: {}; as a picture: benches/mirror/endurance/draw THAT.tsv PICTURE.svg",
            self.path.display()
        );
        Ok(grown)
    }
}
