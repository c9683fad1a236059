//! Delivering what the outbox holds: callbacks, and reports as files where no mail server is configured.

use std::time::Duration;

use queuekeeper_catalogue::outbox::NewMessage;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::fetch::Fetcher;
use crate::url::ContentUrl;

/// The kind of a callback's row.
pub const CALLBACK: &str = "callback";

/// Why a message was not delivered.
#[derive(Clone, Debug)]
pub struct DeliveryFailure {
    /// One sentence.
    pub why: String,
    /// Whether another attempt is of no use.
    pub is_final: bool,
    /// For how long the receiver wants no other attempt.
    pub after: Option<Duration>,
}

/// The way to a depositor's system.
pub struct Callback {
    /// How it is reached, with its credentials.
    pub fetcher: Fetcher,
}

impl Callback {
    /// Sends a callback. The receiver recognizes one that is sent again by its `Idempotency-Key`.
    ///
    /// # Errors
    /// When it was not taken.
    pub async fn deliver(&self, message: &NewMessage) -> Result<(), DeliveryFailure> {
        let failure = |why: String, is_final| DeliveryFailure { why, is_final, after: None };
        let url: ContentUrl = message.recipient.parse().map_err(|error| failure(format!("callback: {error}"), true))?;
        let key = HeaderValue::try_from(&message.name)
            .map_err(|_| failure("callback: its key is no header".to_owned(), true))?;
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static("idempotency-key"), key),
        ]);
        let (status, _) =
            self.fetcher.send_to(Method::POST, &url, headers, message.content.clone()).await.map_err(|error| {
                let after = error.retry_after();
                DeliveryFailure { why: format!("callback: {error}"), is_final: !error.is_temporary(), after }
            })?;
        if status.is_success() {
            return Ok(());
        }
        Err(failure(format!("callback: {url} answers {status}"), true))
    }
}
