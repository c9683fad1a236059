//! Which daemons run in a process.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

/// How much of a text is kept, in characters.
const MOST_CHARS: usize = 255;

/// How many daemons of a process are kept: more than there are kinds of them.
const MOST_DAEMONS: usize = 32;

/// `/queuekeeper/daemons/SESSION`: a process that works on the queue, and ends with the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonNote {
    /// The name of its host: letters, digits, and `.`, `_`, `:`, `-`.
    pub host: String,
    /// Its process number there.
    pub pid: u32,
    /// The version of the program.
    pub version: String,
    /// Since when it works, by its host's clock.
    pub since: Timestamp,
    /// The UUID of its working storage.
    pub volume: String,
    /// How many workers each of its daemons has, by the daemon's name: for those that work on jobs, the name of the
    /// state in lower case.
    pub workers: BTreeMap<String, u32>,
    /// The mail that waits, where it has waited for some minutes.
    pub mail: Option<MailNote>,
}

/// Mail that no process has delivered yet, as the process found it in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailNote {
    /// How many mails wait.
    pub waiting: u64,
    /// Since when the oldest does, by the clock of the process's host.
    pub since: Timestamp,
    /// How the last attempt of this process failed; empty where it has made none.
    pub why: String,
}

#[derive(Deserialize)]
struct MailForm {
    waiting: u64,
    since: i64,
    why: String,
}

#[derive(Deserialize)]
struct DaemonForm {
    host: String,
    pid: u32,
    version: String,
    since: i64,
    volume: String,
    workers: BTreeMap<String, u32>,
    /// Absent where none waits, and in notes of earlier versions.
    mail: Option<MailForm>,
}

impl DaemonNote {
    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let DaemonForm { host, pid, version, since, volume, workers, mail } = serde_json::from_slice(data).ok()?;
        let short = |text: String| text.chars().take(MOST_CHARS).collect::<String>();
        let is_of_name = |character: &char| character.is_alphanumeric() || "._:-".contains(*character);
        Some(Self {
            host: host.chars().filter(is_of_name).take(MOST_CHARS).collect(),
            pid,
            version: short(version),
            since: Timestamp::from_millisecond(since).ok()?,
            volume: short(volume),
            workers: workers.into_iter().take(MOST_DAEMONS).map(|(name, workers)| (short(name), workers)).collect(),
            mail: match mail {
                Some(MailForm { waiting, since, why }) => {
                    Some(MailNote { waiting, since: Timestamp::from_millisecond(since).ok()?, why: short(why) })
                }
                None => None,
            },
        })
    }

    /// The znode's data; times are in milliseconds since 1970.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { host, pid, version, since, volume, workers, mail } = self;
        let mut form = json!({
            "host": host, "pid": pid, "version": version, "since": since.as_millisecond(), "volume": volume,
            "workers": workers,
        });
        if let Some(MailNote { waiting, since, why }) = mail {
            form["mail"] = json!({ "waiting": waiting, "since": since.as_millisecond(), "why": why });
        }
        form.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let note = DaemonNote {
            host: "worker1".to_owned(),
            pid: 7,
            version: "0.1.0".to_owned(),
            since: Timestamp::from_millisecond(1_000).unwrap(),
            volume: "a-uuid".to_owned(),
            workers: BTreeMap::from([("downloading".to_owned(), 8)]),
            mail: None,
        };
        let mail = MailNote { waiting: 3, since: note.since, why: "refused".to_owned() };
        let mailing = DaemonNote { mail: Some(mail), ..note.clone() };
        assert_eq!(DaemonNote::decode(&mailing.encode()), Some(mailing));
        assert_eq!(DaemonNote::decode(&note.encode()), Some(note.clone()));
        let workers = (0..100).map(|daemon| (format!("{daemon:03}{}", "x".repeat(300)), daemon)).collect();
        let large = DaemonNote { host: "é".repeat(5_000), workers, ..note };
        let read = DaemonNote::decode(&large.encode()).unwrap();
        assert_eq!((read.host.chars().count(), read.workers.len()), (MOST_CHARS, MOST_DAEMONS));
        let odd = DaemonNote { host: "a b\n\u{202e}<c>".to_owned(), ..read.clone() };
        assert_eq!(DaemonNote::decode(&odd.encode()).unwrap().host, "abc");
        assert!(read.workers.keys().all(|name| name.len() == MOST_CHARS));
        for wrong in [
            &b""[..],
            b"{}",
            b"[]",
            b"\xff",
            br#"{"host":"a","pid":1,"version":"","since":0,"volume":"","workers":{},"mail":{}}"#,
            br#"{"host":"a","pid":-1,"version":"","since":0,"volume":"","workers":{}}"#,
        ] {
            assert_eq!(DaemonNote::decode(wrong), None);
        }
    }
}
