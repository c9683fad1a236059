//! One request: its turn, its limit of time, its repetitions, and what is counted of it.

use std::error::Error as StdError;
use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use tokio::time::Instant;

use crate::error::Operation;
use crate::limit::Turn;
use crate::metrics::Outcome;
use crate::retry::Attempts;
use crate::s3::Inner;
use crate::s3::failure::{Failure, Repeat};

/// The slowest connection that is waited for, in bytes a second.
const SLOWEST: u64 = 32 * 1024;

/// How a request is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// What it is a part of.
    pub(super) operation: Operation,
    /// From sending to the answer.
    pub(super) limit: Duration,
}

impl Inner {
    /// A call that is answered at once.
    pub(super) fn quick(&self, operation: Operation) -> Call {
        Call { operation, limit: self.timeouts.connect.saturating_add(self.timeouts.answer) }
    }

    /// A call that sends content of this size.
    pub(super) fn sending(&self, operation: Operation, bytes: u64) -> Call {
        let quick = self.quick(operation);
        Call { limit: quick.limit.saturating_add(Duration::from_secs(bytes / SLOWEST)), ..quick }
    }

    /// A call that the service works for before it answers.
    pub(super) fn working(&self, operation: Operation) -> Call {
        Call { operation, limit: self.timeouts.connect.saturating_add(self.timeouts.work) }
    }

    /// Makes a request that is safe to repeat, until it succeeds, fails for good, or the attempts end.
    ///
    /// A failure that follows one that may have been done says so. A turn ends with the head of the answer, and not with
    /// a body that is read after it: a reader that writes to the same store would wait for itself.
    pub(super) async fn call<T, E, F>(&self, call: Call, send: impl Fn() -> F + Send + Sync) -> Result<T, Failure>
    where
        T: Send,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
    {
        self.call_within(&mut Attempts::new(self.retry), call, send).await
    }

    /// The same as one of several requests that have their attempts together.
    pub(super) async fn call_within<T, E, F>(
        &self,
        attempts: &mut Attempts,
        call: Call,
        send: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Failure>
    where
        T: Send,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
    {
        let mut may_be_done = false;
        loop {
            let turn = self.limit.turn().await;
            attempts.begin();
            let mut failure = match self.attempt(turn, call, &send).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            may_be_done |= failure.may_be_done;
            failure.may_be_done = may_be_done;
            let wait = match failure.repeat {
                Repeat::Never => None,
                Repeat::Transient | Repeat::Busy => attempts.after_failure(failure.retry_after),
            };
            let Some(wait) = wait else { return Err(failure) };
            tracing::debug!(
                store = %self.name, operation = %call.operation, error = %failure.text, wait_ms = wait.as_millis(),
                "repeating a request"
            );
            tokio::time::sleep(wait).await;
            self.metrics.retry(call.operation);
        }
    }

    /// Makes a request that is not repeated.
    pub(super) async fn call_once<T, E, F>(&self, call: Call, send: impl Fn() -> F + Send + Sync) -> Result<T, Failure>
    where
        T: Send,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
    {
        self.attempt(self.limit.turn().await, call, &send).await
    }

    async fn attempt<T, E, F>(
        &self,
        turn: Turn,
        call: Call,
        send: &(impl Fn() -> F + Send + Sync),
    ) -> Result<T, Failure>
    where
        T: Send,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
    {
        let began = Instant::now();
        // The SDK's futures are large.
        let failure = match tokio::time::timeout(call.limit, Box::pin(send())).await {
            Ok(Ok(answer)) => {
                turn.succeeded();
                self.metrics.request(call.operation, Outcome::Ok, began.elapsed());
                return Ok(answer);
            }
            Ok(Err(error)) => Failure::of(&error, &self.target),
            Err(_) => Failure::timed_out(&self.target, call.limit),
        };
        match failure.repeat {
            Repeat::Busy => turn.was_refused_as_busy(),
            Repeat::Never if failure.status.is_some() => turn.succeeded(),
            Repeat::Never | Repeat::Transient => drop(turn),
        }
        let outcome = match (&failure.repeat, failure.status) {
            (Repeat::Transient | Repeat::Busy, _) => Outcome::Unavailable,
            (Repeat::Never, Some(404)) => Outcome::NotFound,
            (Repeat::Never, Some(412)) => Outcome::Precondition,
            (Repeat::Never, _) => Outcome::Refused,
        };
        self.metrics.request(call.operation, outcome, began.elapsed());
        Err(failure)
    }
}
