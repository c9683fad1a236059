//! The program, run to its end.

use std::path::Path;
use std::process::{Command, Stdio};

use tokio::task::spawn_blocking;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    line: String,
}

/// A session time-out that a busy machine does not reach, as the value of its variable. A flag comes before it.
pub(super) const SESSION: (&str, &str) = ("QUEUEKEEPER_ZOOKEEPER_SESSION_TIMEOUT", "60s");

/// The program, without our own environment variables, and without a terminal.
pub(crate) fn queuekeeper(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUEUEKEEPER_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).env_remove("XDG_STATE_HOME").env("HOME", home).env(SESSION.0, SESSION.1);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it. Arguments are words, without quotes of any kind.
pub(crate) async fn run(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = queuekeeper(home, arguments);
    let line = arguments.join(" ");
    let output = spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ran { code: output.status.code().unwrap(), out, err, line }
}

impl Ran {
    /// Fails unless it ended with this exit code, and printed each of these texts.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, printed: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        for part in printed {
            assert!(self.out.contains(part) || self.err.contains(part), "{part:?} is not printed by {self:#?}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{}: {error}: {}", self.line, self.out))
    }
}
