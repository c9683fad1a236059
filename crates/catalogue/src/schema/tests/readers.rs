//! What the readers of the crate say of a catalogue.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName, StoreName};

use super::content::ARK;
use crate::Catalogue;
use crate::audit::Events;
use crate::bit::Reports;
use crate::counters::{Counter, Figures};

/// What a reader says, and the first version whose catalogues have all that it says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) of: &'static str,
    pub(super) since: i64,
    pub(super) text: String,
}

fn said(of: &'static str, since: i64, what: impl Debug) -> Said {
    Said { of, since, text: format!("{what:#?}") }
}

impl Said {
    /// Whether it says that there is nothing.
    pub(super) fn is_nothing(&self) -> bool {
        ["[]", "None", "{}"].contains(&&*self.text)
    }
}

/// From which version on a counter is kept, and from which on there is what it counts.
pub(super) fn kept_since(counter: Counter) -> (i64, i64) {
    match counter {
        Counter::ContentItems
        | Counter::ContentBytes
        | Counter::AuditEvents
        | Counter::Objects
        | Counter::Versions
        | Counter::Files
        | Counter::FileBytes => (1, 1),
        Counter::SpaceItems => (5, 1),
        Counter::SpaceBytes => (7, 1),
        Counter::Tasks | Counter::EndedTasks => (5, 5),
        Counter::WaitingTasks | Counter::HeldTasks | Counter::DeadTasks => (7, 5),
        Counter::PausedTasks => (9, 9),
        Counter::BitResults | Counter::BitErrors => (10, 10),
        Counter::SpaceBitErrors => (20, 10),
    }
}

/// The figures that a catalogue which comes from a version has.
pub(super) fn figures_since(figures: &Figures, version: i64) -> Figures {
    let is_there = |counter| kept_since(counter).1 <= version;
    figures.iter().filter(|((counter, _), _)| is_there(*counter)).map(|(of, figure)| (of.clone(), *figure)).collect()
}

/// What is read of all that `content` wrote.
pub(super) async fn read(catalogue: &Catalogue) -> Vec<Said> {
    let mut all = inventory(catalogue).await;
    all.extend(content(catalogue).await);
    all.extend(mill(catalogue).await);
    all
}

async fn inventory(catalogue: &Catalogue) -> Vec<Said> {
    let object = catalogue.object(ARK).await.unwrap().unwrap();
    let versions = catalogue.versions(ARK, None, 10).await.unwrap();
    let local_ids = catalogue.local_ids(&object.owner, ARK, "", 10).await.unwrap();
    let title = object.title.clone().unwrap();
    let mut all = vec![
        said("object", 1, &object),
        said("objects", 1, catalogue.objects(Some(&object.collection), "", 10).await.unwrap()),
        said("objects_by_title", 1, catalogue.objects_by_title(None, &title, "", 10).await.unwrap()),
        said("object_by_local_id", 1, catalogue.object_by_local_id(&object.owner, &local_ids[0]).await.unwrap()),
        said("local_ids", 1, &local_ids),
        said("versions", 1, &versions),
        said("object_intents", 3, catalogue.object_intents(Duration::ZERO, None, 10).await.unwrap()),
    ];
    for version in &versions {
        all.push(said("files", 1, catalogue.files(ARK, version.number, "", 10).await.unwrap()));
        all.push(said("version_of_job", 1, catalogue.version_of_job(version.job).await.unwrap()));
        all.push(said("reserved", 1, catalogue.reserved(version.job, &object.owner, &local_ids).await.unwrap()));
    }
    let deposits = catalogue.deposits(&versions[0].submitter, None, 10).await.unwrap();
    for deposit in &deposits {
        let parts = catalogue.parts(deposit.deposit.batch).await.unwrap();
        all.extend((!parts.is_empty()).then(|| said("parts", 3, parts)));
    }
    // Its times change as it is read.
    let waiting = catalogue.waiting_messages().await.unwrap();
    all.push(said("waiting_messages", 1, (waiting.len(), &waiting[0].kind, waiting[0].count)));
    all.push(said("deposits", 3, deposits));
    all.push(said("ended_messages", 2, catalogue.ended_messages(Duration::ZERO, None, 10).await.unwrap()));
    all.push(said("unended_messages", 2, catalogue.unended_messages("mail", Duration::ZERO, None, 10).await.unwrap()));
    all
}

