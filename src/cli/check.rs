//! `queuekeeper check-web-config` and `check-config`, as `promtool check` for Prometheus.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::{UsageError, output};
use crate::config::{ConfigFile, FileError, Validity, WebFile};

/// Check files for --web.config.file, and the certificates and keys that they refer to
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl CheckArgs {
    /// Reports for each file whether it is valid, and whether clients refuse its certificate, one line each.
    ///
    /// # Errors
    /// When a file is not valid ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let now = Timestamp::now();
        check(&self.files, |path| {
            let validity = WebFile::read(path)?.certificate_validity();
            let refused = validity.and_then(|validity| Some((validity, validity.refusal(now)?)));
            Ok(refused.map_or("is valid".to_owned(), |(Validity { not_before, not_after }, why)| {
                format!(
                    "is valid, but its certificate {why}, so that clients refuse it \
                     (valid from {not_before} until {not_after}); replace it with a valid one"
                )
            }))
        })
    }
}

/// Check files for --config.file, and the tokens file that they refer to
#[derive(Clone, Debug, Args)]
pub struct CheckConfigArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The web configuration, to check that the users are the same
    #[arg(long = "web.config.file", value_name = "FILE")]
    web: Option<PathBuf>,
}

impl CheckConfigArgs {
    /// Reports for each file whether it is valid and which roles it has, one line each.
    ///
    /// # Errors
    /// When a file is not valid ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let web = self.web.as_deref().map(WebFile::read).transpose();
        let web = web.map_err(|error| UsageError::flag("--web.config.file", error))?;
        let now = Timestamp::now();
        check(&self.files, |path| {
            let file = ConfigFile::read(path)?;
            let compared =
                if web.is_some() || file.users() == 0 { "" } else { " (set --web.config.file to compare them)" };
            if web.is_some() {
                file.check_users(web.as_ref())?;
            }
            let expired: Vec<_> = file.tokens().expired(now).collect();
            let expired =
                if expired.is_empty() { String::new() } else { format!(" (expired: {})", expired.join(", ")) };
            let off = if file.allows_actions() { "" } else { "; it allows no actions" };
            let (users, tokens) = (file.users(), file.tokens().len());
            Ok(format!("is valid: roles for users: {users}{compared}, tokens: {tokens}{expired}{off}"))
        })
    }
}

fn check<T: Display>(files: &[PathBuf], read: impl Fn(&PathBuf) -> Result<T, FileError>) -> anyhow::Result<()> {
    let mut wrong = 0;
    for path in files {
        match read(path) {
            Ok(result) => output::write(&format!("{} {result}\n", path.display()))?,
            Err(error) => {
                wrong += 1;
                output::note(&format!("{} is not valid: {error}", path.display()));
            }
        }
    }
    if wrong > 0 {
        let what = if wrong == 1 { "file is" } else { "files are" };
        return Err(UsageError(format!("{wrong} of {} {what} not valid", files.len())).into());
    }
    Ok(())
}
