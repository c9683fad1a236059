//! What a depositor sends.

use queuekeeper_ingest::ark::Ark;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::url::ContentUrl;
use queuekeeper_mail::address::Recipients;
use queuekeeper_store::Digest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::actions::Refusal;

/// How long a text may be, in characters.
const MOST_CHARS: usize = 1_000;

/// How many local ids a deposit may have.
const MOST_LOCAL_IDS: usize = 100;

/// A deposit as it is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DepositRequest {
    /// The collection's profile.
    #[schema(example = "merritt_demo_content")]
    pub profile: String,
    /// The name of the file; by default the last part of `url`.
    #[schema(example = "robbins.checkm")]
    pub filename: String,
    /// The type: `file`, `container`, `object-manifest`, `single-file-batch-manifest`, `container-batch-manifest` or
    /// `batch-manifest`; by default detected from its first lines or its name.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The URL of the content, which the daemons fetch. Without it, the content is uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The number of bytes to be uploaded. Once all are received, the deposit is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The digest of the content, such as `sha256:0f3a..`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The object's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its creator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creator: Option<String>,
    /// Its date, in the depositor's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// A note for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The ARK of an existing object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ark: Option<String>,
    /// The local ids, by which the owner identifies the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub local_ids: Vec<String>,
    /// The addresses that the report goes to, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<String>,
    /// Whether the object's other files are kept, and these files added or replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub update: bool,
}

/// A deposit, checked as far as that needs nothing else.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) new: NewDeposit,
    pub(super) url: Option<ContentUrl>,
}

impl DepositRequest {
    /// Checks what is requested by itself.
    pub(super) fn check(&self, submitter: &str) -> Result<Checked, Refusal> {
        let wrong = |what: &str, why: &dyn std::fmt::Display| Refusal::Invalid(format!("{what}: {why}"));
        let text = |name: &str, text: &Option<String>| {
            let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
            text.map(|text| plain(text).map_err(|why| wrong(name, &why))).transpose()
        };
        let url = text("url", &self.url)?.map(|url| url.parse::<ContentUrl>()).transpose();
        let url = url.map_err(|error| wrong("url", &error))?;
        if url.as_ref().is_some_and(ContentUrl::is_file) {
            return Err(Refusal::Invalid("url: only http and https are fetched; upload a file instead".to_owned()));
        }
        let kind = text("type", &self.kind)?.map(|kind| kind.parse::<DepositType>()).transpose();
        let digest = text("digest", &self.digest)?.map(|digest| read_digest(&digest)).transpose();
        let ark = text("ark", &self.ark)?.map(|ark| ark.parse::<Ark>()).transpose();
        let file_name = match self.filename.trim() {
            "" => url.as_ref().and_then(ContentUrl::file_name).unwrap_or_default(),
            name => name.to_owned(),
        };
        if file_name.is_empty() {
            return Err(Refusal::Invalid("filename: the file needs a name".to_owned()));
        }
        if self.local_ids.len() > MOST_LOCAL_IDS {
            return Err(Refusal::Invalid(format!("local_ids: at most {MOST_LOCAL_IDS}")));
        }
        let local_ids = self.local_ids.iter().map(|id| id.trim()).filter(|id| !id.is_empty());
        let local_ids = local_ids.map(|id| match plain(id) {
            // They are kept in one text, separated by these.
            Ok(id) if id.contains(';') => Err(wrong("local_ids", &"an id must not contain a semicolon")),
            Ok(id) => Ok(id),
            Err(why) => Err(wrong("local_ids", &why)),
        });
        let new = NewDeposit {
            profile: plain(self.profile.trim()).map_err(|why| wrong("profile", &why))?,
            kind: kind.map_err(|error| wrong("type", &error))?,
            file_name,
            submitter: submitter.to_owned(),
            title: text("title", &self.title)?,
            creator: text("creator", &self.creator)?,
            date: text("date", &self.date)?,
            note: text("note", &self.note)?,
            primary_id: ark.map_err(|error| wrong("ark", &error))?.map(|ark| ark.as_str().to_owned()),
            local_ids: local_ids.collect::<Result<_, _>>()?,
            digest: digest.map_err(|why| wrong("digest", &why))?,
            notification: text("notification", &self.notification)?
                .map(|text| read_notification(&text))
                .transpose()
                .map_err(|why| wrong("notification", &why))?,
            is_update: self.update,
            ..NewDeposit::default()
        };
        new.check().map_err(|error| Refusal::Invalid(error.to_string()))?;
        Ok(Checked { new, url })
    }
}

