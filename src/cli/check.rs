//! `queuekeeper check-web-config`: what `promtool check web-config` is to Prometheus.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::UsageError;
use crate::config::WebFile;

/// Check files for --web.config.file, and the certificates and keys that they name
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl CheckArgs {
    /// Says of each file whether it can be taken, a line each.
    ///
    /// # Errors
    /// When one of them cannot ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let mut wrong = 0;
        for path in &self.files {
            match WebFile::read(path) {
                Ok(_) => writeln!(std::io::stdout(), "{} is right", path.display())?,
                Err(error) => {
                    wrong += 1;
                    writeln!(std::io::stderr(), "{} cannot be taken: {error}", path.display())?;
                }
            }
        }
        if wrong > 0 {
            let what = if wrong == 1 { "file is" } else { "files are" };
            return Err(UsageError(format!("{wrong} of {} {what} wrong", self.files.len())).into());
        }
        Ok(())
    }
}
