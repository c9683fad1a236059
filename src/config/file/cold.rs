//! What is configured of a store of which reading costs: restores from its archive, and what may be asked of it in a
//! day.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use queuekeeper_mill::limits::{ByteAmount, ColdStore, RestoreSettings};
use queuekeeper_store::archive::{RestoreRequest, RestoreTier};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::PrometheusDuration;

/// For how many days a restored copy can be read where the configuration does not say it: longer than a worker may be
/// away.
const DAYS: u32 = 2;

/// The most days, which is no limit of S3's.
const MOST_DAYS: u32 = 365;

/// How often it is seen whether a restore has ended, and after what time it is an error that it has not.
const TIMES: (Duration, Duration) = (Duration::from_mins(30), Duration::from_hours(72));

/// The keys of restores.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreKeys {
    days: Option<Spanned<u32>>,
    tier: Option<Spanned<String>>,
    poll: Option<Spanned<String>>,
    limit: Option<Spanned<String>>,
}

/// The keys of budgets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BudgetKeys {
    restores_per_day: Option<Spanned<u64>>,
    bytes_out_per_day: Option<Spanned<Bytes>>,
}

/// A number of bytes, with a unit or without.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected bytes, such as 100GiB or 512MiB")]
enum Bytes {
    Number(u64),
    Text(String),
}

/// Checks what a store has of both; `wrong` says what is wrong in a line.
pub(super) fn check<E>(
    restore: Option<RestoreKeys>,
    budget: Option<BudgetKeys>,
    wrong: impl Fn(u64, &dyn fmt::Display) -> E,
) -> Result<ColdStore, E> {
    let mut cold = ColdStore::default();
    let has_restore = restore.is_some();
    if let Some(RestoreKeys { days, tier, poll, limit }) = restore {
        let mut request = RestoreRequest { days: DAYS, tier: RestoreTier::default() };
        if let Some(days) = days {
            if !(1..=MOST_DAYS).contains(&days.value) {
                return Err(wrong(days.referenced.line(), &format!("restore: days is from 1 to {MOST_DAYS}")));
            }
            request.days = days.value;
        }
        if let Some(tier) = tier {
            let read = tier.value.parse();
            let at = tier.referenced.line();
            request.tier = read.map_err(|why: String| wrong(at, &format!("restore: tier: {why}")))?;
        }
        let time = |key: &str, written: Option<Spanned<String>>, default| {
            let Some(written) = written else { return Ok(default) };
            let read = written.value.parse::<PrometheusDuration>().map(PrometheusDuration::get);
            let read = read.ok().filter(|read| *read >= Duration::from_secs(1));
            let why = format!("restore: {key}: expected a duration of at least 1s, such as 30m or 3d");
            read.ok_or_else(|| wrong(written.referenced.line(), &why))
        };
        let (poll, limit) = (time("poll", poll, TIMES.0)?, time("limit", limit, TIMES.1)?);
        cold.restore = Some(RestoreSettings { request, poll, limit });
    }
    let Some(BudgetKeys { restores_per_day, bytes_out_per_day }) = budget else { return Ok(cold) };
    if let Some(most) = restores_per_day {
        let at = most.referenced.line();
        if !has_restore {
            return Err(wrong(at, &"budget: restores_per_day is only valid for a store with restore: {..}"));
        }
        let why = "budget: restores_per_day must be at least 1; for no restores, remove restore: {..}";
        cold.restores_per_day = NonZeroU64::new(most.value).ok_or_else(|| wrong(at, &why))?.get();
    }
    if let Some(bytes) = bytes_out_per_day {
        let text = match bytes.value {
            Bytes::Number(bytes) => bytes.to_string(),
            Bytes::Text(text) => text,
        };
        let at = bytes.referenced.line();
        let read = text.parse::<ByteAmount>();
        let read = read.map_err(|why| wrong(at, &format!("budget: bytes_out_per_day: {why}")))?;
        cold.bytes_out_per_day = Some(read);
    }
    Ok(cold)
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;

    #[test]
    fn restores_and_budgets_of_a_store_hold_for_every_account_and_are_read_strictly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yml");
        let read = |keys: &str| {
            let text = format!(
                "stores:\n  cold: {{url: \"s3://cold\", endpoint: \"http://127.0.0.1:1\", {keys}}}\n\
                 catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
                 mill:\n  policies: {{directory: policies}}\n  accounts:\n\
                 \x20   one: {{stores: {{\"1\": cold}}, prefix: one, limits: {{cold: {{requests: 5}}}}}}\n\
                 \x20   two: {{stores: {{\"1\": cold}}, prefix: two}}\n"
            );
            std::fs::write(&path, text).unwrap();
            let read = ConfigFile::read(&path).map_err(|error| error.to_string())?;
            let accounts = read.mill().unwrap().accounts.values();
            let limits = accounts.flat_map(|account| account.limits.values().map(ToString::to_string));
            Ok::<_, String>(limits.collect::<Vec<_>>())
        };
        let both = "restore: {days: 3, tier: standard, poll: 1h, limit: 4d}, \
                    budget: {restores_per_day: 500, bytes_out_per_day: 100GiB}";
        let cold = "has what is archived restored for 3 days (standard), at most 500 items a day; \
                    is read at most 100 GiB a day";
        assert_eq!(read(both).unwrap(), [format!("at most 5 requests a second; {cold}"), cold.to_owned()]);
        let default = "has what is archived restored for 2 days (bulk), at most 1000 items a day";
        assert_eq!(read("restore: {}").unwrap()[1], default);
        assert_eq!(read("budget: {bytes_out_per_day: 1000}").unwrap()[1], "is read at most 1000 B a day");
        assert_eq!(read("storage_class: GLACIER").unwrap(), ["at most 5 requests a second"]);
        for (wrong, expected) in [
            ("restore: {days: 0}", "stores: cold: restore: days is from 1 to 365"),
            ("restore: {tier: fast}", "stores: cold: restore: tier: expected bulk, standard or expedited"),
            ("restore: {poll: 0s}", "stores: cold: restore: poll: expected a duration of at least 1s"),
            ("restore: {limit: soon}", "stores: cold: restore: limit: expected a duration"),
            ("restore: {hours: 3}", "hours"),
            (
                "budget: {restores_per_day: 5}",
                "stores: cold: budget: restores_per_day is only valid for a store with restore",
            ),
            ("restore: {}, budget: {restores_per_day: 0}", "stores: cold: budget: restores_per_day must be at least 1"),
            (
                "budget: {bytes_out_per_day: 1GB}",
                "stores: cold: budget: bytes_out_per_day: expected bytes, such as 100GiB",
            ),
        ] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains(expected) && why.contains("line 2"), "{wrong}: {why}");
        }
    }
}
