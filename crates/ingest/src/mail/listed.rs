//! The jobs of one outcome as JSON, in the form of today's reports, of a bounded size.

use serde_json::{Value, json};

/// What the list with the first jobs that have room is called when it is attached, under which key, and its largest
/// size in bytes. With the table of all jobs they still fit into a mail.
pub(crate) const FAILED: (&str, &str, usize) = ("failed.json", "failedJobs", 400 << 10);
pub(crate) const COMPLETED: (&str, &str, usize) = ("completed.json", "completedJobs", 200 << 10);

/// Jobs, as many as have room.
#[derive(Debug)]
pub(crate) struct JobsJson {
    key: &'static str,
    most_bytes: usize,
    jobs: String,
    left_out: u64,
}

impl JobsJson {
    pub(crate) fn new((_, key, most_bytes): (&str, &'static str, usize)) -> Self {
        Self { key, most_bytes, jobs: String::new(), left_out: 0 }
    }

    pub(crate) fn push(&mut self, job: &Value) {
        let text = job.to_string();
        if self.left_out > 0 || self.jobs.len() + text.len() > self.most_bytes {
            self.left_out += 1;
            return;
        }
        let before = if self.jobs.is_empty() { "\n" } else { ",\n" };
        self.jobs.push_str(before);
        self.jobs.push_str(&text);
    }

    /// The list, with more of the whole under other keys; `None` where there was no job.
    pub(crate) fn finish(self, more: &[(&str, Value)]) -> Option<String> {
        let Self { key, jobs, left_out, .. } = self;
        // Today's programs know no such keys.
        let omitted = (left_out > 0).then(|| ("omitted", json!(left_out)));
        let more = more.iter().cloned().chain(omitted).map(|(key, value)| format!(",\n\"{key}\": {value}"));
        let more: String = more.collect();
        (!jobs.is_empty() || left_out > 0).then(|| format!("{{\"{key}\": [{jobs}\n]{more}}}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded_and_counts_the_jobs_that_have_no_room() {
        assert_eq!(JobsJson::new(FAILED).finish(&[]), None);
        let mut list = JobsJson::new(("x.json", "failedJobs", 100));
        for number in 0..20 {
            list.push(&json!({ "message": format!("\"{number}\"") }));
        }
        let found: Value = serde_json::from_str(&list.finish(&[("copies", json!({"complete": 1}))]).unwrap()).unwrap();
        let jobs = found["failedJobs"].as_array().unwrap();
        assert_eq!(
            (jobs.len() as u64 + found["omitted"].as_u64().unwrap(), &jobs[1]["message"]),
            (20, &json!("\"1\""))
        );
        assert_eq!(found["copies"]["complete"], 1);
        assert!(jobs.len() > 2);
    }
}
