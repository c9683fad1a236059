//! The submissions with the jobs of their manifests, all following from the seed.

use jiff::Timestamp;
use serde_json::json;

use super::catalogue::{COLLECTIONS, Collection, FILMS, HELD_IN_TURN, MIB};
use super::details;
use super::dice::Dice;
use super::findings::Findings;
use queuekeeper_queue::NewJob;
use queuekeeper_queue::id::Priority;

/// A batch as its depositor submits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Submission {
    /// The UUID of the depositor, with its prefix `bid-`.
    pub(super) uuid: String,
    /// Its collection's mnemonic.
    pub(super) collection: &'static str,
    title: String,
    filename: String,
    submitter: &'static str,
    creator: &'static str,
    is_update: bool,
    priority: Priority,
    /// The objects of its manifest.
    pub(super) objects: Vec<Object>,
}

/// An object of a manifest, which becomes a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    uuid: String,
    filename: String,
    title: String,
    /// The depositor's name for it.
    pub(super) local_id: String,
    /// The ARK of the object to be updated; `None` for a new one, for which one will be minted.
    updates: Option<String>,
    /// Its size.
    pub(super) bytes: u64,
}

/// The kind of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmissionKind {
    /// From any depositor.
    Ordinary {
        /// The maximum number of objects.
        most: usize,
    },
    /// For one of the collections that an operator holds in turn.
    OfHeld {
        /// Its index, from 0.
        turn: usize,
        /// The maximum number of objects.
        most: usize,
    },
    /// A few urgent objects, which are so large that they fill working storage.
    Large {
        /// How many.
        objects: usize,
    },
}

/// How many objects fill it: two waves of concurrent ones, and a few more.
pub(super) const LARGE_OBJECTS: usize = 10;

/// The submissions of a demo, one after the other.
#[derive(Debug)]
pub(super) struct Scenario {
    dice: Dice,
}

impl Scenario {
    /// The submissions for a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed, "submissions") }
    }

    /// The next submission.
    pub(super) fn next(&mut self, kind: SubmissionKind) -> Submission {
        let dice = &mut self.dice;
        let weights: Vec<(u32, &Collection)> = COLLECTIONS.iter().map(|each| (each.weight, each)).collect();
        let (collection, objects) = match kind {
            SubmissionKind::Ordinary { most } => (dice.weighted(&weights), batch_size(dice, most)),
            SubmissionKind::OfHeld { turn, most } => {
                let mnemonic = HELD_IN_TURN[turn % HELD_IN_TURN.len()];
                let held = COLLECTIONS.iter().find(|each| each.mnemonic == mnemonic);
                (held.expect("the collections held in turn are in the catalogue"), batch_size(dice, most.min(12)))
            }
            SubmissionKind::Large { objects } => (&FILMS, objects),
        };
        let priority = match kind {
            SubmissionKind::Large { .. } => 1,
            SubmissionKind::Ordinary { .. } | SubmissionKind::OfHeld { .. } => {
                dice.weighted(&[(8, 5), (2, 3), (1, 2), (3, 7), (2, 10), (1, 25)])
            }
        };
        let number = dice.between(1_000, 999_000);
        let title = dice.pick(collection.titles);
        let is_update = dice.happens(0.15);
        let mut objects: Vec<Object> = (0..objects).map(|index| object(dice, collection, number, index)).collect();
        if is_update {
            for object in &mut objects {
                object.updates = Some(format!("ark:/99999/{}{}", collection.shoulder, dice.ark_blade()));
            }
        }
        let batch_title = if objects.len() == 1 {
            objects[0].title.clone()
        } else {
            format!("{title} {number} and {} more", objects.len() - 1)
        };
        let (submitter, creator) = (*dice.pick(collection.submitters), *dice.pick(collection.creators));
        Submission {
            uuid: format!("bid-{}", dice.uuid()),
            collection: collection.mnemonic,
            title: batch_title,
            filename: format!("{}_{number}.checkm", collection.prefix),
            submitter,
            creator,
            is_update,
            priority: Priority::new(priority).expect("the priorities drawn are within 0..=99"),
            objects,
        }
    }
}

/// The number of objects of a batch: most have few, and few have very many.
fn batch_size(dice: &mut Dice, most: usize) -> usize {
    let (from, to) = dice.weighted(&[(40, (1, 3)), (38, (4, 30)), (18, (31, 120)), (4, (121, 400))]);
    usize::try_from(dice.between(from, to)).unwrap_or(most).clamp(1, most.max(1))
}

fn object(dice: &mut Dice, collection: &Collection, batch: u64, index: usize) -> Object {
    let name = format!("{}_{batch}_{:04}", collection.prefix, index + 1);
    let (least, most) = collection.sizes;
    Object {
        uuid: format!("jid-{}", dice.uuid()),
        filename: format!("{name}.{}", collection.ending),
        title: format!("{} {batch}-{}", dice.pick(collection.titles), index + 1),
        local_id: name.replace('_', "-"),
        updates: None,
        bytes: dice.bytes(least, most),
    }
}

