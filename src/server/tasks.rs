//! The tasks of a server: all are awaited, and when one ends the others are stopped.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

/// How long the tasks may take to shut down.
const END_LIMIT: Duration = Duration::from_millis(1_800);

/// In how many steps that time goes by.
const END_STEPS: u32 = 20;

/// Tasks that run and end together.
#[derive(Debug)]
pub(super) struct Tasks {
    running: JoinSet<(Arc<str>, anyhow::Result<()>)>,
    started: Vec<(Arc<str>, AbortHandle)>,
    /// Cancelled with the caller's token, or by the first task that ends.
    end: CancellationToken,
    /// How long they may take to shut down.
    limit: Duration,
    /// What tasks that are started from now on log within.
    span: Span,
    /// What follows on their names.
    of: String,
}

impl Tasks {
    /// Tasks that are stopped when `shutdown` is cancelled.
    pub(super) fn new(shutdown: &CancellationToken) -> Self {
        Self {
            running: JoinSet::new(),
            started: Vec::new(),
            end: shutdown.child_token(),
            limit: END_LIMIT,
            span: Span::none(),
            of: String::new(),
        }
    }

    /// Gives them more time to shut down than a server needs.
    pub(super) fn allow(&mut self, limit: Duration) {
        self.limit = self.limit.max(limit.saturating_add(END_LIMIT));
    }

    /// Starts a task, which must run until its token is cancelled.
    pub(super) fn spawn<F>(&mut self, name: &'static str, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let (work, name) = (work(self.end.clone()), Arc::<str>::from(format!("{name}{}", self.of)));
        let named = Arc::clone(&name);
        let handle = self.running.spawn(async move { (named, work.await) }.instrument(self.span.clone()));
        self.started.push((name, handle));
    }

    /// Has the tasks that are started from now on named, and log, as those of a deployment; as those of none for `None`.
    pub(super) fn of(&mut self, deployment: Option<&str>) {
        // Whatever level is logged, it is of a queue.
        self.span = deployment.map_or_else(Span::none, |deployment| tracing::error_span!("queue", %deployment));
        self.of = deployment.map(|name| format!(" of {name}")).unwrap_or_default();
    }

    /// Waits for all of them. The first that ends early stops the others.
    ///
    /// # Errors
    /// The error of the first task that failed, or an error if one ended early or did not end.
    pub(super) async fn join(mut self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        let (end, limit) = (self.end.clone(), self.limit);
        let mut overdue = std::pin::pin!(async move {
            end.cancelled().await;
            // In steps: a machine that is too busy for this to wake up is too busy for the tasks to end.
            for _ in 0..END_STEPS {
                tokio::time::sleep(limit / END_STEPS).await;
            }
        });
        let mut is_overdue = false;
        loop {
            let next = tokio::select! {
                biased;
                next = self.running.join_next() => next,
                () = &mut overdue, if !is_overdue => {
                    is_overdue = true;
                    let late = self.started.iter().filter(|(_, handle)| !handle.is_finished()).map(|(name, _)| &**name);
                    let late = late.collect::<Vec<_>>().join(", ");
                    if late.is_empty() {
                        // The last of them has ended just now.
                        continue;
                    }
                    self.running.abort_all();
                    return outcome.and(Err(anyhow!("{late} did not end within {} ms", limit.as_millis())));
                }
            };
            let Some(ended) = next else { return outcome };
            let ended = match ended {
                Ok((name, Ok(()))) if !self.end.is_cancelled() => Err(anyhow!("{name} ended unexpectedly")),
                Ok((name, ended)) => ended.with_context(|| format!("{name} failed")),
                Err(error) => Err(anyhow!(error).context("a task panicked")),
            };
            outcome = outcome.and(ended);
            self.end.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn until(token: CancellationToken) -> anyhow::Result<()> {
        token.cancelled().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn all_end_well_when_asked() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(&shutdown);
        tasks.spawn("a", until);
        tasks.spawn("b", until);
        shutdown.cancel();
        tasks.join().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_that_fails_or_ends_or_panics_ends_the_others_and_names_itself() {
        for (work, expected) in
            [("fail", "the work failed: no luck"), ("end", "the work ended unexpectedly"), ("panic", "a task panicked")]
        {
            let shutdown = CancellationToken::new();
            let mut tasks = Tasks::new(&shutdown);
            tasks.spawn("the other", until);
            tasks.spawn("the work", move |_| async move {
                match work {
                    "fail" => Err(anyhow!("no luck")),
                    "end" => Ok(()),
                    _ => panic!("{work}"),
                }
            });
            let error = format!("{:#}", tasks.join().await.unwrap_err());
            assert!(error.starts_with(expected), "{error}");
            assert!(!shutdown.is_cancelled(), "the caller's token is the caller's");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_end_is_given_up_in_time() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(&shutdown);
        tasks.spawn("the other", until);
        tasks.of(Some("stage"));
        tasks.spawn("the deaf", |_| std::future::pending());
        shutdown.cancel();
        let started = tokio::time::Instant::now();
        assert_eq!(tasks.join().await.unwrap_err().to_string(), "the deaf of stage did not end within 1800 ms");
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_process_did_not_run_is_not_counted_against_the_tasks() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(&shutdown);
        tasks.spawn("slow", |token| async move {
            token.cancelled().await;
            tokio::time::advance(END_LIMIT * 5).await;
            // Its time goes on now.
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(())
        });
        shutdown.cancel();
        tasks.join().await.unwrap();
    }
}
