//! How much a depositor may send, and how much there is room for.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Error;
use queuekeeper_catalogue::deposits::{NewDeposit, Sent};

use super::Allowance;
use super::shared::{Intake, disk, unavailable};
use crate::actions::{Actor, Refusal};
use crate::mirror::words::{counted, size};

/// Up to which part of the threshold of the working storage uploads are taken: the rest is for what the daemons do.
const UPLOADS_SHARE: f64 = 0.6;

const MINUTE: Duration = Duration::from_mins(1);

const DAY: Duration = Duration::from_hours(24);

/// What a deposit adds to what was sent, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Added {
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl Added {
    /// One object.
    pub(super) fn bytes(bytes: u64) -> Self {
        Self { objects: 1, bytes }
    }
}

impl Intake {
    /// Whether a depositor may make another deposit at all, before its content comes.
    ///
    /// # Errors
    /// [`Refusal::TooMuch`] where it would be more than they may; others when the catalogue cannot be read.
    pub async fn check_allowance(&self, actor: &Actor, allowance: &Allowance) -> Result<(), Refusal> {
        self.check_quota(actor, allowance, Added::bytes(0)).await
    }

    /// Whether a deposit may be made now, before work goes into it; [`Self::record_within`] decides.
    pub(super) async fn check_quota(&self, actor: &Actor, allowance: &Allowance, added: Added) -> Result<(), Refusal> {
        if !has_limit(allowance) {
            return Ok(());
        }
        let (now, catalogue) = (Timestamp::now(), &self.shared.services.catalogue);
        let sent = async |window: Duration| catalogue.deposited_since(&actor.name, now - window).await;
        let both = async { Ok::<_, Error>([sent(MINUTE).await?, sent(DAY).await?]) };
        within(allowance, added, both.await.map_err(|error| unavailable(&error))?, now)
    }

    /// Records a deposit, unless it is more than its depositor may send with all that is recorded until then.
    pub(super) async fn record_within(&self, allowance: &Allowance, new: &NewDeposit) -> Result<(), Refusal> {
        let (now, catalogue) = (Timestamp::now(), &self.shared.services.catalogue);
        let recorded = if has_limit(allowance) {
            let added = Added { objects: new.objects, bytes: new.bytes };
            let may = |sent| within(allowance, added, sent, now);
            catalogue.record_deposit_within(new, [now - MINUTE, now - DAY], may).await
        } else {
            catalogue.record_deposit(new).await.map(Ok)
        };
        recorded.map_err(|error| unavailable(&error))?.map(drop)
    }

    /// Whether so many bytes more may be uploaded.
    pub(super) async fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        let working = self.shared.services.working.clone();
        let (total, free) = disk("measure the working storage", move || working.space()).await?;
        let most = (total as f64) * self.shared.services.settings.space.threshold * UPLOADS_SHARE;
        if (total.saturating_sub(free).saturating_add(bytes)) as f64 <= most {
            return Ok(());
        }
        let why = format!(
            "there is no room for {}: uploads are taken while {:.0} % of the working storage is used at most",
            if bytes > 0 { size(bytes) } else { "an upload".to_owned() },
            most / (total as f64).max(1.0) * 100.0
        );
        Err(Refusal::NoRoom(why))
    }
}

fn has_limit(allowance: &Allowance) -> bool {
    let Allowance { profiles: _, bytes_per_day, objects_per_day, deposits_per_day, deposits_per_minute } = allowance;
    [bytes_per_day, objects_per_day, deposits_per_day, deposits_per_minute].into_iter().any(Option::is_some)
}

/// Whether what a depositor has sent in the last minute and the last day leaves room for what a deposit adds.
fn within(allowance: &Allowance, added: Added, [of_minute, of_day]: [Sent; 2], now: Timestamp) -> Result<(), Refusal> {
    let Allowance { profiles: _, bytes_per_day, objects_per_day, deposits_per_day, deposits_per_minute } = allowance;
    if let Some(most) = deposits_per_minute.filter(|most| of_minute.deposits >= *most) {
        let made = counted(of_minute.deposits, "deposit was", "deposits were");
        let why = format!("{made} made in the last minute; your limit is {most}");
        return Err(too_much(why, &of_minute, now, MINUTE));
    }
    let sent = of_day;
    if let Some(most) = deposits_per_day.filter(|most| sent.deposits >= *most) {
        let made = counted(sent.deposits, "deposit was", "deposits were");
        let why = format!("{made} made in the last 24 hours; your limit is {most}");
        return Err(too_much(why, &sent, now, DAY));
    }
    if let Some(most) = objects_per_day.filter(|most| sent.objects.saturating_add(added.objects) > *most) {
        let made = counted(sent.objects, "object was", "objects were");
        let more = added.objects;
        let why = format!("{made} deposited in the last 24 hours; with {more} more, it is more than your {most}");
        return Err(too_much(why, &sent, now, DAY));
    }
    if let Some(most) = bytes_per_day.filter(|most| sent.bytes.saturating_add(added.bytes) > *most) {
        let sum = size(sent.bytes);
        let why = format!("{sum} were uploaded in the last 24 hours; with this, it is more than your {}", size(most));
        return Err(too_much(why, &sent, now, DAY));
    }
    Ok(())
}

/// It is more than may be sent in so long. Before the first of what was sent counts no more, nothing changes.
fn too_much(why: String, sent: &Sent, now: Timestamp, window: Duration) -> Refusal {
    let left = |first: Timestamp| window.saturating_sub(now.duration_since(first).try_into().unwrap_or_default());
    Refusal::TooMuch { why, retry_after: sent.first.map(left) }
}
