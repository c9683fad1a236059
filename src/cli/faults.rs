//! `queuekeeper faults`: what is broken in the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::act::ActArgs;
use super::client::ClientArgs;
use super::headings;
use super::output::{Screen, note};
use super::paging::Paging;
use super::verbs::{self, ParameterArgs};
use super::words::{ASSUMED, ago, count};
use crate::actions::{ActionKind, BulkAction, FaultAction, ListOf, MAX_ITEMS, Target};
use crate::mirror::MirrorStore;
use crate::views::faults::{FaultFilter, FaultList, Unconfirmed};
use crate::words::{self, counted};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::path::Path;

/// List the faults in the tree, with their effects and fixes
///
/// Faults depend on ages. Listing and --dry-run write nothing, so they assume that the clocks of this host and of
/// ZooKeeper agree, unless znodes show otherwise; --repair first measures ZooKeeper's clock by one write to
/// /queuekeeper/clock.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("force", |force| force.requires("item")))]
pub(super) struct FaultsArgs {
    #[command(flatten)]
    filter: FaultFilter,

    /// Repair those that can be repaired by writing, after showing and confirming each; with --yes, all without
    /// confirmation
    #[arg(long, help_heading = headings::ACTING, conflicts_with_all = ["limit", "cursor", "sort"])]
    repair: bool,

    /// Only the faults of this item: its path, as listed
    #[arg(long, value_name = "PATH", help_heading = headings::ACTING, requires = "repair")]
    item: Option<String>,

    #[command(flatten)]
    parameters: ParameterArgs<FaultAction>,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl FaultsArgs {
    /// Lists them, or repairs them.
    ///
    /// # Errors
    /// When the queue cannot be read, or not everything could be repaired.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if self.repair { self.repair().await } else { self.list().await }
    }

    async fn repair(&self) -> anyhow::Result<()> {
        self.act.check(self.client.output)?;
        let output = self.client.output;
        self.client
            .ask(async |link| {
                if self.act.is_dry_run() {
                    note(ASSUMED);
                } else {
                    link.measure_or_refuse("").await?;
                }
                let store = link.store(true).await?;
                let (targets, left) = self.repairable(&store);
                for (fault, fix) in left {
                    note(&format!("{fault}: it cannot be repaired automatically. {fix}"));
                }
                if targets.is_empty() {
                    note("there is nothing that can be repaired automatically");
                    return Ok(());
                }
                self.act
                    .with_session(link, Some(store), output, async |session| {
                        let parameters = self.parameters.of(ActionKind::Repair)?;
                        if self.act.is_sure() && !parameters.force {
                            let bulk = BulkAction::new(ActionKind::Repair);
                            let items = targets.into_iter().map(|target| (target, None)).collect();
                            return session.each(bulk, ListOf::Faults, items, |_| ()).await;
                        }
                        let action = |target| verbs::action(ActionKind::Repair, target, parameters);
                        let actions: Result<Vec<_>, _> = targets.into_iter().map(action).collect();
                        session.one_by_one(actions?.into_iter()).await
                    })
                    .await
            })
            .await
    }

    /// The matching faults that can be repaired, and those that cannot, with what to do about them.
    fn repairable(&self, store: &MirrorStore) -> (Vec<Target>, Vec<(Fault, &'static str)>) {
        let now = Timestamp::now();
        let (mut targets, mut left) = (Vec::new(), Vec::new());
        for fault in Fault::ALL.into_iter().filter(|fault| self.filter.takes(*fault)) {
            let found = store.faults(fault, MAX_ITEMS, now, None).unwrap_or_default();
            let is_wanted = |item: &Path| self.item.as_ref().is_none_or(|wanted| item.to_string() == *wanted);
            for found in found.into_iter().filter(|found| is_wanted(&found.item)) {
                match fault.help(&found.item) {
                    Some(_) if left.contains(&(fault, found.fix)) => {}
                    Some(_) => left.push((fault, found.fix)),
                    None => targets.push(Target::Fault(fault, found.item)),
                }
            }
        }
        (targets, left)
    }

    async fn list(&self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let store = link.store(true).await?;
            let (source, now) = (link.source(&store), Timestamp::now());
            Ok(self.paging.take(|page| source.faults(&self.filter, page, now))?)
        });
        let list = list.await?;
        self.client.output.list(&list, &list.items, |screen| show(&list, screen))?;
        if self.client.output.is_json() {
            return Ok(());
        }
        let has_unconfirmed = lasting(&list.unconfirmed).next().is_some();
        match (list.items.is_empty(), has_unconfirmed, self.filter.fault.is_some()) {
            (true, true, true) => note("no matching fault is confirmed"),
            (true, true, false) => note("no fault is confirmed"),
            (true, false, false) => note("no fault was found"),
            (true, false, true) | (false, _, _) => Paging::report(&list, "fault", "faults"),
        }
        Ok(())
    }
}

