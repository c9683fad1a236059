//! Who may make requests, and which faults meet a request once its target is known.

use std::sync::Arc;
use std::time::Duration;

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::{CopySource, Timestamp, TimestampFormat};
use s3s::{S3Result, s3_error};

use super::exchange::{Exchange, Target};
use super::fault::Point;
use super::state::Shared;

/// How far the clocks of a client and of S3 may be apart.
const MOST_SKEW: Duration = Duration::from_mins(15);

/// The one pair of keys.
pub(super) struct Keys {
    pub(super) access_key: String,
    pub(super) secret_key: String,
}

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.access_key {
            return Ok(SecretKey::from(self.secret_key.clone()));
        }
        Err(s3_error!(InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records."))
    }
}

/// Comes between the signature, which holds, and the operation.
pub(super) struct Checkpoint {
    pub(super) shared: Arc<Shared>,
}

#[async_trait::async_trait]
impl S3Access for Checkpoint {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        if cx.credentials().is_none() {
            return Err(s3_error!(AccessDenied, "Access Denied"));
        }
        self.check_clock(cx)?;
        let operation = cx.s3_op().name().to_owned();
        let bucket = cx.s3_path().get_bucket_name().map(str::to_owned);
        let key = cx.s3_path().get_object_key().map(str::to_owned);
        let exchange = cx.extensions_mut().get::<Arc<Exchange>>().cloned();
        let exchange = exchange.ok_or_else(|| s3_error!(InternalError, "a request without its exchange"))?;
        self.shared.log.count(&operation);
        let faults = self.shared.faults.meet(&operation, key.as_deref());
        exchange.begin(Target { operation, bucket, key, faults });
        exchange.pause(Point::Arrival).await;
        exchange.check_refused()?;
        self.check_policy(cx)
    }
}

impl Checkpoint {
    fn check_policy(&self, cx: &S3AccessContext<'_>) -> S3Result<()> {
        let copied = cx.headers().get("x-amz-copy-source").and_then(|source| source.to_str().ok());
        let copied = copied.and_then(|source| CopySource::parse(source).ok());
        let target = (cx.s3_path().get_bucket_name(), cx.s3_path().get_object_key());
        self.shared.policy.check(cx.s3_op().name(), target, copied.as_ref())
    }

    /// Compares the time that was signed with the server's clock, which may be wrong.
    fn check_clock(&self, cx: &S3AccessContext<'_>) -> S3Result<()> {
        let Some(date) = cx.headers().get("x-amz-date").and_then(|value| value.to_str().ok()) else { return Ok(()) };
        let parts = [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].map(|range| date.get(range).unwrap_or_default());
        let [year, month, day, hour, minute, second] = parts;
        let date =
            Timestamp::parse(TimestampFormat::DateTime, &format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"));
        let date = date.map_err(|_| s3_error!(AccessDenied, "invalid x-amz-date"))?;
        let now = self.shared.clock.now();
        if Timestamp::from(now - MOST_SKEW) <= date && date <= Timestamp::from(now + MOST_SKEW) {
            return Ok(());
        }
        let why = "The difference between the request time and the current time is too large.";
        Err(s3_error!(RequestTimeTooSkewed, "{why}"))
    }
}
