//! Prompts, and the signals that end a command.

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::exit::{CommandError, REFUSED};
use super::on_signal;

/// The signals that end a command that changes something: SIGINT, SIGTERM and SIGHUP. There is one listener for the
/// whole command: once a process has listened to a signal, the signal no longer ends it, and one between two listeners
/// would be lost.
#[derive(Debug)]
pub(super) struct Interrupts {
    interrupted: CancellationToken,
    waiting: JoinHandle<()>,
}

impl Interrupts {
    /// Starts listening.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let (interrupted, waiting) = on_signal().context("cannot listen to signals")?;
        Ok(Self { interrupted, waiting })
    }

    /// What a signal cancels.
    pub(super) fn token(&self) -> CancellationToken {
        self.interrupted.clone()
    }

    /// Whether a signal came.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.is_cancelled()
    }

    /// Waits for a signal.
    pub(super) async fn wait(&self) {
        self.interrupted.cancelled().await;
    }

    /// Waits for something that changes nothing and may be aborted.
    ///
    /// # Errors
    /// When a signal arrived first.
    pub(super) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, CommandError> {
        tokio::select! {
            biased;
            () = self.wait() => Err(CommandError::new(REFUSED, "interrupted; nothing was done")),
            outcome = work => Ok(outcome),
        }
    }

    /// Asks for confirmation.
    ///
    /// # Errors
    /// When the answer is no or cannot be read, or a signal arrived.
    pub(super) async fn confirm(&self, question: &str) -> anyhow::Result<()> {
        let answer = self.ask(&format!("{question} [y/N] ")).await?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(CommandError::new(REFUSED, "not confirmed; nothing was done").into())
    }

    /// Prompts for a line.
    ///
    /// # Errors
    /// When it cannot be read, or a signal arrived.
    pub(super) async fn ask(&self, question: &str) -> anyhow::Result<String> {
        let mut stderr = std::io::stderr();
        write!(stderr, "{question}").and_then(|()| stderr.flush()).context("cannot write the prompt")?;
        // A blocking read from a terminal cannot be cancelled: after a signal its thread ends with the process.
        let read = spawn_blocking(|| {
            let mut answer = String::new();
            std::io::stdin().lock().read_line(&mut answer).map(|_| answer)
        });
        let answer = self.unless(read).await.inspect_err(|_| {
            // The next message starts a new line.
            let _ = writeln!(std::io::stderr());
        })?;
        answer.context("the thread that reads the answer failed")?.context("cannot read the answer")
    }

    /// Stops listening.
    pub(super) async fn close(self) {
        self.interrupted.cancel();
        // It has no result.
        let _ = self.waiting.await;
    }
}