fn show(list: &FaultList, screen: &mut Screen) {
    let now = Timestamp::now();
    let (mut before, mut has_one_fix) = (None, false);
    let mut fixes = BTreeMap::new();
    for found in &list.items {
        fixes.entry(found.fault).or_insert_with(BTreeSet::new).insert(found.fix);
    }
    for found in &list.items {
        if before != Some(found.fault) {
            if before.is_some() {
                screen.gap();
            }
            let kind = list.kinds.iter().find(|kind| kind.fault == found.fault);
            let (title, items) = kind.map_or(("", 0), |kind| (kind.title, kind.count));
            screen.say(&format!("{title} ({}): {}", found.fault, count(items)));
            screen.beneath(found.effect);
            has_one_fix = fixes.get(&found.fault).is_some_and(|fixes| fixes.len() == 1);
            if has_one_fix {
                screen.beneath(&format!("Fix: {}", found.fix));
            }
            before = Some(found.fault);
        }
        screen.item("  - ", &format!("{}, for {}: {}", found.item, ago(Some(found.since), now), found.how));
        for node in found.nodes.iter().filter(|node| **node != found.item) {
            screen.entry_beneath(node);
        }
        if !has_one_fix {
            screen.entry_beneath(&format!("Fix: {}", found.fix));
        }
    }
    if !list.items.is_empty() {
        screen.gap();
    }
    if list.unreadable_znodes > 0 {
        let named = list.unreadable.len() as u64;
        let more = if named < list.unreadable_znodes { format!("; the first {named}") } else { String::new() };
        screen.say(&format!("{} cannot be read{more}:", counted(list.unreadable_znodes, "znode", "znodes")));
        for path in &list.unreadable {
            screen.entry_beneath(path);
        }
        screen.gap();
    }
    unconfirmed(&list.unconfirmed, Looked::Once, screen);
    screen.say(UNSEEN);
    screen.say(ASSUMED);
}

/// What a walk does not read, since there may be one such znode for each job.
const UNSEEN: &str = "Not checked: znodes below the references of batches in progress. They matter, and are checked, when the batch has ended.";

/// Faults with a grace period up to this, in seconds, are confirmed by a second walk.
const MOMENTS: f64 = 3.0;

/// What has to last for longer than a walk takes to be a fault. What has to last for moments was looked at twice: where
/// it is new the second time, it is a daemon's own writing.
pub(super) fn lasting(unconfirmed: &[Unconfirmed]) -> impl Iterator<Item = &Unconfirmed> {
    unconfirmed.iter().filter(|fault| fault.lasting_seconds > MOMENTS)
}

/// How it was looked for faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// By a walk, which does not show how long something lasts.
    Once,
    /// All the time.
    Watched,
}

/// Shows suspected faults, which are not confirmed.
pub(super) fn unconfirmed(all: &[Unconfirmed], looked: Looked, screen: &mut Screen) {
    let all: Vec<_> = lasting(all).collect();
    if all.is_empty() {
        return;
    }
    screen.say(match looked {
        Looked::Once => {
            "Not confirmed, because a single walk cannot show whether it lasts. A running server (queuekeeper serve) can:"
        }
        Looked::Watched => "Not confirmed yet, because it has not lasted for long enough:",
    });
    for fault in all {
        let lasting = words::length(Duration::from_secs_f64(fault.lasting_seconds));
        let items = counted(fault.count, "item", "items");
        screen.entry_beneath(&format!("{} ({}): {items}, a fault after {lasting}", fault.title, fault.fault));
    }
    screen.gap();
}
