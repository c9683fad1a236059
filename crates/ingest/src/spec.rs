//! What a job is to do, as its `configuration` says it.

use std::collections::HashSet;

use queuekeeper_queue::Job;
use queuekeeper_queue::path::JobNode;
use queuekeeper_store::{Algorithm, Digest};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::name;
use crate::url::ContentUrl;

/// The key of a submission, and of the job of its payload, that says on which volume of working storage an upload lies,
/// or the query of a URL is kept.
pub(crate) const VOLUME: &str = "volume";

/// The key of a submission that has the SHA-256 of what was uploaded, by which it is known when it is sent again.
pub(crate) const PAYLOAD_SHA256: &str = "payloadSHA256";

/// The namespace of UUIDs that are derived from ids which are none.
const FOREIGN_IDS: Uuid = Uuid::from_u128(0x6f1d_5c3e_8a0b_4f6d_9a70_51c2_7e1b_a4d3);

/// What the job's package is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// One file, which is the object.
    File,
    /// An archive, whose files are the object.
    Container,
    /// A manifest of the object's files.
    Manifest,
}

/// A job's parameters, checked.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The batch's id as the depositor knows it, `bid-UUID`: a name that a folder can have.
    pub batch: String,
    /// The batch's UUID.
    pub batch_uuid: Uuid,
    /// The job's own id, `jid-UUID`: a name that a folder can have.
    pub job: String,
    /// The job's UUID, by which all that was done for it is found.
    pub uuid: Uuid,
    /// The mnemonic of the collection.
    pub profile: String,
    /// What its package is.
    pub package: Package,
    /// The package's file name.
    pub file_name: String,
    /// Where the package is fetched from; `None` for one that lies in the working storage.
    pub url: Option<ContentUrl>,
    /// The volume that the package was uploaded to, or the query of its URL is kept on; `None` where any will do, and
    /// where that is not known.
    pub volume: Option<Uuid>,
    /// The package's digest, where the depositor gave one.
    pub digest: Option<Digest>,
    /// The package's size in bytes, where the depositor gave one.
    pub size: Option<u64>,
    /// Whether the object's other files are carried over.
    pub is_update: bool,
    /// The ARK that the depositor named.
    pub primary_id: Option<String>,
    /// The ids that the owner knows the object by.
    pub local_ids: Vec<String>,
    /// Everything, for what is only passed on.
    pub all: Map<String, Value>,
}

/// The volume that the payload of a submission or a job was uploaded to, or the query of its URL is kept on; `None` for
/// one that can be fetched from any.
pub(crate) fn volume_of(all: &Map<String, Value>) -> Option<Uuid> {
    all.get(VOLUME)?.as_str()?.parse().ok()
}

