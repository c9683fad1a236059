//! The log: on standard error, as text or JSON.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The options of the log.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// The minimum level of messages to log
    #[arg(long = "log.level", value_name = "LEVEL", default_value = "info")]
    level: Level,

    /// The format of messages
    #[arg(long = "log.format", value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogArgs {
    /// Starts logging. Further calls in a process do nothing.
    pub fn begin(&self) {
        self.begin_with(|_| None);
    }

    /// The same where people read along: with what the daemons do with each job only at `debug`, and their warnings.
    pub(super) fn begin_for_readers(&self) {
        self.begin_with(|level| (level == Level::Info).then_some(("queuekeeper_ingest", LevelFilter::WARN)));
    }

    fn begin_with(&self, other: impl FnOnce(Level) -> Option<(&'static str, LevelFilter)>) {
        let level = match self.level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        };
        // Messages of libraries are of use only for debugging them: the client library warns of each failed handshake,
        // while our own message reports once that there is no connection, and why.
        let libraries = match self.level {
            Level::Error | Level::Warn | Level::Info => LevelFilter::ERROR,
            Level::Debug => LevelFilter::WARN,
            Level::Trace => LevelFilter::DEBUG,
        };
        let mut filter = Targets::new().with_default(libraries).with_target("queuekeeper", level);
        if let Some((target, level)) = other(self.level) {
            filter = filter.with_target(target, level);
        }
        let registry = tracing_subscriber::registry().with(filter);
        let begun = match self.format {
            Format::Text => {
                let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
                registry
                    .with(fmt::layer().with_writer(move || Lines::stderr(is_terminal)).with_ansi(is_terminal))
                    .try_init()
            }
            Format::Json => registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init(),
        };
        // A test with several servers in one process has a log already.
        drop(begun);
    }
}

/// Starts logging for commands: our own warnings and errors, as plain lines.
pub(super) fn begin_plain() {
    let filter = Targets::new().with_target("queuekeeper", LevelFilter::WARN);
    let lines = fmt::layer().with_writer(|| Lines::stderr(false)).with_ansi(false).with_target(false).without_time();
    drop(tracing_subscriber::registry().with(filter).with(lines).try_init());
}

/// The attributes of messages on a terminal: dim, bold, italic, and the colours of levels.
const ATTRIBUTES: [&str; 10] = ["0", "1", "2", "3", "31", "32", "33", "34", "35", "36"];

/// Writes each message as one line with all its contents visible, whatever untrusted texts it has: a line end would
/// make a second message of the rest, a direction mark would show it in another order, and a terminal executes some
/// texts.
struct Lines<W> {
    to: W,
    /// Whether messages have attributes.
    is_terminal: bool,
}

impl Lines<io::Stderr> {
    fn stderr(is_terminal: bool) -> Self {
        Self { to: io::stderr(), is_terminal }
    }
}

impl<W: Write> Write for Lines<W> {
    /// Writes a whole message, as the layer passes it.
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        self.to.write_all(one_line(&String::from_utf8_lossy(message), self.is_terminal).as_bytes())?;
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn one_line(message: &str, is_terminal: bool) -> String {
    let message = message.strip_suffix('\n').unwrap_or(message);
    let mut line = String::with_capacity(message.len() + 1);
    for (at, found) in message.char_indices() {
        let attribute = || message[at..].strip_prefix("\u{1b}[")?.split_once('m').map(|(code, _)| code);
        let is_hidden = match found {
            '\u{1b}' => !(is_terminal && attribute().is_some_and(|code| ATTRIBUTES.contains(&code))),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
            other => other.is_control(),
        };
        if is_hidden { line.extend(found.escape_debug()) } else { line.push(found) }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_is_one_line_whatever_texts_it_has() {
        let evil = "x\r\n2026-01-01T00:00:00Z ERROR forged \u{1b}[2J\u{1b}[8m\u{9b}2J\u{202e}\u{2028}ß";
        for is_terminal in [false, true] {
            let kept = Kept::default();
            let to = kept.clone();
            let writer = move || Lines { to: to.clone(), is_terminal };
            let layer = fmt::layer().with_writer(writer).with_ansi(is_terminal);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                tracing::warn!(path = %evil, text = evil, "what was read is {evil}");
            });
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert_eq!((text.lines().count(), text.ends_with('\n')), (1, true), "{text:?}");
            assert!(!text.contains(['\r', '\u{9b}', '\u{202e}', '\u{2028}']), "{text:?}");
            assert!(!text.contains("\u{1b}[2J") && !text.contains("\u{1b}[8m"), "{text:?}");
            assert_eq!(text.contains('\u{1b}'), is_terminal, "the level has its colour on a terminal: {text:?}");
            assert_eq!(text.matches("ß").count(), 3, "nothing is lost: {text:?}");
        }
    }
}
