//! A limit in time for requests.

use std::time::Duration;

use zookeeper_client::Error;

/// Why a request gave no answer, or gave an error for one.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No answer came in time. Whether a write was done is not known.
    #[error("ZooKeeper did not answer within {} ms", limit.as_millis())]
    TimedOut {
        /// How long was waited.
        limit: Duration,
    },
    /// The server, or the client library, answered with an error.
    #[error(transparent)]
    Refused(#[from] Error),
}

impl RequestError {
    /// Whether it is the connection that failed and not the request: another session may succeed.
    #[must_use]
    pub fn is_connection(&self) -> bool {
        match self {
            Self::TimedOut { .. } => true,
            Self::Refused(error) => matches!(
                error,
                Error::ConnectionLoss
                    | Error::SessionExpired
                    | Error::SessionMoved
                    | Error::ClientClosed
                    | Error::Timeout
                    // The library's own words, such as for a connection without an answer.
                    | Error::Custom(_)
            ),
        }
    }
}

/// Awaits `request` for at most `limit`.
///
/// A request that is made while the client is disconnected waits for the reconnection or for the end of the session,
/// which may be minutes; this is for callers that have something better to do.
///
/// # Errors
/// When the time is over, or when the request itself fails.
pub async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, RequestError> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => Err(RequestError::TimedOut { limit }),
    }
}