impl JobSpec {
    /// What a job's configuration says.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of(job: &Job) -> Result<Self, String> {
        Self::parse(job.data(JobNode::Configuration).unwrap_or_default())
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// One sentence on what is wrong with it.
    pub fn parse(data: &[u8]) -> Result<Self, String> {
        let all = object_of("configuration", data)?;
        let text = |key: &str| {
            let text = all.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        let id = |key: &str| {
            let id = text(key).ok_or_else(|| format!("the configuration has no {key}"))?;
            let is_plain = id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if is_plain { Ok(id) } else { Err(format!("{key} {:?} is not an id", name::shown(&id))) }
        };
        let (batch, job) = (id("batchID")?, id("jobID")?);
        let kind = text("type").unwrap_or_default();
        let package = match kind.to_ascii_lowercase().as_str() {
            "file" => Package::File,
            "container" => Package::Container,
            "manifest" | "object-manifest" => Package::Manifest,
            _ => return Err(format!("type {:?} is neither file, container nor manifest", name::shown(&kind))),
        };
        let file_name = text("filename").ok_or("the configuration has no filename")?;
        name::check(&file_name).map_err(|error| format!("filename {:?}: {error}", name::shown(&file_name)))?;
        let url = text("payload_url").map(|url| url.parse::<ContentUrl>()).transpose();
        let url = url.map_err(|error| format!("payload_url: {error}"))?;
        let digest = digest_of(text("digestType"), text("digestValue"))?;
        let is_true = |key: &str| match all.get(key) {
            Some(Value::Bool(is_true)) => *is_true,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        };
        let size = match all.get("size") {
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            _ => None,
        };
        let local_ids = text("localID").unwrap_or_default();
        let mut known = HashSet::new();
        let local_ids = local_ids.split(';').map(str::trim).filter(|id| !id.is_empty() && known.insert(*id));
        let local_ids = local_ids.map(str::to_owned).collect();
        Ok(Self {
            batch_uuid: uuid_of(&batch, "bid-"),
            uuid: uuid_of(&job, "jid-"),
            batch,
            job,
            profile: text("profile").or_else(|| text("profile_name")).ok_or("the configuration has no profile")?,
            package,
            file_name,
            url,
            digest,
            size: size.filter(|size| *size > 0),
            volume: volume_of(&all),
            is_update: is_true("update"),
            primary_id: text("objectID"),
            local_ids,
            all,
        })
    }

    /// A parameter that is only passed on; empty where it is missing.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.all.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Reads a JSON object, which is called so in an error: one sentence.
pub(crate) fn object_of(what: &str, data: &[u8]) -> Result<Map<String, Value>, String> {
    // An error may repeat a text of any length.
    let shown =
        |error: serde_json::Error| format!("the {what} is not a JSON object: {}", name::shown(&error.to_string()));
    serde_json::from_slice(data).map_err(shown)
}

/// The digest that a depositor gave of a payload; an error is one sentence.
pub(crate) fn digest_of(algorithm: Option<String>, value: Option<String>) -> Result<Option<Digest>, String> {
    let (Some(algorithm), Some(value)) = (algorithm, value) else { return Ok(None) };
    let algorithm: Algorithm = algorithm.parse().map_err(|error| format!("digestType: {error}"))?;
    let digest = Digest::from_hex(algorithm, &value).map_err(|error| format!("digestValue: {error}"))?;
    Ok(Some(digest))
}

/// The UUID of a job by its configuration; `None` where that does not name one.
#[must_use]
pub fn job_uuid(configuration: &[u8]) -> Option<Uuid> {
    let all: Map<String, Value> = serde_json::from_slice(configuration).ok()?;
    let id = all.get("jobID")?.as_str()?.trim();
    Some(uuid_of(id, "jid-")).filter(|_| !id.is_empty())
}

/// The UUID in an id; of ids that hold none, one that is derived from them.
#[must_use]
pub fn uuid_of(id: &str, prefix: &str) -> Uuid {
    let bare = id.strip_prefix(prefix).unwrap_or(id);
    bare.parse().unwrap_or_else(|_| Uuid::new_v5(&FOREIGN_IDS, id.as_bytes()))
}

/// The id that a depositor knows a batch by.
#[must_use]
pub fn id_of(uuid: Uuid) -> String {
    format!("bid-{uuid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(json: &str) -> Result<JobSpec, String> {
        JobSpec::parse(json.as_bytes())
    }

    #[test]
    fn a_configuration_of_todays_daemons_is_read() {
        let spec = parsed(
            r#"{"batchID":"bid-9c1a0b5e-0000-4000-8000-000000000001","jobID":"jid-9c1a0b5e-0000-4000-8000-000000000002",
                "profile":"demo","type":"container","filename":"a.zip","localID":" a; b;a;","update":"true","size":"12",
                "digestType":"md5","digestValue":"d41d8cd98f00b204e9800998ecf8427e","objectID":""}"#,
        )
        .unwrap();
        assert_eq!(spec.uuid.to_string(), "9c1a0b5e-0000-4000-8000-000000000002");
        assert_eq!((spec.package, spec.is_update, spec.size), (Package::Container, true, Some(12)));
        assert_eq!((spec.local_ids, spec.primary_id), (vec!["a".to_owned(), "b".to_owned()], None));
        assert!(spec.digest.is_some() && spec.url.is_none());
        // An id of another form names the same job each time.
        assert_eq!(uuid_of("jid-x", "jid-"), uuid_of("jid-x", "jid-"));
    }

    #[test]
    fn what_names_no_folder_no_package_and_no_url_is_one_sentence() {
        let with = |key: &str, value: &str| {
            let mut all =
                serde_json::json!({"batchID":"bid-1","jobID":"jid-2","profile":"p","type":"file","filename":"a"});
            all[key] = value.into();
            parsed(&all.to_string()).map(|_| ()).unwrap_err()
        };
        assert_eq!(with("batchID", ""), "the configuration has no batchID");
        assert_eq!(with("jobID", "../x"), r#"jobID "../x" is not an id"#);
        assert_eq!(with("type", "x"), r#"type "x" is neither file, container nor manifest"#);
        assert!(with("filename", "../a").starts_with("filename"));
        assert!(with("payload_url", "gopher://x").starts_with("payload_url"));
        assert_eq!(with("profile", " "), "the configuration has no profile");
        assert!(parsed("[]").unwrap_err().starts_with("the configuration is not a JSON object"));
    }
}
