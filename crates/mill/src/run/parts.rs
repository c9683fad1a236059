//! What a mill works with, made of its settings.

use std::sync::Arc;

use jiff::Timestamp;
use queuekeeper_catalogue::tasks::TaskKind;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{EMPTY, LEAD, Mill, MillSettings};
use crate::asides::Asides;
use crate::audit::Auditor;
use crate::bit::checker::Checker;
use crate::bit::decisions::Decider;
use crate::bit::item::ItemChecks;
use crate::bit::page::PageChecks;
use crate::bit::producer::{BitProducer, BitSettings};
use crate::bit::repairer::Repairer;
use crate::bit::reporter::Reporter;
use crate::bit::requested_check::RequestedChecks;
use crate::duplicate::Duplicator;
use crate::policy::Policies;
use crate::producer::Producer;
use crate::stats::{Noop, StorageStats};
use crate::stores::AccountStores;
use crate::worker::{Processor, Times, Workers};

impl Mill {
    /// The stores with the limits of the accounts, which hold for all that goes through these and their clones
    /// together.
    pub(super) fn account_stores(&self) -> AccountStores {
        let Self { catalogue, accounts, stores, metrics, .. } = self;
        AccountStores::new(catalogue.clone(), accounts, stores.clone(), metrics.clone())
    }

    pub(super) fn stats(&self, stores: &AccountStores) -> StorageStats {
        let Self { catalogue, accounts, .. } = self;
        let (catalogue, accounts, stores) = (catalogue.clone(), accounts.clone(), stores.clone());
        StorageStats { catalogue, accounts, stores, clock: Timestamp::now }
    }

    pub(super) fn asides(&self) -> Asides {
        let Self { catalogue, accounts, stores, .. } = self;
        Asides { catalogue: catalogue.clone(), accounts: accounts.clone(), stores: stores.clone() }
    }

    pub(super) fn auditor(&self, policies: &Policies) -> Auditor {
        Auditor { accounts: self.accounts.clone(), policies: policies.clone() }
    }

    pub(super) fn producer(&self, policies: &Policies, stores: &AccountStores) -> Producer {
        let MillSettings { frequency, most_waiting, thorough_every, .. } = self.settings;
        Producer {
            catalogue: self.catalogue.clone(),
            accounts: self.accounts.clone(),
            policies: policies.clone(),
            stores: stores.clone(),
            frequency,
            most_waiting,
            part: 1000,
            thorough_every,
            holder: Uuid::now_v7(),
            lease: LEAD,
        }
    }

    pub(super) fn checker(&self, stores: &AccountStores) -> Checker {
        let Self { catalogue, accounts, .. } = self;
        let (catalogue, accounts, stores) = (catalogue.clone(), accounts.clone(), stores.clone());
        Checker { catalogue, accounts, stores, round: self.settings.round, clock: Timestamp::now }
    }

    pub(super) fn bit_producer(&self, settings: &BitSettings, stores: &AccountStores) -> BitProducer {
        let BitSettings { lists, max_age, most_waiting, at_once } = settings.clone();
        BitProducer {
            catalogue: self.catalogue.clone(),
            accounts: self.accounts.clone(),
            stores: stores.clone(),
            lists,
            max_age,
            most_waiting,
            part: 1000,
            at_once,
            reports: true,
            holder: Uuid::now_v7(),
            lease: LEAD,
        }
    }

    fn duplicator(&self, stores: &AccountStores) -> Duplicator {
        Duplicator {
            catalogue: self.catalogue.clone(),
            accounts: self.accounts.clone(),
            stores: stores.clone(),
            limit: self.settings.limit,
            delete_after: self.settings.delete_after,
            clock: Timestamp::now,
        }
    }

    /// What processes the tasks of a kind.
    fn processor(&self, kind: TaskKind, policies: &Policies, stores: &AccountStores) -> Arc<dyn Processor> {
        let checker = || self.checker(stores);
        match kind {
            TaskKind::Audit => Arc::new(self.auditor(policies)),
            TaskKind::Duplicate => Arc::new(self.duplicator(stores)),
            TaskKind::Bit => Arc::new(ItemChecks(checker())),
            TaskKind::BitPage => Arc::new(PageChecks(checker())),
            TaskKind::Check => Arc::new(RequestedChecks(checker())),
            TaskKind::BitReport => Arc::new(Reporter { checker: checker(), mail: self.mail.clone() }),
            TaskKind::BitError => Arc::new(Decider(checker())),
            TaskKind::Repair => {
                let MillSettings { limit, delete_after: keep, .. } = self.settings;
                Arc::new(Repairer { checker: checker(), limit, keep })
            }
            TaskKind::StorageStats => Arc::new(self.stats(stores)),
            TaskKind::Noop => Arc::new(Noop),
        }
    }

    pub(super) fn workers(&self, policies: &Policies, stores: &AccountStores, wake: &Arc<Notify>) -> Workers {
        Workers {
            catalogue: self.catalogue.clone(),
            processors: TaskKind::ALL.map(|kind| self.processor(kind, policies, stores)).to_vec(),
            queues: self.settings.queues.clone(),
            accounts: self.accounts.keys().cloned().collect(),
            number: self.settings.workers,
            name: self.name.clone(),
            times: Times { shortest_wait: EMPTY.0, longest_wait: EMPTY.1, ..Times::default() },
            wake: Arc::clone(wake),
            metrics: self.metrics.clone(),
        }
    }
}
