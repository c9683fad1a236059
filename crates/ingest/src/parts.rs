//! Deposits of more rows than a batch may have jobs: they become several batches, the parts of the deposit.
//!
//! The batch of the deposit itself is the first part, and has the first rows. Before it has any job, the batch daemon
//! makes a batch for each further part, whose UUID follows from that of the deposit and the number of the part. It has
//! the same manifest, and its submission says which part it is. From then on each of them is a batch as any other.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::spec::id_of;
use crate::spec::uuid_of;

/// How many jobs a batch has at most: its folders must stay listable, and its report below 1 MiB.
pub const MOST_JOBS: u64 = 40_000;

/// How many parts are looked for; the largest manifest has fewer.
const MOST_PARTS: u64 = 1_000;

/// The namespace of the UUIDs of further parts.
const PARTS: Uuid = Uuid::from_u128(0x71c4_0d2e_93b8_4a56_8f1e_2bd0_67a9_c53d);

/// The keys by which the submission of a further part differs from that of the deposit.
pub(crate) const KEYS: [&str; 5] = ["partOf", "part", "parts", "partRows", "manifestSHA256"];

/// Which part of a deposit a batch is that is not its first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The deposit, which is the batch of the first part: `bid-` and a UUID.
    pub of: String,
    /// The number of this part, from 2 on.
    pub number: u64,
    /// How many parts there are.
    pub count: u64,
    /// How many rows each part has but the last.
    pub rows: u64,
    /// The SHA-256 digest of the manifest, in hexadecimal.
    pub digest: String,
}

/// The UUID of a part of a deposit; the first one is the deposit's.
#[must_use]
pub fn uuid_of_part(deposit: Uuid, number: u64) -> Uuid {
    if number <= 1 {
        return deposit;
    }
    Uuid::new_v5(&PARTS, &[&deposit.as_bytes()[..], &number.to_be_bytes()].concat())
}

/// The number of a further part, by its UUID and that of the deposit; `None` where it is none of it.
#[must_use]
pub fn number_of(deposit: Uuid, part: Uuid) -> Option<u64> {
    (2..=MOST_PARTS).find(|number| uuid_of_part(deposit, *number) == part)
}

/// How many batches so many rows become.
#[must_use]
pub fn batches_of(rows: u64, most_jobs: u64) -> u64 {
    rows.div_ceil(most_jobs.max(1)).max(1)
}

impl Part {
    /// Which part a batch is by its submission and its own UUID; `None` for a first or only one. A submission is not
    /// believed that names a part whose UUID is another.
    #[must_use]
    pub fn of(submission: &Map<String, Value>, batch: Uuid) -> Option<Self> {
        let text = |key: &str| submission.get(key).and_then(Value::as_str);
        let number = |key: &str| text(key).and_then(|text| text.parse::<u64>().ok());
        let (of, digest) = (text("partOf")?.to_owned(), text("manifestSHA256")?.to_owned());
        let (this, count, rows) = (number("part")?, number("parts")?, number("partRows")?);
        let is_possible = this > 1 && this <= count && rows > 0 && rows.checked_mul(count).is_some();
        let is_its_own = uuid_of_part(uuid_of(&of, "bid-"), this) == batch;
        (is_possible && is_its_own).then_some(Self { of, number: this, count, rows, digest })
    }

    /// The first of its rows, from 0.
    #[must_use]
    pub fn first_row(&self) -> u64 {
        (self.number - 1) * self.rows
    }

    /// The submission of this part: that of the deposit, with what is its own.
    pub(crate) fn submission(&self, of_deposit: &Map<String, Value>) -> Map<String, Value> {
        let mut all = of_deposit.clone();
        let own = [
            ("batchID", id_of(uuid_of_part(uuid_of(&self.of, "bid-"), self.number))),
            ("partOf", self.of.clone()),
            ("part", self.number.to_string()),
            ("parts", self.count.to_string()),
            ("partRows", self.rows.to_string()),
            ("manifestSHA256", self.digest.clone()),
        ];
        all.extend(own.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_submission_and_its_uuid_together() {
        let deposit = Uuid::from_u128(7);
        let part = Part { of: id_of(deposit), number: 3, count: 4, rows: 10, digest: "ab".to_owned() };
        let submission = part.submission(&serde_json::from_str(r#"{"batchID":"bid-7","title":"T"}"#).unwrap());
        let uuid = uuid_of_part(deposit, 3);
        assert_eq!((submission["batchID"].as_str().unwrap(), submission["title"].as_str()), (&*id_of(uuid), Some("T")));
        assert_eq!((Part::of(&submission, uuid), part.first_row()), (Some(part), 20));
        // What a depositor may write into a submission of their own leads nowhere.
        assert_eq!(Part::of(&submission, deposit), None);
        assert_eq!((number_of(deposit, uuid), number_of(uuid, deposit)), (Some(3), None));
        for (key, wrong) in [("part", "2"), ("part", "1"), ("parts", "2"), ("partRows", "0"), ("partOf", "bid-8")] {
            let mut changed = submission.clone();
            changed.insert(key.to_owned(), wrong.into());
            assert_eq!(Part::of(&changed, uuid), None, "{key}");
        }
    }

    #[test]
    fn rows_become_as_few_batches_as_may_be() {
        let batches = [0, 1, 40_000, 40_001, 80_000, 80_001].map(|rows| batches_of(rows, MOST_JOBS));
        assert_eq!(batches, [1, 1, 1, 2, 2, 3]);
    }
}
