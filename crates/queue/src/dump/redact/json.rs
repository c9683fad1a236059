//! Values that are JSON: each text replaced by what its key allows, everything else as it is. A key that stands twice
//! still does, and a value of the wrong kind is still of that kind.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Redaction, word};
use crate::record::OperatorNote;
use crate::time;

/// How deep values are followed. The reader itself gives up at 128.
const DEPTH: u8 = 100;

/// What may be shown of a key's texts, besides ids and words of closed sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing, nor numbers in their place.
    Nothing,
    /// Nothing but numbers: the meaning of the key is unknown.
    Numbers,
    /// The names of states.
    States,
    /// Instants.
    Times,
    /// One text may contain several local ids.
    Parts,
    /// `action/node/ark`.
    Mode,
    /// That an operator wrote it, and nothing of who and why.
    Message,
}

/// What may be shown of a key's texts; `None` for an unknown key, whose name may itself reveal something.
fn shown(key: &str) -> Option<Shown> {
    Some(match key {
        "status" | "last_successful_status" => Shown::States,
        "last_modified"
        | "last_modification_date"
        | "submissionDate"
        | "anticipated-availability-time"
        | "expiration-time"
        | "since" => Shown::Times,
        "localID" | "local_id" => Shown::Parts,
        "mode" => Shown::Mode,
        "retry_count" | "size" | "cloud-content-byte" | "delivery-node" | "type" | "responseForm" | "digestType"
        | "update" | "delete" | "failed_jobs" | "successful_jobs" | "version" | "format" | "content" => Shown::Numbers,
        "batchID" | "jobID" | "profile" | "profile_name" | "submitter" | "filename" | "creator" | "title" | "date"
        | "objectID" | "primary_id" | "primary" | "erc_who" | "erc_what" | "erc_when" | "erc_where"
        | "manifest_url" | "token" | "url" | "object" | "digestValue" | "who" | "why" => Shown::Nothing,
        "message" => Shown::Message,
        _ => return None,
    })
}

/// The value with its texts replaced; `None` for what is not JSON.
pub(super) fn redact(redaction: &Redaction, data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?.trim_ascii();
    if text.is_empty() {
        return Some(data.to_vec());
    }
    let mut out = Vec::with_capacity(data.len());
    let mut reader = serde_json::Deserializer::from_str(text);
    let seed = Value { redaction, shown: Shown::Numbers, depth: 0, out: &mut out };
    seed.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(out)
}

struct Value<'a> {
    redaction: &'a Redaction,
    shown: Shown,
    depth: u8,
    out: &'a mut Vec<u8>,
}