impl Submission {
    /// The data of the batch's `submission`, submitted at `now`.
    pub(super) fn data(&self, now: Timestamp) -> Vec<u8> {
        // The line of a manifest for one object has about 300 bytes.
        let manifest_bytes = 180 + 300 * self.objects.len();
        json!({
            "batchID": self.uuid,
            "profile": self.collection,
            "type": if self.objects.len() == 1 { "container" } else { "container-batch-manifest" },
            "size": manifest_bytes.to_string(),
            "filename": if self.objects.len() == 1 { &self.objects[0].filename } else { &self.filename },
            "update": self.is_update,
            "submitter": self.submitter,
            "responseForm": "xml",
            "creator": self.creator,
            "title": self.title,
            "date": now.strftime("%Y-%m-%d").to_string(),
            "submissionDate": now.strftime("%a %b %d %H:%M:%S UTC %Y").to_string(),
        })
        .to_string()
        .into_bytes()
    }

    /// The priority of its jobs.
    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    /// The results of the work on one of its objects, and the object's file name; `ark` is the one that would be
    /// minted.
    pub(super) fn findings<'a>(&'a self, object: &'a Object, minted: &'a str) -> (Findings<'a>, &'a str) {
        let ark = object.updates.as_deref().unwrap_or(minted);
        let local_ids = std::slice::from_ref(&object.local_id);
        let findings = Findings { bytes: object.bytes, ark, local_ids, title: &object.title, creator: self.creator };
        (findings, &object.filename)
    }

    /// The ARK that would be minted for one of its objects.
    pub(super) fn minted(&self, seed: u64, object: &Object) -> String {
        details::minted(seed, &object.filename, details::shoulder(self.collection))
    }

    /// Its jobs as the batch daemon creates them from the manifest at `now`.
    pub(super) fn jobs(&self, now: Timestamp) -> Vec<NewJob> {
        self.objects.iter().map(|object| self.job(object, now)).collect()
    }

    fn job(&self, object: &Object, now: Timestamp) -> NewJob {
        let configuration = json!({
            "batchID": self.uuid,
            "jobID": object.uuid,
            "profile": self.collection,
            "type": "container",
            "submitter": self.submitter,
            "submissionDate": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "filename": object.filename,
            "size": object.bytes.to_string(),
            "title": object.title,
            "creator": self.creator,
            "objectID": object.updates.as_deref().unwrap_or_default(),
            "localID": object.local_id,
            "update": self.is_update,
        });
        NewJob::new(configuration.to_string()).with_priority(self.priority)
    }
}

/// The data of the token of a new access request.
pub(super) fn token(dice: &mut Dice, is_large: bool, now: Timestamp) -> Vec<u8> {
    let bytes = if is_large { dice.bytes(600 * MIB, 300 * 1024 * MIB) } else { dice.bytes(MIB, 600 * MIB) };
    json!({
        "token": dice.uuid(),
        "delivery-node": dice.weighted(&[(3, 7001), (1, 7002)]),
        "cloud-content-byte": bytes,
        "status": 202,
        "url": "",
        "anticipated-availability-time": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::TIB;
    use super::*;
    use queuekeeper_queue::record::{Configuration, Submission as Read};

    fn draw(seed: u64) -> Vec<Submission> {
        let mut scenario = Scenario::new(seed);
        let kinds = [
            SubmissionKind::Ordinary { most: 300 },
            SubmissionKind::Large { objects: 10 },
            SubmissionKind::OfHeld { turn: 1, most: 300 },
        ];
        (0..60).map(|index| scenario.next(kinds[index % kinds.len()])).collect()
    }

    #[test]
    fn the_same_seed_submits_the_same_bytes_and_another_seed_others() {
        let now = Timestamp::from_second(1_772_475_331).unwrap();
        let bytes = |seed| -> Vec<Vec<u8>> {
            draw(seed)
                .iter()
                .flat_map(|each| {
                    let jobs = each.jobs(now).into_iter().map(|job| job.configuration);
                    std::iter::once(each.data(now)).chain(jobs).collect::<Vec<_>>()
                })
                .collect()
        };
        assert_eq!(bytes(7), bytes(7));
        assert_ne!(bytes(7), bytes(8));
    }

    #[test]
    fn a_submission_is_parsed_as_intended() {
        let now = Timestamp::from_second(1_772_475_331).unwrap();
        for submission in draw(1) {
            let data = submission.data(now);
            let read = Read::decode(&data);
            assert_eq!(read.malformed, None);
            assert_eq!((&*read.value.uuid, &*read.value.collection), (&*submission.uuid, submission.collection));
            assert_eq!(queuekeeper_queue::time::read(&read.value.submission_date), Some(now));
            for (job, object) in submission.jobs(now).iter().zip(&submission.objects) {
                let read = Configuration::decode(&job.configuration);
                assert_eq!(read.malformed, None);
                assert_eq!(read.value.local_ids, [object.local_id.as_str()]);
                assert_eq!(queuekeeper_queue::time::read(&read.value.submission_date), Some(now));
            }
        }
    }

    #[test]
    fn batches_have_mixed_sizes_and_a_large_one_does_not_fit_at_once() {
        let sizes: Vec<usize> = draw(2).iter().step_by(3).map(|each| each.objects.len()).collect();
        assert!(sizes.iter().any(|size| *size <= 3) && sizes.iter().any(|size| *size > 30), "{sizes:?}");
        let large = Scenario::new(3).next(SubmissionKind::Large { objects: LARGE_OBJECTS });
        assert!(large.objects.iter().map(|object| object.bytes).sum::<u64>() > 3 * TIB);
    }
}
