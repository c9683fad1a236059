//! What stores say of their changes: messages of S3 in the forms of AWS (`EventBridge`, notifications, `SNS` around
//! them) and of `MinIO`. They are hostile: a client that has the token may send anything, and all that a message does
//! is that an item is looked at.

use queuekeeper_store::Key;
use serde::Deserialize;

/// How many changes a message may name.
const MOST_EVENTS: usize = 500;

/// What a message says of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEvent {
    /// The bucket.
    pub bucket: String,
    /// The key of the object, as the bucket has it.
    pub key: Vec<u8>,
    /// Its entity tag, without quotes.
    pub etag: Option<String>,
    /// Whether it was removed.
    pub is_removed: bool,
}

impl StoreEvent {
    /// The key of the item, where it is one of those in this bucket with keys that begin so.
    #[must_use]
    pub fn item(&self, bucket: &str, prefix: &str) -> Option<Key> {
        let rest = self.key.strip_prefix(prefix.as_bytes()).filter(|_| self.bucket == bucket)?;
        Key::new(rest).ok()
    }
}

/// Why a message is not read: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreEventError {
    /// It is not of a form that is known.
    #[error("not a message of EventBridge, S3 or MinIO: {0}")]
    Form(String),
    /// It asks to confirm a subscription.
    #[error(
        "a subscription of SNS has to be confirmed manually: open the SubscribeURL of the message, which begins with \
         https://sns. and a region of AWS"
    )]
    Subscription,
    /// It names too much.
    #[error("a message may name at most {MOST_EVENTS} objects, but this one names {0}")]
    TooMany(usize),
}

/// All forms in one: each has other keys.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "Records")]
    records: Option<Vec<Record>>,
    #[serde(rename = "detail-type")]
    detail_type: Option<String>,
    detail: Option<Part>,
    #[serde(rename = "Type")]
    kind: Option<String>,
    #[serde(rename = "Message")]
    inner: Option<String>,
    /// What S3 sends when notifications are set up.
    #[serde(rename = "Event")]
    event: Option<String>,
}

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "eventName")]
    name: String,
    s3: Part,
}

#[derive(Deserialize)]
struct Part {
    bucket: Bucket,
    object: Object,
}

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
struct Object {
    key: String,
    /// `eTag` in notifications, `etag` in events.
    #[serde(alias = "eTag")]
    etag: Option<String>,
}

/// Reads a message.
///
/// # Errors
/// When it is of no known form, or names too many objects.
pub fn read(body: &[u8]) -> Result<Vec<StoreEvent>, StoreEventError> {
    let message = parse(body)?;
    match (message.kind.as_deref(), &message.inner) {
        (Some("SubscriptionConfirmation" | "UnsubscribeConfirmation"), _) => Err(StoreEventError::Subscription),
        // The envelope of SNS. One within another is none.
        (Some("Notification"), Some(inner)) => events(parse(inner.as_bytes())?),
        (Some(_), _) => Err(StoreEventError::Form("its Type is unknown".to_owned())),
        (None, _) => events(message),
    }
}

fn parse(body: &[u8]) -> Result<Message, StoreEventError> {
    // Messages of the parser quote nothing of the input but names of keys.
    serde_json::from_slice(body).map_err(|error| StoreEventError::Form(error.to_string()))
}

fn events(message: Message) -> Result<Vec<StoreEvent>, StoreEventError> {
    if let Some(records) = message.records {
        if records.len() > MOST_EVENTS {
            return Err(StoreEventError::TooMany(records.len()));
        }
        let event = |Record { name, s3 }: Record| {
            // `s3:` before it in MinIO's.
            let is_removed = name.trim_start_matches("s3:").starts_with("ObjectRemoved");
            new(s3.bucket.name, decoded(&s3.object.key), s3.object.etag, is_removed)
        };
        return Ok(records.into_iter().map(event).collect());
    }
    if let (Some(kind), Some(detail)) = (message.detail_type, message.detail) {
        // Keys are not encoded here.
        let Part { bucket, object } = detail;
        return Ok(vec![new(bucket.name, object.key.into_bytes(), object.etag, kind == "Object Deleted")]);
    }
    if message.event.as_deref() == Some("s3:TestEvent") {
        return Ok(Vec::new());
    }
    Err(StoreEventError::Form("it has neither Records nor a detail".to_owned()))
}

fn new(bucket: String, key: Vec<u8>, etag: Option<String>, is_removed: bool) -> StoreEvent {
    let etag = etag.map(|etag| etag.trim_matches('"').to_owned());
    StoreEvent { bucket, key, etag, is_removed }
}

