//! How much a depositor may send, and how much there is room for.

use jiff::{SignedDuration, Timestamp};

use super::Allowance;
use super::shared::{Intake, disk, unavailable};
use crate::actions::{Actor, Refusal};
use crate::mirror::words::size;

/// Up to which part of the threshold of the working storage uploads are taken: the rest is for what the daemons do.
const UPLOADS_SHARE: f64 = 0.6;

impl Intake {
    pub(super) async fn check_quota(&self, actor: &Actor, allowance: &Allowance, bytes: u64) -> Result<(), Refusal> {
        if allowance.bytes_per_day.is_none() && allowance.deposits_per_day.is_none() {
            return Ok(());
        }
        let since = Timestamp::now() - SignedDuration::from_hours(24);
        let sent = self
            .shared
            .services
            .catalogue
            .deposited_since(&actor.name, since)
            .await
            .map_err(|error| unavailable(&error))?;
        if allowance.deposits_per_day.is_some_and(|most| sent.deposits >= most) {
            let most = sent.deposits;
            return Err(Refusal::TooMuch(format!(
                "{most} deposits were made in the last 24 hours; that is your limit"
            )));
        }
        if let Some(most) = allowance.bytes_per_day.filter(|most| sent.bytes.saturating_add(bytes) > *most) {
            let sent = size(sent.bytes);
            let why =
                format!("{sent} were uploaded in the last 24 hours; with this, it is more than your {}", size(most));
            return Err(Refusal::TooMuch(why));
        }
        Ok(())
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
