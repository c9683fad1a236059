//! Delivering what the outbox holds: mails and callbacks.
//!
//! Rows are taken under a lease, so that any number of processes share the outbox; whatever is delivered twice, since a
//! process ended in between, has the same name and content.

pub(crate) mod deliver;
mod waiting;

use std::time::Duration;

use queuekeeper_catalogue::outbox::NewMessage;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::fetch::Fetcher;
use crate::url::ContentUrl;

pub use waiting::WaitingMail;

/// The kind of the row of a callback that Notify delivers, since the job's state depends on it.
pub const CALLBACK: &str = "callback";

/// The kind of the row of a callback on which no state depends: that a job failed.
pub const FAILED_CALLBACK: &str = "failed-callback";

/// All kinds of rows.
pub(crate) const KINDS: [&str; 3] = [queuekeeper_mail::MAIL, CALLBACK, FAILED_CALLBACK];

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
            .map_err(|_| failure("callback: its key is not a valid header".to_owned(), true))?;
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
