//! Decisions about what checks have found: what may be put right automatically is, and everything else waits for an
//! operator.

use std::time::Duration;

use async_trait::async_trait;
use queuekeeper_catalogue::bit::BitError;
use queuekeeper_catalogue::repair_stops::{COOLDOWN, MOST_A_DAY, RepairStarted, span};
use queuekeeper_catalogue::repairs::NewRepair;
use queuekeeper_catalogue::tasks::{NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject};
use queuekeeper_store::store::Item;

use super::checker::{Checker, said};
use super::kept::verdict_of;
use super::repair::{ManualRepairReason, RepairLimits, RepairMode, RepairStart, start};
use super::requested::offers;
use super::verdict::{CheckVerdict, Offer, Remedy};
use crate::account::Account;
use crate::users::MILL;
use crate::worker::{Lease, Processed, Processor, Stop};

/// How long a bit error waits for a decision until it is looked at again.
const AGAIN: Duration = Duration::from_hours(24);

/// Decides what is done about findings.
pub struct Decider(pub Checker);

/// A finding, as its check left it, and what is to be done about it.
struct Known {
    item: Item,
    error: BitError,
    plan: Plan,
}

/// What the mill does about a bit error by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It brings the record to what is proven, or takes the content into it.
    Record(Remedy),
    /// Its content is to be repaired, if at all: who starts that.
    Repair(RepairStart),
}

/// What the mill does by itself about a bit error of an account, by the limits of the account and the number of repairs
/// that were started automatically in the store in the last 24 hours.
///
/// # Errors
/// With one sentence, where what the check saw is not readable.
pub(super) fn plan(account: &Account, error: &BitError, started_today: u64) -> Result<Plan, String> {
    let verdict = CheckVerdict { offers: offers(account, error)?, ..verdict_of(error)? };
    let limits = account.limits.get(&error.store);
    let adopts = limits.is_some_and(|set| set.adopt == RepairMode::Automatic);
    let is_of_record = |offer: &&Offer| match offer.remedy {
        Remedy::CorrectIndex | Remedy::AppendEvent => !offer.only_by_asking,
        Remedy::Adopt => adopts,
        Remedy::RepairFromCopy | Remedy::RewriteInPlace | Remedy::WriteToProvider | Remedy::AcceptChange => false,
    };
    if let Some(offer) = verdict.offers.iter().find(is_of_record) {
        return Ok(Plan::Record(offer.remedy));
    }
    let limits = RepairLimits {
        mode: limits.map(|limits| limits.repair).unwrap_or_default(),
        is_write_once: limits.is_some_and(|limits| limits.is_write_once),
        started_today,
    };
    Ok(Plan::Repair(start(&verdict, &limits)))
}

#[async_trait]
impl Processor for Decider {
    fn kind(&self) -> TaskKind {
        TaskKind::BitError
    }

    async fn process(&self, task: &TakenTask, lease: &Lease) -> Processed {
        self.decide(&task.subject, lease).await.unwrap_or_else(Processed::from)
    }
}

impl Decider {
    async fn decide(&self, subject: &TaskSubject, lease: &Lease) -> Result<Processed, Stop> {
        let Some(known) = self.known(subject).await? else { return Ok(TaskOutcome::Done.into()) };
        let start = match known.plan {
            Plan::Record(remedy) => {
                let part = self.0.correct(subject, remedy, MILL, lease).await?;
                let is_wrong = part.items.iter().any(|item| item.wrong.is_some());
                let outcome = if is_wrong { TaskOutcome::PutOff(AGAIN) } else { TaskOutcome::Done };
                return Ok(Processed { checked: Some(part), ..outcome.into() });
            }
            Plan::Repair(start) => start,
        };
        let why = match start {
            RepairStart::Automatic => match self.start(subject, &known).await? {
                RepairStarted::Started | RepairStarted::Open => return Ok(TaskOutcome::Done.into()),
                RepairStarted::TooMany => ManualRepairReason::TooMany.to_string(),
                RepairStarted::Stopped => "automatic repairs in this store are stopped".to_owned(),
                RepairStarted::Cooling => format!("it was repaired automatically within {}", span(COOLDOWN)),
            },
            RepairStart::Manual(why) => why.to_string(),
            RepairStart::Never => "no other copy can repair this".to_owned(),
        };
        let Known { item, error: BitError { store, detail, .. }, .. } = &known;
        tracing::info!(%store, %item, detail, why, "a bit error waits for a decision");
        Ok(TaskOutcome::PutOff(AGAIN).into())
    }

    /// What is known to be wrong with a copy.
    async fn known(&self, subject: &TaskSubject) -> Result<Option<Known>, String> {
        let account = Account::find(&self.0.accounts, &subject.account)?;
        let space = account.require_space(&subject.space)?;
        let (Some(key), Some(store)) = (subject.key.clone(), &subject.destination) else {
            return Err("the finding names no item, or no store".to_owned());
        };
        let item = Item::new(space, key);
        let Some(error) = self.0.catalogue.bit_error(store, &item).await.map_err(said)? else { return Ok(None) };
        let today = self.0.catalogue.automatic_repairs_today(store).await.map_err(said)?;
        let plan = plan(account, &error, today)?;
        Ok(Some(Known { item, error, plan }))
    }

    async fn start(&self, subject: &TaskSubject, known: &Known) -> Result<RepairStarted, String> {
        let Known { item, error: BitError { store, detail, .. }, .. } = known;
        let account = &subject.account;
        let (user, reason, content) = (MILL, &**detail, known.error.evidence.content.as_deref());
        let (remedy, most_a_day) = (Remedy::RepairFromCopy.as_str(), Some(MOST_A_DAY));
        let new = NewRepair { account, store, item, user, reason, remedy, content, most_a_day };
        let subject = TaskSubject { kind: TaskKind::Repair, ..subject.clone() };
        let task = NewTask { queue: TaskQueue::BitError, subject, source: None };
        self.0.catalogue.start_repair(&new, task).await.map_err(said)
    }
}
