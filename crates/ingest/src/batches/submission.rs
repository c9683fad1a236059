//! What a batch is to become, as its `submission` says it.

use queuekeeper_store::Digest;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::kind::DepositType;
use crate::name;
use crate::parts::{self, Part};
use crate::spec::{PAYLOAD_SHA256, VOLUME};
use crate::spec::{digest_of, object_of, uuid_of, volume_of};
use crate::url::ContentUrl;

/// The keys of a submission that are its own, and not those of its jobs.
const OWN: [&str; 5] = ["size", "responseForm", "payload_url", "filename", PAYLOAD_SHA256];

/// The keys that say something of the payload: in a batch of several objects, of its manifest and of none of them.
const OF_PAYLOAD: [&str; 5] = ["digestType", "digestValue", "objectID", "localID", VOLUME];

/// The keys that each deposit sets by itself.
const OF_DEPOSIT: [&str; 11] = [
    "batchID",
    "profile",
    "profile_name",
    "type",
    "submitter",
    "submissionDate",
    "title",
    "creator",
    "date",
    "note",
    "notification",
];

/// Whether a key of a submission is its own, and not one of its jobs.
fn is_own(key: &str) -> bool {
    OWN.contains(&key) || parts::KEYS.contains(&key)
}

/// A submission, checked.
#[derive(Clone, Debug)]
pub(crate) struct BatchSpec {
    /// The id as the depositor knows it: a name that a folder can have.
    pub(crate) id: String,
    pub(crate) uuid: Uuid,
    pub(crate) profile: String,
    pub(crate) kind: DepositType,
    pub(crate) file_name: String,
    /// Where the payload is fetched from; `None` for one that lies in the working storage.
    pub(super) url: Option<ContentUrl>,
    /// The volume that it was uploaded to, or the query of its URL is kept on, where that is known.
    pub(super) volume: Option<Uuid>,
    /// The digest of the manifest, where the depositor gave one; that of another payload is for its job.
    pub(super) digest: Option<Digest>,
    /// Which part of a deposit of several batches it is, if not the first.
    pub(super) part: Option<Part>,
    all: Map<String, Value>,
}

impl BatchSpec {
    /// Reads a submission; an error is one sentence.
    pub(crate) fn of(data: &[u8]) -> Result<Self, String> {
        let all = object_of("submission", data)?;
        let text = |key: &str| {
            let text = all.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        let id = text("batchID").ok_or("the submission has no batchID")?;
        let is_plain = id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_plain {
            return Err(format!("batchID {:?} is not an id", name::shown(&id)));
        }
        let kind = text("type").ok_or("the submission has no type")?;
        let kind: DepositType = kind.parse().map_err(|error: crate::kind::UnknownType| error.to_string())?;
        let file_name = text("filename").ok_or("the submission has no filename")?;
        name::check(&file_name).map_err(|error| format!("filename {:?}: {error}", name::shown(&file_name)))?;
        let url = text("payload_url").map(|url| url.parse::<ContentUrl>()).transpose();
        let digest = if kind.is_batch() { digest_of(text("digestType"), text("digestValue"))? } else { None };
        let uuid = uuid_of(&id, "bid-");
        let part = Part::of(&all, uuid);
        if part.is_none() && all.contains_key("partOf") {
            return Err("the submission names another batch as its whole, but is not one of its parts".to_owned());
        }
        Ok(Self {
            uuid,
            part,
            volume: volume_of(&all),
            id,
            profile: text("profile").or_else(|| text("profile_name")).ok_or("the submission has no profile")?,
            kind,
            file_name,
            url: url.map_err(|error| format!("payload_url: {error}"))?,
            digest,
            all,
        })
    }

    /// Everything that it says.
    pub(super) fn all(&self) -> &Map<String, Value> {
        &self.all
    }

    /// A text that is passed on to its jobs; empty where it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.all.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default()
    }

    /// Whether its objects keep their other files.
    pub(crate) fn is_update(&self) -> bool {
        match self.all.get("update") {
            Some(Value::Bool(is_update)) => *is_update,
            _ => self.text("update").eq_ignore_ascii_case("true"),
        }
    }

    /// What a batch of some of its rows says beside what each deposit does, such as `responseForm` and `DC*`.
    pub(crate) fn passed_on(&self) -> Map<String, Value> {
        let is_said_anew = |key: &str| key != "responseForm" && is_own(key) || OF_DEPOSIT.contains(&key);
        let of_all = self.all.iter().filter(|(key, _)| !is_said_anew(key) && !OF_PAYLOAD.contains(&key.as_str()));
        of_all.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The configuration of the job of a row, from 0: what the submission says, with what is said of the row.
    pub(super) fn job(&self, row: u64, own: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
        let mut all: Map<String, Value> = self
            .all
            .iter()
            .filter(|(key, _)| !is_own(key))
            .filter(|(key, _)| !self.kind.is_batch() || !OF_PAYLOAD.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        all.insert("jobID".to_owned(), self.job_id(row).into());
        all.insert("type".to_owned(), self.kind.of_jobs().into());
        if !self.all.contains_key("update") {
            all.insert("update".to_owned(), false.into());
        }
        all.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
        all
    }

    /// The id of the job of a row: the same whenever the batch is read.
    pub(super) fn job_id(&self, row: u64) -> String {
        format!("jid-{}", Uuid::new_v5(&self.uuid, &row.to_be_bytes()))
    }

    /// What the submission says of the payload itself, for a batch of one job.
    pub(super) fn payload(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let size = self.all.get("size").map(|size| ("size", size.clone()));
        std::iter::once(("filename", self.file_name.clone().into())).chain(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_some_rows_says_what_the_batch_of_all_says_but_of_its_payload_and_its_deposit() {
        let text = r#"{"batchID":"bid-1","profile":"p","type":"batch-manifest","filename":"f","size":"9","title":"T",
            "payload_url":"https://a/b","digestType":"md5","digestValue":"d41d8cd98f00b204e9800998ecf8427e","objectID":"",
            "note":"N","responseForm":"xml","DCcreator":"C","notificationFormat":"csv"}"#;
        let more = BatchSpec::of(text.as_bytes()).unwrap().passed_on();
        let keys: std::collections::BTreeSet<_> = more.keys().map(String::as_str).collect();
        assert_eq!(keys, ["DCcreator", "notificationFormat", "responseForm"].into());
    }

    #[test]
    fn what_is_said_of_a_manifest_is_not_said_of_the_objects_in_it() {
        let job = |kind: &str| {
            let text = format!(
                r#"{{"batchID":"bid-1","profile":"p","type":"{kind}","filename":"f","title":"T","localID":"a",
                    "objectID":"ark:/1/2","digestType":"md5","digestValue":"d41d8cd98f00b204e9800998ecf8427e","size":"9","update":true,
                    "volume":"00000000-0000-0000-0000-000000000007"}}"#
            );
            BatchSpec::of(text.as_bytes()).unwrap().job(0, [])
        };
        let (of_one, of_many) = (job("file"), job("single-file-batch-manifest"));
        for key in OF_PAYLOAD {
            assert!(of_one.contains_key(key) && !of_many.contains_key(key), "{key}");
        }
        for one in [&of_one, &of_many] {
            assert_eq!((&one["title"], &one["type"], &one["update"]), (&"T".into(), &"file".into(), &true.into()));
            assert!(OWN.iter().all(|key| !one.contains_key(*key)), "{one:?}");
        }
    }
}
