//! The mill: its queues, loops and workers, from the counters of the catalogue.
//!
//! A catalogue may be on another host and slow, so it is asked from time to time, and a scrape exports the last answer
//! while that is not too old. Servers that share a catalogue export the same figures.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::encode::{Families, seconds};

/// After this time an answer says nothing any more.
const STALE_AFTER: Duration = Duration::from_mins(3);

/// The last figures; clones share them.
#[derive(Clone, Debug, Default)]
pub struct MillFamilies(Arc<Mutex<Option<(Instant, MillFigures)>>>);

/// What is exported of the mill.
#[derive(Clone, Debug, Default)]
pub struct MillFigures {
    /// The queues.
    pub queues: Vec<QueueFigures>,
    /// How often workers came to an end with a task, by queue and outcome.
    pub ended: Vec<(&'static str, &'static str, u64)>,
    /// How many workers have a task, and how many have none.
    pub workers: [u64; 2],
    /// How many processes have workers.
    pub processes: u64,
    /// How many tasks wait of each kind that no process has workers for.
    pub unserved: Vec<(&'static str, u64)>,
    /// How many checks of copies had each result.
    pub bit_results: Vec<(&'static str, u64)>,
    /// How many copies something is known to be wrong with, by account and store.
    pub bit_errors: Vec<(String, String, u64)>,
    /// Of how many spaces the newest report does not cover every item, by account and store.
    pub incomplete_reports: Vec<(String, String, u64)>,
    /// The proofs of what stores have.
    pub proofs: Vec<ProofFigures>,
    /// The loops.
    pub loops: Vec<LoopFigures>,
    /// Since when automatic repairs are stopped, by store, of which an empty one stands for all, and by what stopped
    /// them.
    pub repair_stops: Vec<(String, &'static str, Timestamp)>,
    /// Since when work is paused, by account and store, of which an empty one stands for all.
    pub pauses: Vec<(String, String, Timestamp)>,
    /// How many tasks the brake holds, by account and store.
    pub held: Vec<(String, String, u64)>,
    /// Which part of the budgets of stores was used in the last 24 hours, by store and budget.
    pub budgets: Vec<(String, &'static str, f64)>,
    /// How many items the sources of a store have more than it, by account and store.
    pub missing: Vec<(String, String, u64)>,
    /// The policies, by account.
    pub policies: Vec<PolicyFigures>,
}

/// What is exported of a queue.
#[derive(Clone, Debug)]
pub struct QueueFigures {
    /// Its name.
    pub queue: &'static str,
    /// Tasks that wait for a worker, those that one has, those that are held, those that are dead, those that are
    /// paused, those whose store cannot be read now.
    pub tasks: [u64; 6],
    /// When the task was requested that has been ready for longest.
    pub oldest: Option<Timestamp>,
}

/// What is exported of the proofs of what a store of an account has.
#[derive(Clone, Debug)]
pub struct ProofFigures {
    /// The account.
    pub account: String,
    /// The store.
    pub store: String,
    /// How old a proof may become.
    pub max_age: Option<Duration>,
    /// The kinds of proof, each with the number of items that have it, and the beginning of the day of the oldest one.
    pub kinds: [(&'static str, u64, Option<Timestamp>); 3],
}

/// What is exported of a loop.
#[derive(Clone, Debug)]
pub struct LoopFigures {
    /// The producer.
    pub producer: &'static str,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When it ends at its present rate.
    pub ends: Option<Timestamp>,
    /// When the next one is due.
    pub next: Option<Timestamp>,
    /// How many parts are left, and how many of them cannot go on.
    pub left: [u64; 2],
    /// How many items its sources had when it began, and how many keys were looked at.
    pub items: [u64; 2],
}

/// What is exported of a policy.
#[derive(Clone, Debug)]
pub struct PolicyFigures {
    /// The account.
    pub account: String,
    /// Whether its file can be used.
    pub is_usable: bool,
    /// How many parts of a change of the file wait for an admin.
    pub waiting: u64,
}

/// The states of tasks, in the order of [`QueueFigures::tasks`].
const STATES: [&str; 6] = ["waiting", "in_progress", "held", "dead", "paused", "restore"];

impl MillFamilies {
    /// Registers the families.
    pub fn register(registry: &mut Registry) -> Self {
        let families = Self::default();
        registry.register_collector(Box::new(families.clone()));
        families
    }

    /// Whether there are figures that are not too old.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.known().is_some()
    }

    fn known(&self) -> Option<MillFigures> {
        let last = self.0.lock().clone().filter(|(at, _)| at.elapsed() < STALE_AFTER);
        last.map(|(_, figures)| figures)
    }

    /// Sets what is exported.
    pub fn report(&self, figures: MillFigures) {
        *self.0.lock() = Some((Instant::now(), figures));
    }
}

impl Collector for MillFamilies {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match self.known() {
            Some(figures) => figures.write(&mut Families::new(encoder)),
            None => Ok(()),
        }
    }
}

impl MillFigures {
    fn write(&self, families: &mut Families<'_>) -> fmt::Result {
        let tasks = self.queues.iter().flat_map(|of| {
            STATES.into_iter().zip(of.tasks).map(|(state, count)| ([("queue", of.queue), ("state", state)], count))
        });
        families.gauges("mill_tasks", "Number of tasks of the mill by queue and state.", tasks)?;
        let oldest = self.queues.iter().filter_map(|of| Some(([("queue", of.queue)], seconds(of.oldest?))));
        families.gauges(
            "mill_task_oldest_created_timestamp_seconds",
            "Unix time at which the oldest ready task of each queue was created.",
            oldest,
        )?;
        let ended =
            self.ended.iter().map(|(queue, outcome, count)| ([("queue", *queue), ("outcome", *outcome)], *count));
        families.counters("mill_tasks_ended", "Total number of task attempts by queue and outcome.", ended)?;
        let workers = ["busy", "idle"].into_iter().zip(self.workers).map(|(state, count)| ([("state", state)], count));
        families.gauges("mill_workers", "Number of mill workers by state.", workers)?;
        families.count("mill_processes", "Number of processes with workers of the mill.", self.processes)?;
        let unserved = self.unserved.iter().map(|(kind, count)| ([("kind", *kind)], *count));
        families.gauges(
            "mill_unserved_tasks",
            "Number of waiting tasks of each kind that no process has workers for.",
            unserved,
        )?;
        let results = self.bit_results.iter().map(|(result, count)| ([("result", *result)], *count));
        families.counters("mill_bit_results", "Total number of checks of copies by result.", results)?;
        families.gauges(
            "mill_bit_errors",
            "Number of copies with open bit errors by account and store.",
            self.bit_errors
                .iter()
                .map(|(account, store, count)| ([("account", &**account), ("store", &**store)], *count)),
        )?;
        families.gauges(
            "mill_bit_report_incomplete",
            "Number of spaces whose newest report on integrity is incomplete, by account and store.",
            self.incomplete_reports
                .iter()
                .map(|(account, store, count)| ([("account", &**account), ("store", &**store)], *count)),
        )?;
        self.write_proofs(families)?;
        self.write_loops(families)?;
        let stops = self.repair_stops.iter();
        families.gauges(
            "mill_repair_stop_started_timestamp_seconds",
            "Unix time at which automatic repairs were stopped, by store and cause; an empty store stands for all of them.",
            stops.map(|(store, cause, at)| ([("store", &**store), ("cause", *cause)], seconds(*at))),
        )?;
        let pauses = self.pauses.iter();
        families.gauges(
            "mill_pause_started_timestamp_seconds",
            "Unix time at which work was paused, by account and store; an empty label stands for all of them.",
            pauses.map(|(account, store, at)| ([("account", &**account), ("store", &**store)], seconds(*at))),
        )?;
        families.gauges(
            "mill_brake_held",
            "Number of tasks that the brake holds, by account and by the store that they would change.",
            self.held.iter().map(|(account, store, count)| ([("account", &**account), ("store", &**store)], *count)),
        )?;
        families.gauges(
            "mill_budget_used_ratio",
            "Fraction of a store's daily budget that was used in the last 24 hours, from 0 to 1.",
            self.budgets.iter().map(|(store, budget, used)| ([("store", &**store), ("budget", *budget)], *used)),
        )?;
        families.gauges(
            "mill_copies_missing",
            "Number of items missing from a store compared with its sources, according to the content index.",
            self.missing.iter().map(|(account, store, count)| ([("account", &**account), ("store", &**store)], *count)),
        )?;
        let usable = self.policies.iter().map(|of| ([("account", &*of.account)], u64::from(of.is_usable)));
        families.gauges("mill_policy_usable", "Whether the policy file of an account can be used.", usable)?;
        let waiting = self.policies.iter().map(|of| ([("account", &*of.account)], of.waiting));
        families.gauges("mill_policy_waiting_changes", "Number of policy changes waiting for an admin.", waiting)
    }

    fn write_proofs(&self, families: &mut Families<'_>) -> fmt::Result {
        let kinds = || {
            self.proofs.iter().flat_map(|of| {
                let labels = |proof| [("account", &*of.account), ("store", &*of.store), ("proof", proof)];
                of.kinds.iter().map(move |(proof, items, oldest)| (labels(*proof), *items, *oldest))
            })
        };
        families.gauges(
            "mill_content_items",
            "Number of items by account, store and kind of their last proof; none for items that were never proven.",
            kinds().map(|(labels, items, _)| (labels, items)),
        )?;
        families.gauges(
            "mill_content_oldest_proven_timestamp_seconds",
            "Unix time of the beginning of the day of the oldest last proof of each kind; for none, of the day on which the oldest \
             unproven item was written.",
            kinds().filter_map(|(labels, _, oldest)| Some((labels, seconds(oldest?)))),
        )?;
        families.gauges(
            "mill_content_max_age_seconds",
            "Age that the last proof of an item may reach, by account and store.",
            self.proofs
                .iter()
                .filter_map(|of| Some(([("account", &*of.account), ("store", &*of.store)], of.max_age?.as_secs()))),
        )
    }

    fn write_loops(&self, families: &mut Families<'_>) -> fmt::Result {
        type Of = fn(&LoopFigures) -> Option<Timestamp>;
        let instants: [(&str, &str, Of); 4] = [
            ("mill_loop_started_timestamp_seconds", "Unix time at which the loop started.", |of| of.started),
            ("mill_loop_ended_timestamp_seconds", "Unix time at which the loop ended.", |of| of.ended),
            ("mill_loop_ends_timestamp_seconds", "Unix time at which the loop ends at its present rate.", |of| of.ends),
            ("mill_loop_next_start_timestamp_seconds", "Unix time at which the next loop is due.", |of| of.next),
        ];
        for (name, help, of) in instants {
            let samples = self.loops.iter().filter_map(|one| Some(([("producer", one.producer)], seconds(of(one)?))));
            families.gauges(name, help, samples)?;
        }
        let left = self.loops.iter().flat_map(|of| {
            let states = ["left", "failed"].into_iter().zip(of.left);
            states.map(|(state, count)| ([("producer", of.producer), ("state", state)], count))
        });
        families.gauges("mill_loop_morsels", "Number of unfinished parts of the loop by state.", left)?;
        let items = self.loops.iter().map(|of| ([("producer", of.producer)], of.items[0]));
        families.gauges("mill_loop_items", "Number of items that the loop has to scan, as of its start.", items)?;
        let scanned = self.loops.iter().map(|of| ([("producer", of.producer)], of.items[1]));
        families.gauges("mill_loop_items_scanned", "Number of items that the loop has scanned.", scanned)
    }
}
