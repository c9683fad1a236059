//! Which daemons run in a process.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::id::BatchId;
use crate::path::Path;

/// How much of a text is kept, in characters.
const MOST_CHARS: usize = 255;

/// How many daemons of a process are kept: more than there are kinds of them.
const MOST_DAEMONS: usize = 32;

/// How many batches that wait a note names.
const MOST_WAITS: usize = 20;

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
    /// The batches that it gave back before all their jobs existed, and takes again, at most twenty of them.
    pub waits: Vec<BatchWait>,
}

impl DaemonNote {
    /// Whether the process gave a batch back, to take it again; of one that names as many as it may, each may be.
    #[must_use]
    pub fn may_have_given_back(&self, batch: BatchId) -> bool {
        self.waits.len() >= MOST_WAITS || self.waits.iter().any(|wait| wait.batch == batch)
    }
}

/// A batch that a process gave back before all its jobs existed, and takes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchWait {
    /// The batch.
    pub batch: BatchId,
    /// Since when it waits, by the clock of the process's host.
    pub since: Timestamp,
    /// How many attempts have failed; 0 where none has, and it waits for something else.
    pub attempts: u32,
    /// The folder that has no room for its jobs, where it waits for that.
    pub full: Option<Path>,
    /// What the last attempt failed by, or what it waits for, one sentence; empty where a folder says that.
    pub why: String,
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
struct WaitForm {
    batch: String,
    since: i64,
    attempts: u32,
    full: Option<String>,
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
    /// Likewise.
    #[serde(default)]
    waits: Vec<WaitForm>,
}

impl DaemonNote {
    /// Reads the znode's data; `None` for what is not in this form.
    #[must_use]
    pub fn decode(data: &[u8]) -> Option<Self> {
        let DaemonForm { host, pid, version, since, volume, workers, mail, waits } =
            serde_json::from_slice(data).ok()?;
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
            waits: waits.into_iter().take(MOST_WAITS).map(BatchWait::read).collect::<Option<_>>()?,
        })
    }

    /// The znode's data; times are in milliseconds since 1970.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { host, pid, version, since, volume, workers, mail, waits } = self;
        let mut form = json!({
            "host": host, "pid": pid, "version": version, "since": since.as_millisecond(), "volume": volume,
            "workers": workers,
        });
        if let Some(MailNote { waiting, since, why }) = mail {
            form["mail"] = json!({ "waiting": waiting, "since": since.as_millisecond(), "why": why });
        }
        if !waits.is_empty() {
            form["waits"] = waits.iter().take(MOST_WAITS).map(BatchWait::form).collect();
        }
        form.to_string().into_bytes()
    }
}

impl BatchWait {
    fn read(form: WaitForm) -> Option<Self> {
        let WaitForm { batch, since, attempts, full, why } = form;
        Some(Self {
            batch: batch.parse().ok()?,
            since: Timestamp::from_millisecond(since).ok()?,
            attempts,
            full: full.map(|full| Path::parse(&full)),
            why: why.chars().take(MOST_CHARS).collect(),
        })
    }

    fn form(&self) -> Value {
        let Self { batch, since, attempts, full, why } = self;
        json!({
            "batch": batch.to_string(), "since": since.as_millisecond(), "attempts": attempts,
            "full": full.as_ref().map(ToString::to_string), "why": why.chars().take(MOST_CHARS).collect::<String>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_was_given_back_where_it_is_named_and_may_have_been_where_there_is_no_room_to_name_it() {
        let note = |waits: usize| {
            let wait = |number: u32| BatchWait {
                batch: BatchId::new(number),
                since: Timestamp::UNIX_EPOCH,
                attempts: 1,
                full: None,
                why: String::new(),
            };
            DaemonNote {
                host: String::new(),
                pid: 1,
                version: String::new(),
                since: Timestamp::UNIX_EPOCH,
                volume: String::new(),
                workers: BTreeMap::new(),
                mail: None,
                waits: (0..).map(wait).take(waits).collect(),
            }
        };
        let (first, unnamed) = (BatchId::new(0), BatchId::new(1_000));
        for (waits, expected) in [
            (0, [false, false]),
            (1, [true, false]),
            (MOST_WAITS - 1, [true, false]),
            (MOST_WAITS, [true, true]),
            (MOST_WAITS + 1, [true, true]),
        ] {
            let note = note(waits);
            assert_eq!([first, unnamed].map(|batch| note.may_have_given_back(batch)), expected, "{waits}");
        }
    }

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
            waits: Vec::new(),
        };
        let mail = MailNote { waiting: 3, since: note.since, why: "refused".to_owned() };
        let mailing = DaemonNote { mail: Some(mail), ..note.clone() };
        assert_eq!(DaemonNote::decode(&mailing.encode()), Some(mailing));
        let room = BatchWait {
            batch: BatchId::new(7),
            since: note.since,
            attempts: 0,
            full: Some(Path::Jobs),
            why: String::new(),
        };
        let tried = BatchWait { attempts: 2, full: None, why: "503 from host".to_owned(), ..room.clone() };
        let waiting = DaemonNote { waits: vec![room, tried], ..note.clone() };
        assert_eq!(DaemonNote::decode(&waiting.encode()), Some(waiting));
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
