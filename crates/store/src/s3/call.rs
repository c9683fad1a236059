//! One request: its turn, its limit of time, its repetitions, and what is counted of it.

use std::error::Error as StdError;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use tokio::time::{Instant, timeout};

use crate::error::Operation;
use crate::limit::Turn;
use crate::metrics::StoreRequestOutcome;
use crate::retry::Attempts;
use crate::s3::Inner;
use crate::s3::failure::{Failure, Repeat};
use crate::time::moment_in;

/// The slowest connection that is waited for, in bytes a second.
const SLOWEST: u64 = 32 * 1024;

/// A wait for an answer that lasts this long is announced, once until an answer comes.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(2);

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
    /// A failure that follows one that may have been done says so. A turn ends with the head of the answer, and not
    /// with a body that is read after it: a reader that writes to the same store would wait for itself.
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
        let began = Instant::now();
        loop {
            let turn = self.limit.turn().await;
            attempts.begin();
            let (more, attempt_began) = (attempts.left(call.limit), Instant::now());
            let mut failure = match self.attempt(turn, call, more, &send).await {
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
            if began.elapsed() + wait >= ANNOUNCED_AFTER {
                self.announce(&failure.brief(), wait.max(attempts.left(attempt_began.elapsed())));
            }
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
        self.attempt(self.limit.turn().await, call, Duration::ZERO, &send).await
    }

    /// Says that the service has not answered yet, why, and how long it is tried at most.
    fn announce(&self, why: &str, left: Duration) {
        if self.is_announced.swap(true, Ordering::Relaxed) {
            return;
        }
        let until = moment_in(left);
        tracing::warn!(
            "store {}: no answer from {} yet{why}, trying again until {until}",
            self.name,
            self.target.endpoint
        );
    }

    async fn attempt<T, E, F>(
        &self,
        turn: Turn,
        call: Call,
        more: Duration,
        send: &(impl Fn() -> F + Send + Sync),
    ) -> Result<T, Failure>
    where
        T: Send,
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
    {
        let began = Instant::now();
        // The SDK's futures are large.
        let mut request = pin!(timeout(call.limit, Box::pin(send())));
        let is_quick = call.limit <= self.quick(call.operation).limit;
        let answer = if !is_quick {
            request.await
        } else if let Ok(answer) = timeout(ANNOUNCED_AFTER, &mut request).await {
            answer
        } else {
            self.announce("", call.limit.saturating_sub(ANNOUNCED_AFTER).saturating_add(more));
            request.await
        };
        let failure = match answer {
            Ok(Ok(answer)) => {
                self.is_announced.store(false, Ordering::Relaxed);
                turn.succeeded();
                self.metrics.request(call.operation, StoreRequestOutcome::Ok, began.elapsed());
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
            (Repeat::Transient | Repeat::Busy, _) => StoreRequestOutcome::Unavailable,
            (Repeat::Never, Some(404)) => StoreRequestOutcome::NotFound,
            (Repeat::Never, Some(412)) => StoreRequestOutcome::Precondition,
            (Repeat::Never, _) => StoreRequestOutcome::Refused,
        };
        self.metrics.request(call.operation, outcome, began.elapsed());
        Err(failure)
    }
}
