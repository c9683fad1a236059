//! What an account is allowed in its stores.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU64;

use queuekeeper_mill::limits::{Bandwidth, Hours, KeyPattern, StoreLimits};
use queuekeeper_store::StoreName;
use serde::Deserialize;
use serde_saphyr::Spanned;

/// The keys of the limits in a store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    hours: Option<Spanned<HoursKeys>>,
    bandwidth: Option<Spanned<Number>>,
    requests: Option<Spanned<u64>>,
    leave_out: Option<Vec<Spanned<String>>>,
    read_from: Option<Spanned<String>>,
    proof: Option<Spanned<String>>,
    repair: Option<Spanned<String>>,
    write_once: Option<bool>,
    adopt: Option<Spanned<String>>,
}

/// The keys of hours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoursKeys {
    time_zone: String,
    windows: Vec<String>,
}

/// A number of bytes, with a unit or without.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected bytes per second, such as 20MiB or 512KiB")]
enum Number {
    Bytes(u64),
    Text(String),
}

/// A line, and what is wrong there: it names the key and says what to write.
pub(super) type Wrong = (u64, String);

/// Checks the limits of an account with these stores.
pub(super) fn check(
    keys: BTreeMap<String, Spanned<Keys>>,
    stores: &BTreeSet<StoreName>,
) -> Result<BTreeMap<StoreName, StoreLimits>, Wrong> {
    let known = |name: &str| {
        let store = stores.iter().find(|store| store.as_str() == name).cloned();
        let all: Vec<_> = stores.iter().map(StoreName::as_str).collect();
        store.ok_or_else(|| format!("{name} is not a store of the account; expected one of {}", all.join(", ")))
    };
    let mut all = BTreeMap::new();
    for (name, keys) in keys {
        let store = known(&name).map_err(|why| (keys.referenced.line(), format!("limits: {why}")))?;
        let wrong = |line: u64, key: &str, why: &dyn fmt::Display| (line, format!("limits: {name}: {key}: {why}"));
        let Keys { hours, bandwidth, requests, leave_out, read_from, proof, repair, write_once, adopt } = keys.value;
        let mut limits = StoreLimits { is_write_once: write_once.unwrap_or(false), ..StoreLimits::default() };
        if let Some(hours) = hours {
            let HoursKeys { time_zone, windows } = hours.value;
            let read = Hours::new(&time_zone, &windows);
            limits.hours = Some(read.map_err(|why| wrong(hours.referenced.line(), "hours", &why))?);
        }
        if let Some(number) = bandwidth {
            let text = match number.value {
                Number::Bytes(bytes) => bytes.to_string(),
                Number::Text(text) => text,
            };
            let read = text.parse::<Bandwidth>();
            limits.bandwidth = Some(read.map_err(|why| wrong(number.referenced.line(), "bandwidth", &why))?);
        }
        if let Some(number) = requests {
            let why = "expected a number per second, at least 1; remove the key for no limit";
            let read = NonZeroU64::new(number.value);
            limits.requests = Some(read.ok_or_else(|| wrong(number.referenced.line(), "requests", &why))?);
        }
        for pattern in leave_out.unwrap_or_default() {
            let read = pattern.value.parse::<KeyPattern>();
            limits.leave_out.push(read.map_err(|why| wrong(pattern.referenced.line(), "leave_out", &why))?);
        }
        if let Some(other) = read_from {
            let line = other.referenced.line();
            let read = known(&other.value).map_err(|why| wrong(line, "read_from", &why))?;
            if read == store {
                return Err(wrong(line, "read_from", &"it is the store itself; expected another store of the account"));
            }
            limits.read_from = Some(read);
        }
        if let Some(proof) = proof {
            let read = proof.value.parse();
            limits.proof = read.map_err(|why: String| wrong(proof.referenced.line(), "proof", &why))?;
        }
        if let Some(repair) = repair {
            let read = repair.value.parse();
            limits.repair = read.map_err(|why: String| wrong(repair.referenced.line(), "repair", &why))?;
        }
        if let Some(adopt) = adopt {
            let read = adopt.value.parse();
            limits.adopt = read.map_err(|why: String| wrong(adopt.referenced.line(), "adopt", &why))?;
        }
        all.insert(store, limits);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::super::ConfigFile;

    #[test]
    fn limits_are_read_strictly_and_what_is_wrong_is_named_with_what_to_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yml");
        let read = |limits: &str| {
            let text = format!(
                "stores: {{main: {{url: \"file:///a\"}}, replica: {{url: \"file:///b\"}}}}\n\
                 catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
                 mill:\n  policies: {{directory: policies}}\n  accounts:\n    one:\n\
                 \x20     stores: {{\"1\": main, \"2\": replica}}\n      limits:\n        {limits}\n"
            );
            std::fs::write(&path, text).unwrap();
            let read = ConfigFile::read(&path).map_err(|error| error.to_string())?;
            let limits = read.mill().unwrap().accounts["one"].limits.iter();
            Ok::<_, String>(limits.map(|(store, limits)| format!("{store}: {limits}")).collect::<Vec<_>>())
        };
        let all = "replica: {hours: {time_zone: Europe/Berlin, windows: [\"Sat,Sun 00:00-24:00\"]}, bandwidth: 20MiB, \
                   requests: 50, leave_out: [\"*.tmp\", \"cache/*\"]}\n        main: {read_from: replica, bandwidth: 1500, proof: read 1/12, repair: automatic, \
                   write_once: true, adopt: automatic}";
        assert_eq!(
            read(all).unwrap(),
            [
                "main: at most 1500 B a second; is read from replica; is checked by read 1/12; \
                 is repaired automatically; is written once; has what it stores adopted automatically",
                "replica: tasks start Sat,Sun 00:00-24:00 (Europe/Berlin); at most 20 MiB a second; \
                 at most 50 requests a second; leaves out *.tmp, cache/*",
            ]
        );
        for (wrong, expected) in [
            (
                "cold: {requests: 1}",
                "accounts: one: limits: cold is not a store of the account; expected one of main, replica",
            ),
            ("main: {pace: 1}", "pace"),
            ("main: {requests: 0}", "limits: main: requests: expected a number per second, at least 1"),
            ("main: {requests: -1}", "line 9"),
            ("main: {bandwidth: 20 MB}", "limits: main: bandwidth: expected bytes per second, such as 20MiB"),
            ("main: {bandwidth: 0}", "limits: main: bandwidth: expected"),
            ("main: {leave_out: [\"a[\"]}", "limits: main: leave_out: \"a[\" is not a pattern"),
            ("main: {proof: trust}", "limits: main: proof: expected read, provider, or a fraction such as read 1/12"),
            ("main: {repair: always}", "limits: main: repair: expected ask or automatic"),
            ("main: {adopt: never}", "limits: main: adopt: expected ask or automatic"),
            ("main: {write_once: often}", "line 9"),
            ("main: {read_from: main}", "limits: main: read_from: it is the store itself"),
            ("main: {read_from: cold}", "limits: main: read_from: cold is not a store of the account"),
            ("main: {hours: {windows: [\"Mon 01:00-02:00\"]}}", "time_zone"),
            ("main: {hours: {time_zone: UTC, windows: []}}", "limits: main: hours: there are no windows"),
            ("main: {hours: {time_zone: UTC, windows: [\"1-2\"]}}", "such as \"Mon-Fri 20:00-06:00\""),
            ("main: {hours: {time_zone: Mars, windows: [\"Mon 01:00-02:00\"]}}", "no time zone \"Mars\""),
        ] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains(expected) && why.contains("line 9"), "{wrong}: {why}");
        }
    }
}
