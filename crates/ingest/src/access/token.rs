//! What an access request asks for, as its token says it.
//!
//! The tokens of Merritt's own programs have `token`, `status`, `cloud-content-byte` and `delivery-node`: what is to be
//! assembled lies with their storage service, under that token. Ours say it themselves, in four more keys: `object`,
//! `version`, `format` and `content`.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use queuekeeper_queue::record::{self, Malformed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::ark::Ark;
use crate::name;
use crate::spec::object_of;

/// The namespace of the names of deliveries.
const DELIVERIES: Uuid = Uuid::from_u128(0x8f3b_0d52_61c7_4a19_b6de_7a04_93e5_2c1f);

/// The longest `token` that is taken, in bytes.
const MOST_TOKEN_BYTES: usize = 200;

/// How fast an archive is expected to be assembled, in bytes per second, and how long it takes at least.
const EXPECTED: (u64, i64) = (20 << 20, 5);

/// The form of an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A zip file.
    #[default]
    Zip,
    /// A tar file, not compressed.
    Tar,
}

/// Which files of a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// All of them.
    #[default]
    Full,
    /// Those that were deposited, without the ones that describe the object.
    Producer,
}

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedArchive {
    /// The token that its requester polls with.
    pub token: String,
    /// The object.
    pub ark: Ark,
    /// The number of the version; `None` for the newest one.
    pub version: Option<u32>,
    /// The form of the archive.
    pub format: Format,
    /// Which files of the version.
    pub extent: Extent,
}

/// No form of an archive, or no extent, has such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither {1} nor {2}")]
pub struct UnknownWord(String, &'static str, &'static str);

impl Format {
    /// Its name, which is also the extension of a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
        }
    }
}

impl Extent {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Producer => "producer",
        }
    }

    /// What the paths of its files begin with.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Full => "",
            Self::Producer => "producer/",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(self.name())
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = [Self::Zip, Self::Tar].into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| UnknownWord(name::shown(text), "zip", "tar"))
    }
}

impl FromStr for Extent {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = [Self::Full, Self::Producer].into_iter().find(|extent| extent.name() == text);
        known.ok_or_else(|| UnknownWord(name::shown(text), "full", "producer"))
    }
}

impl RequestedArchive {
    /// Reads the token of a request.
    ///
    /// # Errors
    /// One sentence on what is wrong with it.
    pub fn of(data: &[u8]) -> Result<Self, String> {
        let all = object_of("token", data)?;
        let text = |key: &str| match all.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(format!("{key} of the token is not a text")),
        };
        let token = text("token")?.ok_or("the token has no key token, by which its requester identifies it")?;
        if token.len() > MOST_TOKEN_BYTES {
            return Err(format!("token of the token has more than {MOST_TOKEN_BYTES} bytes"));
        }
        let ark = text("object")?.ok_or(
            "the token does not name its object; requests from Merritt's programs are assembled by Merritt's storage service",
        )?;
        let ark = ark.parse::<Ark>().map_err(|error| format!("object of the token: {error}"))?;
        let version = match all.get("version") {
            None | Some(Value::Null) => None,
            Some(version) => {
                let number = version.as_u64().and_then(|number| u32::try_from(number).ok());
                let number = number.ok_or("version of the token is not the number of a version")?;
                Some(number).filter(|number| *number > 0)
            }
        };
        let word = |key: &str, error: UnknownWord| format!("{key} of the token: {error}");
        let format =
            text("format")?.map_or(Ok(Format::default()), str::parse).map_err(|error| word("format", error))?;
        let extent = text("content")?.map_or(Ok(Extent::default()), str::parse);
        let extent = extent.map_err(|error| word("content", error))?;
        Ok(Self { token: token.to_owned(), ark, version, format, extent })
    }

    /// The token of a new request for so many bytes, which are to be delivered to the store of this number.
    #[must_use]
    pub fn token(&self, bytes: u64, node: u32, now: Timestamp) -> Vec<u8> {
        let (speed, least) = EXPECTED;
        let seconds = i64::try_from(bytes / speed).unwrap_or(i64::MAX / 2).saturating_add(least);
        let ready = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
        let token = json!({
            "status": 201,
            "token": self.token,
            "cloud-content-byte": bytes,
            "delivery-node": node,
            "url": "",
            "anticipated-availability-time": instant(ready),
            "object": self.ark.as_str(),
            "version": self.version,
            "format": self.format.name(),
            "content": self.extent.name(),
        });
        token.to_string().into_bytes()
    }

    /// The name of its delivery: the same for the same request, and of nothing else. `version` is the number of the
    /// version that it gets.
    #[must_use]
    pub fn delivery(&self, version: u32) -> String {
        let parts = [self.token.as_str(), self.ark.as_str(), &version.to_string(), self.extent.name()];
        // With their lengths, or one could begin where another ends.
        let identity = parts.map(|part| format!("{} {part}", part.len())).join(" ");
        format!("{}.{}", Uuid::new_v5(&DELIVERIES, identity.as_bytes()), self.format)
    }

    /// The folder in which all files of the archive are, and the archive's name for people.
    #[must_use]
    pub fn folder(&self, version: u32) -> String {
        let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '.';
        let name = self.ark.as_str().replacen(":/", "_", 1);
        let name: String = name.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
        format!("{name}_v{version}")
    }
}

