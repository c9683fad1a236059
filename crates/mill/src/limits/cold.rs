//! What may be asked of a store of which reading costs.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use queuekeeper_store::archive::RestoreRequest;

use super::UNITS;

/// How many restores are requested within a day where the configuration does not say it.
const RESTORES_PER_DAY: u64 = 1000;

/// For how long the report on a space waits for its store where no restore is configured.
const WAIT_LIMIT: Duration = Duration::from_hours(72);

/// What may be asked of a store of which reading costs; by default, everything but restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdStore {
    /// How archived content is restored; `None` where it is not.
    pub restore: Option<RestoreSettings>,
    /// How many restores are requested within 24 hours at most.
    pub restores_per_day: u64,
    /// How many bytes are read within 24 hours at most; `None` for any number.
    pub bytes_out_per_day: Option<ByteAmount>,
}

/// How archived content is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreSettings {
    /// How the store is asked to restore it.
    pub request: RestoreRequest,
    /// How often it is seen whether a restore has ended.
    pub poll: Duration,
    /// After what time a restore that has not ended is an error.
    pub limit: Duration,
}

impl Default for ColdStore {
    fn default() -> Self {
        Self { restore: None, restores_per_day: RESTORES_PER_DAY, bytes_out_per_day: None }
    }
}

impl ColdStore {
    /// Whether anything of it concerns what is read.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.restore.is_some() || self.bytes_out_per_day.is_some()
    }

    /// For how long the report on a space waits for what cannot be read yet.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        self.restore.map_or(WAIT_LIMIT, |restore| restore.limit)
    }
}

impl ColdStore {
    /// `has what is archived restored for 2 days (bulk), at most 500 items a day`, `is read at most 100 GiB a day`.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let restore = self.restore.map(|RestoreSettings { request, .. }| {
            let (days, tier, most) = (request.days, request.tier.as_str(), self.restores_per_day);
            format!("has what is archived restored for {days} days ({tier}), at most {most} items a day")
        });
        let bytes = self.bytes_out_per_day.map(|bytes| format!("is read at most {bytes} a day"));
        restore.into_iter().chain(bytes)
    }
}

/// A number of bytes, at least one. As text, `100 GiB`, `512KiB` or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteAmount(NonZeroU64);

impl ByteAmount {
    /// How many bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for ByteAmount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        read(text).map(Self).ok_or_else(|| format!("expected bytes, such as 100GiB or 512MiB, not {text:?}"))
    }
}

impl fmt::Display for ByteAmount {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.0, to)
    }
}

/// A number with a unit or without.
pub(super) fn read(text: &str) -> Option<NonZeroU64> {
    let with_unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(*unit)?.trim_end(), *factor)));
    let (number, factor) = with_unit.unwrap_or((text, 1));
    NonZeroU64::new(number.parse::<u64>().ok()?.checked_mul(factor)?)
}

/// A number in the largest unit that divides it.
pub(super) fn show(bytes: NonZeroU64, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    let divides = |(_, factor): &&(&str, u64)| bytes.get().is_multiple_of(*factor);
    let (unit, factor) = UNITS.iter().find(divides).unwrap_or(&("B", 1));
    write!(to, "{} {unit}", bytes.get() / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_of_bytes_is_read_in_its_units_and_written_in_the_largest_that_fits() {
        for (text, bytes, shown) in [("2TiB", 2 << 40, "2 TiB"), ("100 GiB", 100 << 30, "100 GiB"), ("7", 7, "7 B")] {
            let amount: ByteAmount = text.parse().unwrap();
            assert_eq!((amount.bytes(), amount.to_string().as_str()), (bytes, shown));
        }
        for wrong in ["", "0", "1GB", "-1", "99999999999TiB"] {
            assert!(wrong.parse::<ByteAmount>().unwrap_err().contains("such as 100GiB"), "{wrong}");
        }
    }
}
