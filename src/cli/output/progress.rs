//! Spinners and progress bars, on a terminal only.

use std::fmt;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use queuekeeper_store::store::Chunks;

use super::Screen;
use crate::views::show::visible;

/// The refresh interval.
const TICK: Duration = Duration::from_millis(120);

/// A spinner, shown until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Spinner(ProgressBar);

impl Spinner {
    pub(in crate::cli) fn start(what: &'static str) -> Self {
        // It is hidden where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Writes a line to standard error.
    pub(in crate::cli) fn note(&self, text: &str) {
        let mut screen = Screen::beside();
        screen.say(text);
        self.0.suspend(|| screen.print());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A progress bar, shown until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Bar(ProgressBar);

impl Bar {
    /// A bar for this many items; 0 if the number is unknown.
    pub(in crate::cli) fn start(what: String, items: u64) -> Self {
        let bar = ProgressBar::with_draw_target((items > 0).then_some(items), ProgressDrawTarget::stderr());
        bar.set_style(style("{msg} {wide_bar} {human_pos}/{human_len} {speed} {eta}"));
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Sets how many are done.
    pub(in crate::cli) fn set(&self, done: u64, of: u64) {
        self.0.set_length(of);
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The progress of content that is being sent or received, shown until it is dropped.
#[derive(Debug)]
pub(in crate::cli) struct Transfer(ProgressBar);

impl Transfer {
    /// Of content with this size in bytes, if that is known.
    pub(in crate::cli) fn start(what: &str, size: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr());
        bar.set_style(style(match size {
            Some(_) => "{wide_msg} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
            None => "{wide_msg} {binary_bytes} {binary_bytes_per_sec}",
        }));
        bar.set_message(visible(what));
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Sets how many bytes have passed.
    pub(in crate::cli) fn set(&self, bytes: u64) {
        self.0.set_position(bytes);
    }

    /// The content, counted as it passes.
    pub(in crate::cli) fn watch(&self, content: Chunks) -> Chunks {
        let bar = self.0.clone();
        content.inspect_ok(move |chunk| bar.inc(chunk.len() as u64)).boxed()
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let speed = |state: &ProgressState, text: &mut dyn fmt::Write| {
        // If the terminal cannot be written to, there is nothing to show.
        let _ = write!(text, "{:.0}/s", state.per_sec());
    };
    ProgressStyle::with_template(template).expect("the templates above are right").with_key("speed", speed)
}
