//! Dumps that may be passed on: what could reveal who deposits what is replaced by pseudonyms.
//!
//! A pseudonym is a keyed hash whose key is made for one dump and kept nowhere, so no dictionary of ARKs leads back.
//! The same text has the same pseudonym in values and in the names of locks, where `:/` and `/` are written `_`. What
//! makes a fault stays as it is: what cannot be read still cannot, what contradicts still does.

use std::borrow::Cow;
use std::fmt::Write as _;

use aws_lc_rs::hmac;

use crate::path::{BatchNode, JobNode, LockFolder, Path, RequestNode, StateFolder, lock_name};
use crate::record;

mod json;
mod word;

/// Replaces what could reveal who deposits what.
#[derive(Debug)]
pub struct Redaction {
    key: hmac::Key,
}

impl Redaction {
    /// A redaction whose pseudonyms cannot be guessed without that key. Use a random key for each dump, and discard it.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }

    /// The pseudonym of a text: 64 bits, so that a million texts do not collide.
    fn pseudonym(&self, text: &str) -> String {
        let tag = hmac::sign(&self.key, lock_name(text).as_bytes());
        let mut pseudonym = String::from("x");
        for byte in &tag.as_ref()[..8] {
            write!(pseudonym, "{byte:02x}").expect("writing to a String does not fail");
        }
        pseudonym
    }

    /// The name that a child is shown by.
    pub(super) fn name<'a>(&self, parent: &Path, name: &'a str) -> Cow<'a, str> {
        let is_shown = word::is_id(name)
            || match parent.any_child(name) {
                Path::BatchUuid(_)
                | Path::NamedLock(..)
                | Path::PublishedLocalId(_)
                | Path::StateFolder(StateFolder::Other(_))
                | Path::Unexpected(_) => false,
                Path::StateFolder(StateFolder::Known(_))
                | Path::Root
                | Path::BatchUuids
                | Path::Batches
                | Path::Batch(_)
                | Path::BatchNode(..)
                | Path::BatchOutcome(..)
                | Path::Reference(..)
                | Path::Jobs
                | Path::Job(_)
                | Path::JobNode(..)
                | Path::JobStates
                | Path::Entry(..)
                | Path::Access
                | Path::AccessQueue(_)
                | Path::Request(..)
                | Path::RequestNode(..)
                | Path::Locks
                | Path::QueueLocks
                | Path::QueueLock(_)
                | Path::LockFolder(_)
                | Path::PublishedLocalIds
                | Path::Foreign
                | Path::Own(_) => true,
            };
        if is_shown {
            return name.into();
        }
        // A folder of an unknown state is shown as the state is in a status, which may spell it otherwise.
        let is_state = *parent == Path::JobStates;
        let mut shown = if is_state { self.pseudonym(&name.to_lowercase()) } else { self.pseudonym(name) };
        if name.len() > StateFolder::LONGEST {
            // Too long for a state's folder, and so it stays.
            shown.push_str(&"x".repeat(StateFolder::LONGEST));
        }
        shown.into()
    }

    /// The value that a znode is shown with.
    #[must_use]
    pub fn data<'a>(&self, path: &Path, data: &'a [u8]) -> Cow<'a, [u8]> {
        if data.is_empty() {
            return data.into();
        }
        match path {
            Path::BatchUuid(_) | Path::JobNode(_, JobNode::Bid) => {
                shown_if(record::bid(data).is_ok() || record::misnamed_bid(data).is_some(), data)
            }
            Path::JobNode(_, JobNode::Priority | JobNode::SpaceNeeded) => shown_if(word::is_number(data), data),
            Path::JobNode(
                _,
                JobNode::Configuration
                | JobNode::Status
                | JobNode::Identifiers
                | JobNode::Identifier
                | JobNode::Metadata
                | JobNode::Store
                | JobNode::Inventory,
            )
            | Path::BatchNode(_, BatchNode::Submission | BatchNode::Status | BatchNode::StatusReport)
            | Path::RequestNode(_, _, RequestNode::Token | RequestNode::Status)
            | Path::QueueLock(_)
            | Path::NamedLock(LockFolder::Collections, _) => match json::redact(self, data) {
                Some(shown) => Cow::Owned(shown),
                None => length(data).into(),
            },
            Path::Root
            | Path::BatchUuids
            | Path::Batches
            | Path::Batch(_)
            | Path::BatchNode(_, BatchNode::Lock | BatchNode::States)
            | Path::BatchOutcome(..)
            | Path::Reference(..)
            | Path::Jobs
            | Path::Job(_)
            | Path::JobNode(_, JobNode::Lock)
            | Path::JobStates
            | Path::StateFolder(_)
            | Path::Entry(..)
            | Path::Access
            | Path::AccessQueue(_)
            | Path::Request(..)
            | Path::RequestNode(_, _, RequestNode::Lock)
            | Path::Locks
            | Path::QueueLocks
            | Path::LockFolder(_)
            | Path::NamedLock(LockFolder::Storage | LockFolder::Inventory | LockFolder::LocalId, _)
            | Path::PublishedLocalIds
            | Path::PublishedLocalId(_)
            | Path::Foreign
            | Path::Own(_)
            | Path::Unexpected(_) => length(data).into(),
        }
    }
}

fn shown_if(is_shown: bool, data: &[u8]) -> Cow<'_, [u8]> {
    if is_shown || data.iter().all(u8::is_ascii_whitespace) { data.into() } else { length(data).into() }
}

