//! Random changes to a tree: by daemons that do one write after the other, by transactions, and by no rules.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::grammar::{JOB_NODES, Machine, OUTCOMES};
use super::values::DATES;
use super::writes::{Write, new_batch, new_job, status};

/// Few of each, so that they meet again and again.
const JOBS: u32 = 30;
const BATCHES: u32 = 5;
const REQUESTS: u32 = 4;

/// A source of random writes.
pub(crate) struct Chaos {
    rng: StdRng,
}

impl Chaos {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed) }
    }

    pub(crate) fn one_in(&mut self, many: u32) -> bool {
        self.rng.random_ratio(1, many)
    }

    fn below(&mut self, end: u32) -> u32 {
        self.rng.random_range(0..end)
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices.choose(&mut self.rng).copied().unwrap()
    }

    fn job(&mut self) -> String {
        format!("jid{:010}", self.below(JOBS))
    }

    fn batch(&mut self) -> String {
        format!("bid{:010}", self.below(BATCHES))
    }

    fn request(&mut self) -> String {
        let queue = self.pick(&["small", "large"]);
        format!("/access/{queue}/qid{:010}", self.below(REQUESTS))
    }

    fn folder(&mut self) -> &'static str {
        let known = Machine::Job.states().choose(&mut self.rng).unwrap().1;
        if self.one_in(12) { "teleporting" } else { known }
    }

    fn outcome(&mut self) -> &'static str {
        OUTCOMES.choose(&mut self.rng).unwrap()
    }

    fn entry(&mut self) -> String {
        let (folder, job) = (self.folder(), self.job());
        let priority = self.pick(&["05", "05", "05", "00", "99", "100", "-1"]);
        format!("/jobs/states/{folder}/{priority}-{job}")
    }

    fn reference(&mut self) -> String {
        let (batch, outcome, job) = (self.batch(), self.outcome(), self.job());
        format!("/batches/{batch}/states/{outcome}/{job}")
    }

    /// Any path that the queue's znodes may have, and some that they may not.
    fn any_path(&mut self) -> String {
        let (job, batch, request) = (self.job(), self.batch(), self.request());
        match self.below(12) {
            0..=4 => format!("/jobs/{job}/{}", JOB_NODES.choose(&mut self.rng).unwrap()),
            5 => {
                format!("/batches/{batch}/{}", self.pick(&["submission", "status", "status-report", "lock", "states"]))
            }
            6 => format!("{request}/{}", self.pick(&["token", "status", "lock"])),
            7 => self.lock(),
            8 => self.entry(),
            9 => self.reference(),
            10 => format!("/batch-uuids/bid-{}", self.below(5)),
            _ => self.unexpected(),
        }
    }

    fn lock(&mut self) -> String {
        let number = self.below(4);
        match self.below(6) {
            0 => format!("/locks/queue/{}", self.pick(&["ingest", "accessSmall", "accessLarge"])),
            1 => format!("/locks/collections/collection_{number}"),
            2 => format!("/locks/storage/ark_99999_fk{number}"),
            3 => format!("/locks/inventory/ark_99999_fk{number}"),
            4 => format!("/locks/localid/rbn-{number}_owner"),
            _ => format!("/locks/queue/localid/rbn-{number}_owner"),
        }
    }

    /// An unexpected path, at any level.
    fn unexpected(&mut self) -> String {
        let (job, batch, request) = (self.job(), self.batch(), self.request());
        let parent = match self.below(14) {
            0 => String::new(),
            1 => "/junk".to_owned(),
            2 => "/jobs".to_owned(),
            3 => format!("/jobs/{job}"),
            4 => format!("/jobs/{job}/status"),
            5 => format!("/jobs/states/{}", self.folder()),
            6 => "/batches".to_owned(),
            7 => format!("/batches/{batch}"),
            8 => format!("/batches/{batch}/states"),
            9 => self.pick(&["/access", "/access/small", "/locks", "/locks/queue"]).to_owned(),
            10 => self.lock(),
            11 => self.entry(),
            12 => self.reference(),
            _ => request,
        };
        format!("{parent}/{}", self.pick(&["junk", "jid42", "005-jid0000000001", "Übermut"]))
    }

    fn state(&mut self) -> &'static str {
        let canonical = Machine::Job.states().choose(&mut self.rng).unwrap().0;
        match self.below(10) {
            0 => {
                self.pick(&["pending", "update-reporting", "UpdateReporting", "FAILED", "Teleporting", "", "Reporting"])
            }
            _ => canonical,
        }
    }

    /// A value as it may be found at a znode, right or wrong.
    fn value(&mut self) -> Vec<u8> {
        let state = self.state();
        let number = self.below(5);
        let long = "é".repeat(200 + 100 * number as usize);
        let value = match self.below(26) {
            0..=4 => {
                json!({"status": state, "retry_count": number, "message": "Success", "last_successful_status": "Estimating"})
            }
            5 => json!({"status": state, "retry_count": number.to_string(), "message": long}),
            6 => json!({"status": state, "retry_count": -1, "message": "By alice with queuekeeper: a court order"}),
            7 => json!({"status": state, "retry_count": 99_999_999_999_u64, "last_successful_status": ["x"]}),
            8 => json!({"status": [state], "message": {"a": 1}}),
            9 => json!({"status": number, "retry_count": 1.5}),
            10 => json!({"status": null, "retry_count": null}),
            11 => json!({"primary_id": format!("ark:/99999/fk{number}"), "local_id": ["a", "b", number]}),
            12 => json!({"primary": "ark:/99999/old", "local_id": "a;b; c"}),
            13 => json!({"primary_id": ["ark"], "local_id": [["nested"], "kept"]}),
            14..=15 => {
                json!({"profile": format!("collection_{number}"), "submitter": "uc3user/UC3 User", "filename": long,
                "title": "t", "creator": "c", "submissionDate": DATES[number as usize].0, "objectID": "ark:/9/o", "localID": "x;y"})
            }
            16 => json!({"profile_name": "published", "localID": true, "batchID": "bid-1", "type": "container"}),
            17 => {
                json!({"token": "t-1", "cloud-content-byte": number * 1000, "delivery-node": 4001, "status": "Pending"})
            }
            18 => json!({"token": "t-2", "cloud-content-byte": "77", "delivery-node": "x", "url": "u"}),
            19 => return format!("bid{number:010}").into_bytes(),
            20 => {
                return self.pick(&["5", " 07\n", "100", "-1", "0", "1048576000", "9223372036854775807", "1e3"]).into();
            }
            21 => return vec![0xff, 0xfe, b'{', b'}'],
            22 => return self.pick(&["", "{", "[]", "[{}]", "null", "7", "\"text\"", "{\"status\":", "  "]).into(),
            23 => json!({}),
            24 if self.one_in(8) => return vec![b'x'; 1_040_000],
            24 => json!({"title": "ö".repeat(100_000), "filename": "big"}),
            _ => {
                let message = self.pick(&["", "By alice with queuekeeper: why", "404"]);
                json!({"status": state, "retry_count": 0, "message": message})
            }
        };
        value.to_string().into_bytes()
    }

    /// What a daemon does to take a job from one state to another, write by write.
    fn step(&mut self) -> Vec<Write> {
        let (job, batch) = (self.job(), self.batch());
        let (from, to) = (self.folder(), Machine::Job.states().choose(&mut self.rng).unwrap());
        let [old, new] = [self.outcome(), self.outcome()];
        let retries = self.below(5);
        let lock = format!("/jobs/{job}/lock");
        let priority = self.pick(&["05", "00"]);
        vec![
            Write::Lock(lock.clone()),
            Write::Delete(format!("/jobs/states/{from}/{priority}-{job}")),
            Write::Set(format!("/jobs/{job}/status"), status(to.0, retries)),
            Write::Create(format!("/jobs/states/{}/{priority}-{job}", to.1), Vec::new()),
            Write::Delete(format!("/batches/{batch}/states/{old}/{job}")),
            Write::Create(format!("/batches/{batch}/states/{new}/{job}"), Vec::new()),
            Write::Delete(lock),
        ]
    }

    /// Some writes that belong together.
    pub(crate) fn writes(&mut self) -> Vec<Write> {
        match self.below(24) {
            0..=1 => vec![new_job(self.below(JOBS), &format!("bid{:010}", 0), 5)],
            2..=6 => self.step(),
            7 => {
                let (job, batch) = (self.job(), self.batch());
                vec![
                    Write::Create(format!("/jobs/{job}"), Vec::new()),
                    Write::Create(format!("/jobs/{job}/status"), status("Pending", 0)),
                    Write::Create(format!("/jobs/{job}/bid"), batch.into()),
                ]
            }
            8 => {
                let batch = self.batch();
                if self.one_in(2) {
                    new_batch(&batch)
                } else {
                    vec![Write::Create(format!("/batches/{batch}"), Vec::new())]
                }
            }
            9 => {
                let (request, value) = (self.request(), self.value());
                vec![
                    Write::Create(request.clone(), Vec::new()),
                    Write::Create(format!("{request}/token"), value),
                    Write::Create(format!("{request}/status"), status("Pending", 0)),
                ]
            }
            10 => {
                let job = self.job();
                let mut writes: Vec<_> =
                    JOB_NODES.iter().map(|node| Write::Delete(format!("/jobs/{job}/{node}"))).collect();
                writes.push(Write::Delete(format!("/jobs/{job}")));
                if self.one_in(2) {
                    // Made again at once, so that both may fall between two reads.
                    writes.push(new_job(self.below(JOBS), &format!("bid{:010}", 0), 0));
                }
                writes
            }
            11 => vec![Write::Lock(self.lock())],
            12 => vec![
                Write::Lock(format!("{}/lock", self.request())),
                Write::Lock(format!("/batches/{}/lock", self.batch())),
            ],
            13 => {
                let path = self.any_path();
                vec![Write::Delete(path.clone()), Write::Create(path, self.value())]
            }
            14..=15 => vec![Write::Set(self.any_path(), self.value())],
            16 => vec![Write::Delete(self.any_path())],
            17 => vec![Write::Create(self.unexpected(), Vec::new())],
            18 => vec![
                Write::Create("/queuekeeper".to_owned(), Vec::new()),
                Write::Create(format!("/queuekeeper/{}", self.below(9)), Vec::new()),
            ],
            19 => vec![Write::Create(self.any_path(), self.value())],
            _ => self.hold(),
        }
    }

    /// What few random values come to: jobs of few collections in the states that are counted by more than their
    /// number, and holds of these collections.
    fn hold(&mut self) -> Vec<Write> {
        let (job, collection) = (format!("/jobs/{}", self.job()), format!("collection_{}", self.below(2)));
        let state = self.pick(&["Held", "Provisioning", "Pending", "Failed"]);
        let message = self.pick(&["Success", "By alice with queuekeeper: a court order"]);
        let hold = format!("/locks/collections/{collection}");
        vec![
            Write::Set(format!("{job}/configuration"), json!({"profile": collection}).to_string().into_bytes()),
            Write::Set(format!("{job}/space_needed"), self.pick(&["10", "1000000", "1000001", "2000000"]).into()),
            Write::Set(format!("{job}/status"), json!({"status": state, "message": message}).to_string().into_bytes()),
            if self.one_in(2) { Write::Lock(hold) } else { Write::Delete(hold) },
        ]
    }

    /// Some subtree, to be deleted.
    pub(crate) fn subtree(&mut self) -> String {
        match self.below(9) {
            0 => "/jobs/states".to_owned(),
            1 => format!("/jobs/states/{}", self.folder()),
            2 => "/locks".to_owned(),
            3 => "/access".to_owned(),
            4 => "/junk".to_owned(),
            5 => "/jobs".to_owned(),
            6 => self.request(),
            _ => format!("/batches/{}", self.batch()),
        }
    }
}