impl DepositRequest {
    /// The first field in which a deposit that is sent with the same key is another one; `None` where it is the same
    /// one. Size and digest may be set by one of them only.
    pub(super) fn difference(&self, other: &Self) -> Option<&'static str> {
        let is_other = |one: Option<&str>, other: Option<&str>| {
            one.map(str::trim).unwrap_or_default() != other.map(str::trim).unwrap_or_default()
        };
        let texts = [
            ("profile", Some(&self.profile), Some(&other.profile)),
            ("filename", Some(&self.filename), Some(&other.filename)),
            ("type", self.kind.as_ref(), other.kind.as_ref()),
            ("title", self.title.as_ref(), other.title.as_ref()),
            ("creator", self.creator.as_ref(), other.creator.as_ref()),
            ("date", self.date.as_ref(), other.date.as_ref()),
            ("note", self.note.as_ref(), other.note.as_ref()),
            ("ark", self.ark.as_ref(), other.ark.as_ref()),
            ("notification", self.notification.as_ref(), other.notification.as_ref()),
        ];
        let differs = |(one, other): (Option<&String>, Option<&String>)| {
            is_other(one.map(String::as_str), other.map(String::as_str))
        };
        let text = texts.into_iter().find(|(_, one, other)| differs((*one, *other))).map(|(name, ..)| name);
        text.or_else(|| (self.local_ids != other.local_ids).then_some("local_ids"))
            .or_else(|| (self.update != other.update).then_some("update"))
            .or_else(|| (self.size.zip(other.size).is_some_and(|(one, other)| one != other)).then_some("size"))
            .or_else(|| {
                let both = self.digest.as_ref().zip(other.digest.as_ref());
                both.is_some_and(|(one, other)| !one.eq_ignore_ascii_case(other)).then_some("digest")
            })
    }
}

/// A text of one line.
fn plain(text: &str) -> Result<String, String> {
    if text.chars().count() > MOST_CHARS {
        return Err(format!("at most {MOST_CHARS} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("line breaks and other control characters are not allowed".to_owned());
    }
    Ok(text.to_owned())
}

/// The addresses that a report goes to, separated by commas.
///
/// # Errors
/// One sentence, where one is no address, there is none, or there are too many.
pub fn read_notification(text: &str) -> Result<String, String> {
    let Recipients { valid, refused } = Recipients::parse(text);
    match refused.first() {
        Some((_, why)) => Err(why.clone()),
        None if valid.is_empty() => Err("it names no address".to_owned()),
        None => Ok(valid.join(", ")),
    }
}

/// A digest with its algorithm before it, such as `sha256:0f3a..`.
///
/// # Errors
/// One sentence, for anything else.
pub fn read_digest(text: &str) -> Result<Digest, String> {
    let (algorithm, hex) = text.split_once(':').ok_or("expected ALGORITHM:HEX, such as sha256:0f3a..")?;
    let algorithm = algorithm.parse().map_err(|error| format!("{error}"))?;
    Digest::from_hex(algorithm, hex).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_request_is_named() {
        let good =
            DepositRequest { profile: "demo".to_owned(), filename: "a.zip".to_owned(), ..DepositRequest::default() };
        let checked = good.check("alice").unwrap();
        assert_eq!((checked.new.file_name.as_str(), checked.new.submitter.as_str()), ("a.zip", "alice"));
        let some = |text: &str| Some(text.to_owned());
        for (request, expected) in [
            (DepositRequest { filename: String::new(), ..good.clone() }, "filename: the file needs a name"),
            (DepositRequest { filename: "../a".to_owned(), ..good.clone() }, "file name"),
            (DepositRequest { filename: ".hidden".to_owned(), ..good.clone() }, "file name"),
            (DepositRequest { kind: some("zip"), ..good.clone() }, "type: "),
            (DepositRequest { url: some("gopher://a"), ..good.clone() }, "url: "),
            (DepositRequest { url: some("file:///etc/passwd"), ..good.clone() }, "url: "),
            (DepositRequest { url: some("https://u:p@a/b"), ..good.clone() }, "url: "),
            (DepositRequest { digest: some("md5"), ..good.clone() }, "digest: expected ALGORITHM:HEX"),
            (DepositRequest { digest: some("md5:00"), ..good.clone() }, "digest: "),
            (DepositRequest { ark: some("doi:10/1"), ..good.clone() }, "ark: "),
            (DepositRequest { title: some("a\nb"), ..good.clone() }, "title: line breaks and other control characters"),
            (DepositRequest { note: Some("x".repeat(1_001)), ..good.clone() }, "note: at most 1000 characters"),
            (
                DepositRequest { notification: some("ada@x.example, ada@@y"), ..good.clone() },
                "notification: \"ada@@y\" is not a mail address",
            ),
            (DepositRequest { notification: some(";"), ..good.clone() }, "notification: it names no address"),
            (
                DepositRequest { local_ids: vec!["a;b".to_owned()], ..good.clone() },
                "local_ids: an id must not contain a semicolon",
            ),
        ] {
            let why = request.check("alice").unwrap_err().to_string();
            assert!(why.starts_with(expected), "{why}");
            assert!(!why.contains("u:p@"), "{why}");
        }
        let named = DepositRequest { filename: String::new(), url: some("https://a/b%20c.zip?x=1"), ..good };
        assert_eq!(named.check("alice").unwrap().new.file_name, "b c.zip");
    }
}
