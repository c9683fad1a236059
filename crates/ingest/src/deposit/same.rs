//! Whether a deposit that is sent again is the one that was made before.

use queuekeeper_queue::Queue;
use queuekeeper_queue::id::BatchId;
use queuekeeper_store::{Algorithm, Digest};
use serde_json::{Map, Value};

use super::upload::Whole;
use super::{DepositError, NewDeposit};
use crate::spec::PAYLOAD_SHA256;
use crate::url::ContentUrl;

/// What is known of content that came, or is to come.
#[derive(Clone, Copy, Default)]
struct Came<'a> {
    size: Option<u64>,
    sha256: Option<&'a Digest>,
}

impl NewDeposit {
    /// Checks that a batch is this deposit, made before, of whose content no more than the size is known.
    ///
    /// # Errors
    /// [`DepositError::Other`] where it is another one; others when the batch cannot be read.
    pub async fn check_same_size(&self, queue: &Queue, batch: BatchId, size: Option<u64>) -> Result<(), DepositError> {
        self.check_same_as(queue, batch, None, Came { size, sha256: None }).await
    }

    /// Checks that a batch is this deposit, made before: that its submission says the same. Type, size and digests
    /// count where both say them, and of a URL what stands before its query, which is another one each time that it is
    /// signed.
    pub(super) async fn check_same(
        &self,
        queue: &Queue,
        batch: BatchId,
        url: Option<&ContentUrl>,
        whole: Option<&Whole>,
    ) -> Result<(), DepositError> {
        let (size, sha256) = (whole.map(|whole| whole.size), whole.and_then(|whole| whole.sha256.as_ref()));
        self.check_same_as(queue, batch, url, Came { size, sha256 }).await
    }

    async fn check_same_as(
        &self,
        queue: &Queue,
        batch: BatchId,
        url: Option<&ContentUrl>,
        came: Came<'_>,
    ) -> Result<(), DepositError> {
        let loaded = queue.load_batch(batch).await?;
        let known: Map<String, Value> =
            serde_json::from_slice(loaded.submission.as_deref().unwrap_or_default()).unwrap_or_default();
        let Some(what) = self.difference(&known, url, came) else { return Ok(()) };
        let id = known.get("batchID").and_then(Value::as_str).unwrap_or_default().to_owned();
        Err(DepositError::Other { id, what })
    }

    /// The first field in which a submission is another deposit.
    fn difference(&self, known: &Map<String, Value>, url: Option<&ContentUrl>, came: Came<'_>) -> Option<&'static str> {
        let text = |key: &str| known.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let local_ids = self.local_ids.join(";");
        let known_url = text("payload_url").map(|url| url.parse::<ContentUrl>().map(|url| url.without_query()));
        let texts = [
            ("profile", Some(self.profile.as_str()), text("profile")),
            ("filename", Some(self.file_name.as_str()), text("filename")),
            ("title", self.title.as_deref(), text("title")),
            ("creator", self.creator.as_deref(), text("creator")),
            ("date", self.date.as_deref(), text("date")),
            ("note", self.note.as_deref(), text("note")),
            ("ark", self.primary_id.as_deref(), text("objectID")),
            ("local_ids", Some(local_ids.as_str()), text("localID")),
            ("notification", self.notification.as_deref(), text("notification")),
        ];
        let is_other = |one: Option<&str>, other: Option<&str>| one.unwrap_or_default() != other.unwrap_or_default();
        let differs =
            |one: Option<String>, other: Option<&str>| one.zip(other).is_some_and(|(one, other)| one != other);
        let is_same_algorithm = |digest: &&Digest| text("digestType") == Some(&digest.algorithm().to_string());
        let digest = self.digest.as_ref().filter(is_same_algorithm).map(Digest::hex);
        let is_sha256 = |digest: &&Digest| digest.algorithm() == Algorithm::Sha256;
        let sha256 = came.sha256.or_else(|| self.digest.as_ref().filter(is_sha256));
        let more = [
            ("url", url.map(ContentUrl::without_query) != known_url.and_then(Result::ok)),
            ("update", known.get("update").and_then(Value::as_bool).unwrap_or(false) != self.is_update),
            ("type", differs(self.kind.map(|kind| kind.to_string()), text("type"))),
            ("size", differs(came.size.map(|size| size.to_string()), text("size"))),
            ("digest", differs(digest, text("digestValue"))),
            ("digest", differs(sha256.map(Digest::hex), text(PAYLOAD_SHA256))),
        ];
        let text = texts.into_iter().find(|(_, one, other)| is_other(*one, *other)).map(|(name, ..)| name);
        text.or_else(|| more.into_iter().find(|(_, is_other)| *is_other).map(|(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::DepositType;

    #[test]
    fn a_deposit_is_the_same_whatever_signed_its_url_and_another_one_in_any_field() {
        let url = |text: &str| text.parse::<ContentUrl>().unwrap();
        let new = NewDeposit {
            profile: "demo".to_owned(),
            file_name: "a.zip".to_owned(),
            title: Some("T".to_owned()),
            digest: Digest::from_hex(Algorithm::Md5, &"0".repeat(32)).ok(),
            ..NewDeposit::default()
        };
        let known = serde_json::json!({
            "profile": "demo", "filename": "a.zip", "title": "T", "type": "container", "size": "9", "update": false,
            "payload_url": "https://a/b?signature=1", "digestType": "md5", "digestValue": "0".repeat(32),
            "payloadSHA256": "a".repeat(64),
        });
        let known = known.as_object().unwrap();
        let signed = url("https://a/b?signature=2");
        let same = |new: &NewDeposit, size| new.difference(known, Some(&signed), Came { size, sha256: None });
        assert_eq!((same(&new, Some(9)), same(&new, None)), (None, None));
        let kind = Some(DepositType::Container);
        assert_eq!(same(&NewDeposit { digest: None, kind, ..new.clone() }, None), None);
        for (other, what) in [
            (NewDeposit { file_name: "b.zip".to_owned(), ..new.clone() }, "filename"),
            (NewDeposit { title: None, ..new.clone() }, "title"),
            (NewDeposit { local_ids: vec!["x".to_owned()], ..new.clone() }, "local_ids"),
            (NewDeposit { is_update: true, ..new.clone() }, "update"),
            (NewDeposit { kind: Some(DepositType::File), ..new.clone() }, "type"),
            (NewDeposit { digest: Digest::from_hex(Algorithm::Md5, &"1".repeat(32)).ok(), ..new.clone() }, "digest"),
        ] {
            assert_eq!(same(&other, None), Some(what));
        }
        assert_eq!(same(&new, Some(8)), Some("size"));
        for (digit, difference) in [("a", None), ("b", Some("digest"))] {
            let digest = Digest::from_hex(Algorithm::Sha256, &digit.repeat(64)).unwrap();
            let came = Came { size: Some(9), sha256: Some(&digest) };
            assert_eq!(new.difference(known, Some(&signed), came), difference);
            assert_eq!(same(&NewDeposit { digest: Some(digest), ..new.clone() }, Some(9)), difference);
        }
        assert_eq!(new.difference(known, None, Came::default()), Some("url"));
        assert_eq!(new.difference(known, Some(&url("https://a/c")), Came::default()), Some("url"));
    }
}