/// What a request got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Where it is.
    pub(super) url: String,
    /// Until when.
    pub(super) expires: Timestamp,
    /// How many bytes its files have.
    pub(super) bytes: u64,
    /// The number of the version.
    pub(super) version: u32,
}

/// The token of a request that was completed; keys that are not known stay.
pub(super) fn completed(token: &[u8], delivered: &Delivered, node: u32, now: Timestamp) -> Result<Vec<u8>, Malformed> {
    let keys = [
        ("status", json!(200)),
        ("delivery-node", json!(node)),
        ("cloud-content-byte", json!(delivered.bytes)),
        ("url", json!(delivered.url)),
        ("anticipated-availability-time", json!(instant(now))),
        ("expiration-time", json!(instant(delivered.expires))),
        ("version", json!(delivered.version)),
        ("message", json!("Payload contains token info")),
    ];
    record::merged(token, keys)
}

/// The token of a request that has failed; `status` is that of HTTP.
pub(super) fn failed(token: &[u8], status: u16, why: &str) -> Result<Vec<u8>, Malformed> {
    record::merged(token, [("status", json!(status)), ("url", json!("")), ("message", json!(why))])
}

/// An instant as Merritt's programs write it.
fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(version: Option<u32>) -> RequestedArchive {
        let ark = "ark:/99999/fk4=a/b".parse().unwrap();
        RequestedArchive { token: "t-1".to_owned(), ark, version, format: Format::Tar, extent: Extent::Producer }
    }

    #[test]
    fn what_is_requested_is_read_back_and_what_is_not_known_is_kept() {
        let now = "2026-03-02T18:17:05Z".parse().unwrap();
        for version in [None, Some(3)] {
            let token = wanted(version).token(1 << 30, 7, now);
            assert_eq!(RequestedArchive::of(&token), Ok(wanted(version)));
            let token = record::merged(&token, [("by", json!("java"))]).unwrap();
            let expires = "2026-03-09T18:17:05Z".parse().unwrap();
            let delivered = Delivered { url: "https://host/a".to_owned(), expires, bytes: 5, version: 3 };
            let done: Value = serde_json::from_slice(&completed(&token, &delivered, 7, now).unwrap()).unwrap();
            assert_eq!(
                done,
                json!({
                    "status": 200, "token": "t-1", "cloud-content-byte": 5, "delivery-node": 7, "url": "https://host/a",
                    "anticipated-availability-time": "2026-03-02T18:17:05+00:00", "object": "ark:/99999/fk4=a/b",
                    "expiration-time": "2026-03-09T18:17:05+00:00", "version": 3, "format": "tar", "content": "producer",
                    "message": "Payload contains token info", "by": "java",
                })
            );
        }
        let small: Value = serde_json::from_slice(&wanted(None).token(0, 1, now)).unwrap();
        assert_eq!(small["anticipated-availability-time"], "2026-03-02T18:17:10+00:00");
    }

    #[test]
    fn what_is_wrong_with_a_token_is_one_sentence() {
        for (token, expected) in [
            ("", "the token is not a JSON object"),
            (r#"{"object":"ark:/1/a"}"#, "has no key token"),
            (r#"{"token":"t","status":201,"delivery-node":7001}"#, "does not name its object"),
            (r#"{"token":"t","object":"../a"}"#, "object of the token: \"../a\" is not an ARK"),
            (r#"{"token":"t","object":["a"]}"#, "object of the token is not a text"),
            (r#"{"token":"t","object":"ark:/1/a","version":-1}"#, "is not the number of a version"),
            (r#"{"token":"t","object":"ark:/1/a","format":"rar"}"#, "\"rar\" is neither zip nor tar"),
            (r#"{"token":"t","object":"ark:/1/a","content":"x"}"#, "\"x\" is neither full nor producer"),
        ] {
            let found = RequestedArchive::of(token.as_bytes()).unwrap_err();
            assert!(found.contains(expected), "{token}: {found}");
        }
        let long = json!({"token": "t".repeat(201), "object": "ark:/1/a"}).to_string();
        assert!(RequestedArchive::of(long.as_bytes()).unwrap_err().contains("more than 200 bytes"));
    }

    #[test]
    fn another_request_has_another_delivery_and_a_folder_is_one_plain_name() {
        let first = wanted(None);
        let names = [
            first.delivery(1),
            first.delivery(2),
            RequestedArchive { token: "t-2".to_owned(), ..first.clone() }.delivery(1),
            RequestedArchive { format: Format::Zip, ..first.clone() }.delivery(1),
            RequestedArchive { extent: Extent::Full, ..first.clone() }.delivery(1),
        ];
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(first.delivery(1), wanted(Some(1)).delivery(1));
        assert_eq!(first.folder(12), "ark_99999_fk4_a_b_v12");
    }
}