impl Value<'_> {
    fn write(self, value: &(impl serde::Serialize + ?Sized)) {
        serde_json::to_writer(self.out, value).expect("texts and numbers are written to memory");
    }

    fn number(self, number: &impl ToString, value: &impl serde::Serialize) {
        if self.shown == Shown::Nothing || self.shown == Shown::Parts {
            let pseudonym = self.redaction.pseudonym(&number.to_string());
            self.write(&pseudonym);
        } else {
            self.write(value);
        }
    }

    fn inner(&mut self, shown: Shown) -> Value<'_> {
        Value { redaction: self.redaction, shown, depth: self.depth + 1, out: self.out }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth < DEPTH {
            return deserializer.deserialize_any(self);
        }
        deserializer.deserialize_ignored_any(IgnoredAny)?;
        self.write("redacted: too deep");
        Ok(())
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<(), E> {
        self.write(&truth);
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.number(&number, &number);
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.number(&number, &number);
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.number(&number, &number);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let shown = self.redaction.text(self.shown, text);
        self.write(shown.as_deref().unwrap_or(text));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.out.push(b'[');
        let start = self.out.len();
        loop {
            let before = self.out.len();
            if before > start {
                self.out.push(b',');
            }
            let shown = self.shown;
            if items.next_element_seed(self.inner(shown))?.is_none() {
                self.out.truncate(before);
                break;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.out.push(b'{');
        let mut is_first = true;
        while let Some(key) = entries.next_key::<String>()? {
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            let known = shown(&key);
            let name = if known.is_some() { key } else { self.redaction.pseudonym(&key) };
            self.inner(Shown::Numbers).write(&name);
            self.out.push(b':');
            entries.next_value_seed(self.inner(known.unwrap_or(Shown::Numbers)))?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

impl Redaction {
    /// What stands for a text; `None` where it may be shown.
    fn text(&self, shown: Shown, text: &str) -> Option<String> {
        if text.trim().is_empty() || word::is_id(text) || word::is_word(text) {
            return None;
        }
        let pseudonym = || Some(self.pseudonym(text));
        match shown {
            Shown::Numbers if word::is_number(text.as_bytes()) => None,
            Shown::States if word::is_state(text) || word::is_number(text.as_bytes()) => None,
            Shown::Nothing | Shown::Numbers => pseudonym(),
            Shown::States => Some(self.pseudonym(&text.to_lowercase())),
            // Rewritten: zones and weekdays are read more generously than they would have to be.
            Shown::Times => time::read(text).map(time::write).or_else(pseudonym),
            Shown::Parts => {
                let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
                Some(parts.map(|part| self.pseudonym(part)).collect::<Vec<_>>().join(";"))
            }
            Shown::Message => match OperatorNote::read(text) {
                Some(note) => {
                    let (who, why) = (self.pseudonym(note.who), self.pseudonym(note.why));
                    Some(OperatorNote { who: &who, why: &why }.to_string())
                }
                None => pseudonym(),
            },
            Shown::Mode => match text.splitn(3, '/').collect::<Vec<_>>()[..] {
                [action, node, ark] if word::is_word(action) && word::is_number(node.as_bytes()) => {
                    Some(format!("{action}/{node}/{}", self.pseudonym(ark)))
                }
                _ => pseudonym(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Configuration, Identifiers, JobStatus, Malformed};

    fn redacted(text: &str) -> String {
        String::from_utf8(redact(&Redaction::new(&[7; 32]), text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn states_times_sizes_and_ids_stay_and_nothing_else() {
        let status = r#"{"status":"Teleporting","last_successful_status":"provisioning","retry_count":"2","last_modified":"Mon Mar 02 10:15:31 PST 2026","message":"no route to bob","bob":[7,"bob",{"bob":true}]}"#;
        let shown = redacted(status);
        assert!(!shown.contains("bob") && !shown.contains("Teleporting"), "{shown}");
        let shown = JobStatus::decode(shown.as_bytes()).value;
        assert_eq!((shown.retry_count, shown.last_successful.map(|state| state as u8)), (Some(2), Some(2)));
        for text in [
            r#"{"status":"PENDING","message":"","retry_count":3}"#,
            r#"{"last_modified":"2026-03-02 18:15:31 +0000","size":"48211","type":"container","update":false}"#,
            r#"{"failed_jobs":["jid0000000042"],"successful_jobs":[]}"#,
            r#"{"status":200,"cloud-content-byte":500000000000,"delivery-node":7001}"#,
        ] {
            assert_eq!(redacted(text), text);
        }
        let noted = redacted(r#"{"message":"By bob with queuekeeper: bob's court"}"#);
        let note = noted.strip_prefix(r#"{"message":""#).and_then(OperatorNote::read);
        assert!(note.is_some() && !noted.contains("bob"), "{noted}");
        assert!(redacted(r#"{"mode":"add/9501/ark:/99999/bob"}"#).starts_with(r#"{"mode":"add/9501/x"#));
        assert!(!redacted(r#"{"localID":4711,"since":"Bob Mar 02 10:15:31 PST 2026"}"#).contains("4711"));
        assert!(!redacted(r#"{"since":"Bob Mar 02 10:15:31 PST 2026"}"#).contains("Bob"));
    }

    #[test]
    fn what_is_wrong_with_a_value_is_wrong_with_it_afterwards() {
        let twice = redacted(r#"{"status":"Failed","status":"Failed"}"#);
        assert_eq!(JobStatus::decode(twice.as_bytes()).malformed, Some(Malformed::RepeatedKey));
        let wrong = redacted(r#"{"status":"Failed","retry_count":"often"}"#);
        assert!(matches!(JobStatus::decode(wrong.as_bytes()).malformed, Some(Malformed::Wrong { .. })));
        let nested = redacted(r#"{"primary_id":["bob"],"local_id":[["bob"]]}"#);
        assert!(Identifiers::decode(nested.as_bytes()).malformed.is_some() && !nested.contains("bob"));
        let parts = redacted(r#"{"localID":"a; b;"}"#);
        assert_eq!(Configuration::decode(parts.as_bytes()).value.local_ids.len(), 2);
        assert_eq!(redacted("null"), "null");
        for text in ["{", "{}{}", "bob", "[1,]"] {
            assert_eq!(redact(&Redaction::new(&[7; 32]), text.as_bytes()), None, "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert!(redacted(&format!(r#"{{"odd":{deep}}}"#)).contains("too deep"));
    }

    #[test]
    fn each_key_shows_what_reveals_nothing_and_hides_the_rest() {
        for shown in [
            r#"{"status":"UpdateReporting","last_successful_status":"storing"}"#,
            r#"{"status":"200","retry_count":" 2 ","size":"-1"}"#,
            r#"{"type":"container","title":"","filename":" ","creator":"jid0000000042"}"#,
            r#"{"title":null,"filename":true,"delete":[]}"#,
        ] {
            assert_eq!(redacted(shown), shown);
        }
        for (key, value) in [
            ("status", r#""Bob""#),
            ("type", r#""bob""#),
            ("retry_count", r#""4711x""#),
            ("last_modified", r#""bob""#),
            ("title", "4711"),
            ("title", "-4711"),
            ("title", "4711.5"),
            ("localID", "4711"),
            ("localID", r#""bob; 4711""#),
            ("mode", r#""bob/4711/ark:/1/2""#),
            ("mode", r#""add/bob/ark:/1/2""#),
            ("mode", r#""add/4711""#),
            ("message", r#""bob""#),
            ("who", r#""bob""#),
        ] {
            let shown = redacted(&format!(r#"{{"{key}":{value}}}"#));
            let is_hidden = !shown.to_lowercase().contains("bob") && !shown.contains("4711");
            assert!(is_hidden && shown.starts_with(&format!(r#"{{"{key}":""#)), "{shown}");
        }
        assert_eq!(redacted(r#"{"status":"Bob"}"#), redacted(r#"{"status":"BOB"}"#), "one state in any spelling");
        assert_eq!(redact(&Redaction::new(&[7; 32]), b" \n"), Some(b" \n".to_vec()));
        assert_eq!(redact(&Redaction::new(&[7; 32]), b"\xff"), None);
    }

    #[test]
    fn values_are_followed_as_deep_as_their_reader_goes_and_no_deeper() {
        let nested = |depth: usize, value: &str| format!("{}{value}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(redacted(&nested(99, "1")), nested(99, "1"));
        assert_eq!(redacted(&nested(100, "1")), nested(100, r#""redacted: too deep""#));
        assert_eq!(redacted("[1,[2,3],{}]"), "[1,[2,3],{}]");
    }
}