/// A key as notifications have it: as in the query of a URL.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut key, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match (byte, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(value)) => {
                key.push(value);
                at += 3;
                continue;
            }
            (b'+', _) => key.push(b' '),
            (byte, _) => key.push(*byte),
        }
        at += 1;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIO: &str = r#"{"EventName": "s3:ObjectCreated:Put", "Key": "keep/copies/maps/a b/\u00fc", "Records": [
        {"eventVersion": "2.0", "eventSource": "minio:s3", "awsRegion": "", "eventTime": "2026-11-26T19:00:00.000Z",
         "eventName": "s3:ObjectCreated:Put", "userIdentity": {"principalId": "ada"}, "requestParameters": {},
         "responseElements": {"x-amz-request-id": "17"}, "s3": {"s3SchemaVersion": "1.0", "configurationId": "Config",
         "bucket": {"name": "keep", "ownerIdentity": {"principalId": "ada"}, "arn": "arn:aws:s3:::keep"},
         "object": {"key": "copies%2Fmaps%2Fa+b%2F%C3%BC%2B", "size": 4, "eTag": "098f6bcd4621d373cade4e832627b4f6",
         "contentType": "text/plain", "userMetadata": {}, "sequencer": "17"}}, "source": {"host": "127.0.0.1"}}]}"#;

    const BRIDGE: &str = r#"{"version": "0", "id": "17793124", "detail-type": "Object Deleted", "source": "aws.s3",
        "account": "111122223333", "time": "2026-11-26T19:00:00Z", "region": "ca-central-1",
        "resources": ["arn:aws:s3:::keep"], "detail": {"version": "0", "bucket": {"name": "keep"},
        "object": {"key": "copies/maps/a+b%20", "sequencer": "00"}, "request-id": "N4", "reason": "DeleteObject"}}"#;

    #[test]
    fn each_form_names_the_same_objects() {
        let put = StoreEvent {
            bucket: "keep".to_owned(),
            key: "copies/maps/a b/ü+".into(),
            etag: Some("098f6bcd4621d373cade4e832627b4f6".to_owned()),
            is_removed: false,
        };
        assert_eq!(read(MINIO.as_bytes()), Ok(vec![put.clone()]));
        let removed = MINIO.replace("s3:ObjectCreated:Put", "ObjectRemoved:Delete");
        assert_eq!(read(removed.as_bytes()), Ok(vec![StoreEvent { is_removed: true, ..put.clone() }]));
        let sns = serde_json::json!({"Type": "Notification", "MessageId": "1", "Message": MINIO, "Signature": "x"});
        assert_eq!(read(sns.to_string().as_bytes()), Ok(vec![put.clone()]));
        let deleted = StoreEvent { key: "copies/maps/a+b%20".into(), etag: None, is_removed: true, ..put.clone() };
        assert_eq!(read(BRIDGE.as_bytes()), Ok(vec![deleted]));
        assert_eq!(read(br#"{"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "keep"}"#), Ok(Vec::new()));

        assert_eq!(put.item("keep", "copies/maps/"), Key::new("a b/ü+".as_bytes()).ok());
        assert_eq!((put.item("keep", "copies/other/"), put.item("other", "copies/maps/")), (None, None));
        assert_eq!(put.item("keep", "copies/maps/a b/ü+"), None);
    }

    #[test]
    fn what_is_hostile_is_refused_and_never_followed() {
        let confirm = r#"{"Type": "SubscriptionConfirmation", "SubscribeURL": "http://169.254.169.254/"}"#;
        assert_eq!(read(confirm.as_bytes()), Err(StoreEventError::Subscription));
        let nested = serde_json::json!({"Type": "Notification", "Message": confirm}).to_string();
        let many = serde_json::json!({"Records": vec![serde_json::json!({"eventName": "x",
            "s3": {"bucket": {"name": "b"}, "object": {"key": "k"}}}); MOST_EVENTS + 1]});
        assert_eq!(read(many.to_string().as_bytes()), Err(StoreEventError::TooMany(MOST_EVENTS + 1)));
        let deep = "[".repeat(100_000);
        for body in
            ["", "{}", "null", "[]", "7", "\"x\"", "{\"Records\": 7}", "{\"Records\": [{}]}", &nested, &deep, "\u{0}"]
        {
            assert!(matches!(read(body.as_bytes()), Err(StoreEventError::Form(_))), "{}", &body[..body.len().min(80)]);
        }
        assert!(read(b"\xff\xfe").is_err());
        assert_eq!(decoded("%zz%2%+%25%00%2e"), b"%zz%2% %\0.");
    }
}
