//! Questions to the user of a command, and the signals that end it.

use std::io::{BufRead as _, Write as _};

use anyhow::Context as _;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::exit::{Ending, REFUSED};
use super::on_signal;

/// What ends a command that changes something: Ctrl-C, SIGTERM or SIGHUP. One listener for the whole command, since a
/// process that has once listened to a signal is not ended by it any more, and one that comes between two listeners is
/// lost.
#[derive(Debug)]
pub(super) struct Interrupts {
    interrupted: CancellationToken,
    waiting: JoinHandle<()>,
}

impl Interrupts {
    /// Begins to listen.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let (interrupted, waiting) = on_signal().context("cannot listen to signals")?;
        Ok(Self { interrupted, waiting })
    }

    /// Whether a signal came.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted.is_cancelled()
    }

    /// Waits for a signal.
    pub(super) async fn wait(&self) {
        self.interrupted.cancelled().await;
    }

    /// Waits for something that changes nothing and may be given up.
    ///
    /// # Errors
    /// When a signal came before it was over.
    pub(super) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Ending> {
        tokio::select! {
            biased;
            () = self.wait() => Err(Ending::new(REFUSED, "interrupted, and nothing was done")),
            outcome = work => Ok(outcome),
        }
    }

    /// Asks whether to go on.
    ///
    /// # Errors
    /// When the answer is no, cannot be read, or a signal came instead.
    pub(super) async fn confirm(&self, question: &str) -> anyhow::Result<()> {
        let answer = self.ask(&format!("{question} [y/N] ")).await?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(Ending::new(REFUSED, "the answer was no, and nothing was done").into())
    }

    /// Asks for a line.
    ///
    /// # Errors
    /// When it cannot be read, or a signal came instead.
    pub(super) async fn ask(&self, question: &str) -> anyhow::Result<String> {
        let mut told = std::io::stderr();
        write!(told, "{question}").and_then(|()| told.flush()).context("cannot ask")?;
        // Nothing takes a read from a terminal back: after a signal its thread ends with the process.
        let read = spawn_blocking(|| {
            let mut answer = String::new();
            std::io::stdin().lock().read_line(&mut answer).map(|_| answer)
        });
        let answer = self.unless(read).await.inspect_err(|_| {
            // What is said next begins a line of its own.
            let _ = writeln!(std::io::stderr());
        })?;
        answer.context("the thread that reads the answer failed")?.context("cannot read the answer")
    }

    /// Ends the listening.
    pub(super) async fn close(self) {
        self.interrupted.cancel();
        // It has nothing to say.
        let _ = self.waiting.await;
    }
}