/// What stands for a value that is shown by its length alone. It is as undecodable as the value was: neither JSON, nor
/// a number or an id, and not UTF-8 where that was not.
fn length(data: &[u8]) -> Vec<u8> {
    let mut shown = if std::str::from_utf8(data).is_ok() { Vec::new() } else { vec![0xff] };
    shown.extend_from_slice(format!("redacted: {} bytes", data.len()).as_bytes());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ark_has_one_pseudonym_in_values_and_in_the_names_of_locks() {
        let redaction = Redaction::new(&[7; 32]);
        let name = redaction.name(&Path::LockFolder(LockFolder::Storage), "ark_99999_fk4x").into_owned();
        let path = Path::parse("/jobs/jid0000000042/identifiers");
        let shown = redaction.data(&path, br#"{"primary_id":"ark:/99999/fk4x","local_id":["a;b"]}"#);
        let shown = String::from_utf8(shown.into_owned()).unwrap();
        assert!(shown.contains(&format!(r#""primary_id":"{name}""#)), "{shown}");
        assert_ne!(name, Redaction::new(&[8; 32]).pseudonym("ark:/99999/fk4x"));
    }

    #[test]
    fn what_cannot_be_decoded_stays_so_and_only_its_length_is_reported() {
        let redaction = Redaction::new(&[7; 32]);
        for (path, data) in [
            ("/jobs/jid0000000042/bid", &b"bob's batch"[..]),
            ("/jobs/jid0000000042/priority", b"very \xff urgent"),
            ("/jobs/jid0000000042/space_needed", b"a lot"),
            ("/jobs/jid0000000042/status", br#"{"status":"Failed","message":"bob"#),
            ("/jobs/jid0000000042/configuration", b"{\"title\":\"bob \xff\"}"),
            ("/notes", br#"{"bob":"bob"}"#),
        ] {
            let shown = redaction.data(&Path::parse(path), data).into_owned();
            let text = String::from_utf8_lossy(&shown);
            assert!(text.ends_with(&format!("redacted: {} bytes", data.len())), "{path}: {text}");
            assert_eq!(std::str::from_utf8(&shown).is_ok(), std::str::from_utf8(data).is_ok(), "{path}");
            assert!(record::object_form(&shown).is_err() && record::bid(&shown).is_err());
            assert!(record::priority(&shown).is_err() && record::space_needed(&shown).is_err());
        }
        for kept in ["bid0000000042\n", " ", ""] {
            assert_eq!(*redaction.data(&Path::parse("/jobs/jid0000000042/bid"), kept.as_bytes()), *kept.as_bytes());
        }
        assert_eq!(*redaction.data(&Path::parse("/jobs/jid0000000042/priority"), b"100"), *b"100");
    }

    #[test]
    fn names_of_the_queue_are_shown_and_those_that_others_chose_are_not() {
        let redaction = Redaction::new(&[7; 32]);
        for (parent, name, is_shown) in [
            ("/", "jobs", true),
            ("/jobs", "states", true),
            ("/jobs/states", "storing", true),
            ("/jobs/states", "Teleporting", false),
            ("/jobs/states/storing", "05-jid0000000042", true),
            ("/jobs/jid0000000042", "status", true),
            ("/jobs/jid0000000042", "bob", false),
            ("/locks/queue", "ingest", true),
            ("/locks/queue/localid", "bob_ark", false),
            ("/locks/collections", "bob", false),
            ("/batch-uuids", "bid-9c1a", false),
            ("/odd", "jid42", true),
        ] {
            let found = redaction.name(&Path::parse_whole(parent), name);
            assert_eq!(found == name, is_shown, "{parent}/{name}: {found}");
        }
        // A state that is not known has one name, in whatever spelling a status has it.
        let states = ["Teleporting", "teleporting"].map(|name| redaction.name(&Path::JobStates, name));
        let status = redaction.data(&Path::parse("/jobs/jid0000000042/status"), br#"{"status":"TELEPORTING"}"#);
        assert_eq!(states[0], states[1]);
        assert_eq!(*status, *format!(r#"{{"status":"{}"}}"#, states[0]).as_bytes());
        let [bob, other] = ["Bob", "bob"].map(|name| redaction.name(&Path::parse("/locks/collections"), name));
        assert_ne!(bob, other);
        // What no state's folder can be called because of its length still cannot.
        for (length, is_long) in [(255, false), (256, true)] {
            let name = "b".repeat(length);
            let shown = redaction.name(&Path::JobStates, &name);
            assert_eq!(shown.len() > StateFolder::LONGEST, is_long, "{length}");
        }
    }

    #[test]
    fn ids_and_numbers_are_shown_where_the_daemons_read_them() {
        let redaction = Redaction::new(&[7; 32]);
        for (path, data, is_shown) in [
            ("/jobs/jid0000000042/bid", "bid0000000007", true),
            ("/jobs/jid0000000042/bid", "bid7", true),
            ("/batch-uuids/u", "bid0000000007", true),
            ("/batch-uuids/u", "bob", false),
            ("/jobs/jid0000000042/space_needed", "-1", true),
            ("/jobs/jid0000000042/lock", "bob", false),
            ("/locks/queue/ingest", r#"{"since":"2026-03-02 18:15:31 +0000"}"#, true),
            ("/locks/storage/ark_1_2", r#"{"since":"2026-03-02 18:15:31 +0000"}"#, false),
        ] {
            let found = redaction.data(&Path::parse(path), data.as_bytes());
            let expected = if is_shown { data.to_owned() } else { format!("redacted: {} bytes", data.len()) };
            assert_eq!(String::from_utf8_lossy(&found), expected, "{path}");
        }
    }
}
