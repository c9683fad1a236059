//! What the program says of the queue and of itself: one answer of `/metrics`.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeMap;

use super::daemons::Steps;

/// What the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holds {
    pub(super) descriptors: u64,
    pub(super) tasks: u64,
    pub(super) threads: u64,
    pub(super) resident_bytes: u64,
}

impl Holds {
    /// Of each thing, what there is more of.
    pub(super) fn or_more(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.max(other.descriptors),
            tasks: self.tasks.max(other.tasks),
            threads: self.threads.max(other.threads),
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
        }
    }
}

/// Every sample of an exposition by name and labels, all as written in it.
pub(super) struct Samples(BTreeMap<String, f64>);

impl Samples {
    pub(super) fn new(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
        Self(samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect())
    }

    /// A sample as it is.
    pub(super) fn get(&self, name: &str) -> f64 {
        *self.0.get(name).unwrap_or_else(|| panic!("there is no sample {name}"))
    }

    /// A sample that is a count.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
    pub(super) fn count(&self, name: &str) -> u64 {
        *self.0.get(name).unwrap_or_else(|| panic!("there is no sample {name}")) as u64
    }

    /// Labels and values of all samples of a metric that are not 0.
    pub(super) fn all<'s>(&'s self, metric: &'s str) -> impl Iterator<Item = (&'s str, u64)> {
        self.0.iter().filter(|(_, value)| **value != 0.0).filter_map(move |(name, value)| {
            let labels = name.strip_prefix(metric)?.strip_prefix('{')?.strip_suffix('}')?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "these are counts")]
            Some((labels, *value as u64))
        })
    }

    /// The counted steps of jobs, as `from->to`.
    pub(super) fn steps(&self) -> Steps {
        let steps = self.all("merritt_job_transitions_total").map(|(labels, count)| {
            let (from, to) = labels.split_once(',').unwrap();
            let value = |label: &str| label.split('"').nth(1).unwrap().to_owned();
            (format!("{}->{}", value(from), value(to)), count)
        });
        steps.collect()
    }

    pub(super) fn holds(&self) -> Holds {
        Holds {
            descriptors: self.count("process_open_fds"),
            tasks: self.count("queuekeeper_tasks"),
            threads: self.count("process_threads"),
            resident_bytes: self.count("process_resident_memory_bytes"),
        }
    }

    /// What is said of healthy jobs that were all made moments ago, and is not so.
    pub(super) fn untrue(&self) -> Option<String> {
        let faults: Vec<_> = self.all("merritt_faults").collect();
        if !faults.is_empty() {
            return Some(format!("there is no fault: {faults:?}"));
        }
        let old: Vec<_> = self.all("merritt_jobs_by_age").filter(|(labels, _)| !is_young(labels)).collect();
        (!old.is_empty()).then(|| format!("no job is that old: {old:?}"))
    }
}

fn is_young(labels: &str) -> bool {
    ["1m", "10m", "1h"].iter().any(|age| labels.contains(&format!(r#"age="{age}""#)))
}
