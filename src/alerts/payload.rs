//! The payload of Alertmanager's webhook, version 4.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// The largest message, in bytes. That of a store about its changes may be as large.
pub const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// How many alerts one payload may have.
const MAX_ALERTS: usize = 1_000;

/// How many labels of an alert are read, and the maximum length of each; further and longer ones are ignored.
const MAX_LABELS: usize = 64;
const MAX_LABEL_CHARS: usize = 1_024;

/// The supported version.
const VERSION: &str = "4";

/// A message of Alertmanager, with the fields that are used. All of it is untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The name of the receiver.
    pub receiver: String,
    /// The labels by which the alerts are grouped.
    pub group: String,
    /// How many alerts were omitted because of `max_alerts`.
    pub truncated: u64,
    /// The alerts.
    pub alerts: Vec<Alert>,
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// Whether it is firing.
    pub status: Status,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Alertmanager's hash of its labels, hexadecimal.
    pub fingerprint: String,
    /// Since when it is firing.
    pub starts_at: Timestamp,
}

/// The status of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is firing.
    Firing,
    /// It is resolved.
    Resolved,
}

impl Alert {
    /// Its name; empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }
}

/// A body that is not a supported message of Alertmanager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPayload {
    /// It is not JSON, or not of the expected shape.
    #[error("not a message of Alertmanager's webhook: {0}")]
    Shape(String),
    /// Its version is not supported.
    #[error("payload version {0:?} is not supported; expected {VERSION:?}")]
    Version(String),
    /// It has too many alerts.
    #[error(
        "{0} alerts in one message exceed the limit of {MAX_ALERTS}; set max_alerts: 100 in Alertmanager's webhook_configs"
    )]
    TooMany(usize),
    /// The fingerprint of an alert is not valid.
    #[error("alert {0}: the fingerprint must be 1 to 64 hexadecimal digits")]
    Fingerprint(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    #[serde(default)]
    receiver: String,
    #[serde(default)]
    group_key: serde_json::Value,
    #[serde(default)]
    truncated_alerts: u64,
    alerts: Vec<AlertBody>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlertBody {
    status: StatusBody,
    labels: BTreeMap<String, String>,
    fingerprint: String,
    starts_at: Timestamp,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatusBody {
    Firing,
    Resolved,
}

/// Parsed first, so that a payload of another version is refused by its version, whatever else it has.
#[derive(Deserialize)]
struct Version {
    version: String,
}

impl Payload {
    /// Parses a body.
    ///
    /// # Errors
    /// When it is not a message of Alertmanager's webhook in version 4, or exceeds a limit.
    pub fn read(body: &[u8]) -> Result<Self, BadPayload> {
        let shape = |error: serde_json::Error| BadPayload::Shape(describe(&error));
        let Version { version } = serde_json::from_slice(body).map_err(shape)?;
        if version != VERSION {
            return Err(BadPayload::Version(version.chars().take(20).collect()));
        }
        let Body { receiver, group_key, truncated_alerts, alerts, .. } = serde_json::from_slice(body).map_err(shape)?;
        if alerts.len() > MAX_ALERTS {
            return Err(BadPayload::TooMany(alerts.len()));
        }
        let alerts = alerts.into_iter().enumerate().map(|(at, alert)| alert.check(at)).collect::<Result<_, _>>()?;
        let group = group_key.as_str().map_or_else(|| group_key.to_string(), str::to_owned);
        Ok(Self { receiver: brief(&receiver), group: brief(&group), truncated: truncated_alerts, alerts })
    }
}

impl AlertBody {
    fn check(self, at: usize) -> Result<Alert, BadPayload> {
        let is_hex = self.fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || self.fingerprint.is_empty() || self.fingerprint.len() > 64 {
            return Err(BadPayload::Fingerprint(at));
        }
        let is_label =
            |(name, value): &(String, String)| name.len() <= MAX_LABEL_CHARS && value.len() <= MAX_LABEL_CHARS;
        let status = match self.status {
            StatusBody::Firing => Status::Firing,
            StatusBody::Resolved => Status::Resolved,
        };
        Ok(Alert {
            status,
            labels: self.labels.into_iter().filter(is_label).take(MAX_LABELS).collect(),
            fingerprint: self.fingerprint.to_ascii_lowercase(),
            starts_at: self.starts_at,
        })
    }
}

/// What is wrong with the JSON, without the values in it.
fn describe(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Syntax => "invalid JSON",
        serde_json::error::Category::Eof => "unexpected end of JSON",
        serde_json::error::Category::Data => "a field is missing or has another type",
        serde_json::error::Category::Io => "read error",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}

/// An untrusted text to be recorded: one line of limited length.
fn brief(text: &str) -> String {
    text.chars().map(|found| if found.is_control() { ' ' } else { found }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body() -> serde_json::Value {
        json!({
            "version": "4", "groupKey": "{}:{alertname=\"A\"}", "truncatedAlerts": 3, "status": "firing",
            "receiver": "queuekeeper", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
            "externalURL": "http://am:9093",
            "alerts": [{
                "status": "firing", "labels": {"alertname": "A", "state": "failed"}, "annotations": {},
                "startsAt": "2026-11-21T10:00:00.123456789Z", "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://prom/graph", "fingerprint": "0F1e2d3c4b5a6978",
            }],
        })
    }

    #[test]
    fn a_message_of_alertmanager_is_parsed_with_the_number_of_omitted_alerts() {
        let payload = Payload::read(body().to_string().as_bytes()).unwrap();
        assert_eq!((payload.truncated, payload.receiver.as_str()), (3, "queuekeeper"));
        let [alert] = &payload.alerts[..] else { panic!("{payload:?}") };
        assert_eq!((alert.name(), alert.status), ("A", Status::Firing));
        assert_eq!(alert.fingerprint, "0f1e2d3c4b5a6978");
    }

    #[test]
    fn another_message_is_refused_without_its_contents_in_the_error() {
        let with = |change: fn(&mut serde_json::Value)| {
            let mut body = body();
            change(&mut body);
            Payload::read(body.to_string().as_bytes()).unwrap_err()
        };
        assert_eq!(with(|body| body["version"] = json!("5")), BadPayload::Version("5".to_owned()));
        // A later version, whatever else it has.
        assert_eq!(
            Payload::read(br#"{"version": "5", "signals": []}"#).unwrap_err(),
            BadPayload::Version("5".to_owned())
        );
        for wrong in [
            with(|body| body["version"] = json!(4)),
            with(|body| body["alerts"] = json!({})),
            with(|body| body["alerts"][0]["status"] = json!("pending")),
            with(|body| body["alerts"][0]["startsAt"] = json!("hunter2")),
            with(|body| body["alerts"][0]["labels"]["x"] = json!({"deep": 1})),
            with(|body| body["alerts"][0]["fingerprint"] = json!(null)),
        ] {
            assert!(matches!(wrong, BadPayload::Shape(_)), "{wrong:?}");
            assert!(!wrong.to_string().contains("hunter2"));
        }
        for fingerprint in ["", "../..", "xyz", &"a".repeat(65)] {
            let mut body = body();
            body["alerts"][0]["fingerprint"] = json!(fingerprint);
            let error = Payload::read(body.to_string().as_bytes()).unwrap_err();
            assert_eq!(error, BadPayload::Fingerprint(0), "{fingerprint}");
        }
        let many = vec![body()["alerts"][0].clone(); MAX_ALERTS + 1];
        let mut body = body();
        body["alerts"] = json!(many);
        assert_eq!(Payload::read(body.to_string().as_bytes()).unwrap_err(), BadPayload::TooMany(MAX_ALERTS + 1));
        for junk in [&b""[..], b"{", b"[]", b"null", b"\xff", b"\"4\"", &b"[".repeat(100_000)] {
            assert!(matches!(Payload::read(junk), Err(BadPayload::Shape(_))));
        }
    }
}