async fn content(catalogue: &Catalogue) -> Vec<Said> {
    let (store, space): (StoreName, SpaceName) = ("main".parse().unwrap(), "space-a".parse().unwrap());
    let indexed = catalogue.items(&space, None, 10).await.unwrap();
    let mut all = vec![
        said("events", 1, catalogue.events(&Events::All, None, 100).await.unwrap()),
        said("events_after", 1, catalogue.events_after(3, 100).await.unwrap()),
        said("events_of_space", 1, catalogue.events_of_space(&store, &space, 0, 100).await.unwrap()),
        said("observed", 1, catalogue.events(&Events::Observed, None, 100).await.unwrap()),
        said("items", 1, &indexed),
        said("proof_figures", 1, catalogue.proof_figures().await.unwrap()),
        said("unfollowed", 5, catalogue.unfollowed("duplication").await.unwrap()),
    ];
    for name in ["a", "b", "gone", "later"] {
        let item = Item::new(space.clone(), Key::new(name.as_bytes()).unwrap());
        all.push(said("copy", 1, catalogue.copy(&store, &item).await.unwrap()));
        all.push(said("is_changing", 1, catalogue.is_changing(&store, &item).await.unwrap()));
    }
    all
}

async fn mill(catalogue: &Catalogue) -> Vec<Said> {
    let (account, store, space) = ("account", "main".parse::<StoreName>().unwrap(), "space-a".parse().unwrap());
    let damaged = Item::new(SpaceName::clone(&space), Key::new(*b"b").unwrap());
    let mut all = vec![
        said("policies", 1, catalogue.policies(account, None, 10).await.unwrap()),
        said("loop_state", 16, catalogue.loop_state("bit").await.unwrap()),
        said("morsels", 7, catalogue.morsels("duplication").await.unwrap()),
        said("held_tasks", 9, catalogue.held_tasks(account, &store, 0, 10).await.unwrap()),
        said("decisions", 5, catalogue.decisions(None, 10).await.unwrap()),
        said("space_stats", 6, catalogue.space_stats(account, 10).await.unwrap()),
        said("pauses", 9, catalogue.pauses().await.unwrap()),
        said("repair_stops", 12, catalogue.repair_stops().await.unwrap()),
        said("repairs", 11, catalogue.repairs(account, None, 10).await.unwrap()),
        said("bit_errors", 11, catalogue.bit_errors(account, 0, 10).await.unwrap()),
        said("bit_error", 11, catalogue.bit_error(&store, &damaged).await.unwrap()),
        said("checks_of_item", 10, catalogue.checks_of_item(&store, &damaged, None, 10).await.unwrap()),
        said("bit_reports", 13, {
            let of = Reports { account, store: "", space: "", unsuccessful: None };
            catalogue.bit_reports(of, None, 10).await.unwrap()
        }),
        said("unsuccessful_bit_reports", 11, catalogue.unsuccessful_bit_reports(1).await.unwrap()),
        said("seal_head", 15, catalogue.seal_head(account).await.unwrap()),
        said("seal", 15, catalogue.seal(account, 2).await.unwrap()),
        said("asked_checks", 17, catalogue.requested_checks(account, None, 10).await.unwrap()),
        said("comparisons", 17, catalogue.comparisons(account, "", 10).await.unwrap()),
        said("budget_use", 18, catalogue.budget_use(&store).await.unwrap()),
        said("asides", 5, {
            let item = Item::new(space.clone(), Key::new(*b"\x00\xff'\\ %\n\xc3").unwrap());
            catalogue.asides(&store, &item, None, 10).await.unwrap()
        }),
        said("deposited_since", 3, catalogue.deposited_since("adà", Timestamp::UNIX_EPOCH).await.unwrap()),
    ];
    if let Some(run) = catalogue.open_bit_run(account, &store, &space).await.unwrap() {
        all.push(said("bit_counts", 10, catalogue.bit_counts(run).await.unwrap()));
        all.push(said("bit_pages_left", 10, catalogue.bit_pages_left(run).await.unwrap()));
        all.push(said("bit_items_left", 19, catalogue.bit_items_left(run, None, 10).await.unwrap()));
    }
    all
}
