//! How much a depositor may send, and how much there is room for.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_catalogue::Error;
use queuekeeper_catalogue::deposits::{NewDeposit, Sent};

use super::Allowance;
use super::shared::{Intake, disk, unavailable};
use crate::actions::{Actor, Refusal};
use crate::words::{count, counted, length, size};

/// Up to which part of the threshold of the working storage uploads are taken: the rest is for what the daemons do.
const UPLOADS_SHARE: f64 = 0.6;

const SECOND: Duration = Duration::from_secs(1);

const MINUTE: Duration = Duration::from_mins(1);

/// The tenths in which words have hours.
const TENTH_OF_HOUR: Duration = Duration::from_mins(6);

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
    /// [`Refusal::TooMuch`] where it would be more than they may, [`Refusal::TooLarge`] where it would be at any time;
    /// others when the catalogue cannot be read.
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
            "there is no room for {}: uploads are accepted up to {:.0} % usage of the working storage",
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
        let why = format!("{made} made in the last minute, and your limit is {} a minute", count(most));
        return Err(too_much(&why, &of_minute, now, MINUTE));
    }
    let sent = of_day;
    if let Some(most) = deposits_per_day.filter(|most| sent.deposits >= *most) {
        let made = counted(sent.deposits, "deposit was", "deposits were");
        let why = format!("{made} made in the last 24 hours, and your limit is {} in 24 hours", count(most));
        return Err(too_much(&why, &sent, now, DAY));
    }
    if let Some(most) = objects_per_day.filter(|most| added.objects > *most) {
        let objects = counted(added.objects, "object", "objects");
        let why = format!("it has {objects}, and your limit is {} in 24 hours; divide it", count(most));
        return Err(Refusal::TooLarge(why));
    }
    if let Some(most) = bytes_per_day.filter(|most| added.bytes > *most) {
        return Err(larger_than(most));
    }
    if let Some(most) = objects_per_day.filter(|most| sent.objects.saturating_add(added.objects) > *most) {
        let made = counted(sent.objects, "object was", "objects were");
        let this = counted(added.objects, "object", "objects");
        let most = count(most);
        let why = format!("it has {this}, {made} deposited in the last 24 hours, and your limit is {most} in 24 hours");
        return Err(too_much(&why, &sent, now, DAY));
    }
    if let Some(most) = bytes_per_day.filter(|most| sent.bytes.saturating_add(added.bytes) > *most) {
        let this = match added.bytes {
            0 => String::new(),
            bytes => format!("it has {}, ", size(bytes)),
        };
        let (sum, most) = (size(sent.bytes), size(most));
        let why = format!("{this}{sum} were uploaded in the last 24 hours, and your limit is {most} in 24 hours");
        return Err(too_much(&why, &sent, now, DAY));
    }
    Ok(())
}

/// It is more than may be sent in so long. Before the first of what was sent counts no more, nothing changes.
fn too_much(why: &str, sent: &Sent, now: Timestamp, window: Duration) -> Refusal {
    let left = |first: Timestamp| window.saturating_sub(now.duration_since(first).try_into().unwrap_or_default());
    let retry_after = sent.first.map(left);
    let again = retry_after.map(|after| format!("; try again in {}", rounded_up(after)));
    Refusal::TooMuch { why: format!("{why}{}", again.unwrap_or_default()), retry_after }
}

/// A length of time in words, of which none is shorter.
fn rounded_up(time: Duration) -> String {
    let step = match time.as_secs() {
        ..59 => SECOND,
        59..3_540 => MINUTE,
        _ => TENTH_OF_HOUR,
    };
    length(step * u32::try_from(time.as_millis().div_ceil(step.as_millis())).unwrap_or(u32::MAX))
}

/// An upload has more bytes than its depositor may send in a day.
pub(super) fn larger_than(most: u64) -> Refusal {
    Refusal::TooLarge(format!("it has more than {}, your limit for uploads in 24 hours", size(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_never_asked_to_come_back_too_early() {
        let up = |millis| rounded_up(Duration::from_millis(millis));
        assert_eq!([up(0), up(1), up(58_001)], ["0 s", "1 s", "59 s"]);
        assert_eq!([up(60_001), up(3_539_000)], ["2 min", "59 min"]);
        assert_eq!([up(3_540_001), up(7_200_001), up(86_399_000)], ["1.0 h", "2.1 h", "24 h"]);
    }
}
