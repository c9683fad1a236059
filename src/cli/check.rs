//! `queuekeeper check-web-config` and `check-config`: what `promtool check` is to Prometheus.

use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::{UsageError, output};
use crate::config::{ConfigFile, FileError, Validity, WebFile};

/// Check files for --web.config.file, and the certificates and keys that they name
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl CheckArgs {
    /// Says of each file whether it can be taken and whether clients refuse its certificate, a line each.
    ///
    /// # Errors
    /// When one of them cannot be taken ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let now = Timestamp::now();
        check(&self.files, |path| {
            let validity = WebFile::read(path)?.certificate_validity();
            let refused = validity.and_then(|validity| Some((validity, validity.refusal(now)?)));
            Ok(refused.map_or("is right".to_owned(), |(Validity { not_before, not_after }, why)| {
                format!(
                    "is right, but its certificate {why}, and clients refuse it \
                     (valid from {not_before} until {not_after}); replace it by one that is valid now"
                )
            }))
        })
    }
}

/// Check files for --config.file, and the file of tokens that they name
#[derive(Clone, Debug, Args)]
pub struct CheckConfigArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The web configuration, to see whether the users are the same
    #[arg(long = "web.config.file", env = "QUEUEKEEPER_WEB_CONFIG_FILE", hide_env_values = true, value_name = "FILE")]
    web: Option<PathBuf>,
}

impl CheckConfigArgs {
    /// Says of each file whether it can be taken and who may request something by it, a line each.
    ///
    /// # Errors
    /// When one of them cannot ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let web = self.web.as_deref().map(WebFile::read).transpose();
        let web = web.map_err(|error| UsageError::flag("--web.config.file", error))?;
        let now = Timestamp::now();
        check(&self.files, |path| {
            let file = ConfigFile::read(path)?;
            let compared =
                if web.is_some() || file.users() == 0 { "" } else { " (name --web.config.file to compare them)" };
            if web.is_some() {
                file.goes_with(web.as_ref())?;
            }
            let expired: Vec<_> = file.tokens().expired(now).collect();
            let expired =
                if expired.is_empty() { String::new() } else { format!(" (expired: {})", expired.join(", ")) };
            let off = if file.lets_somebody_action() { "" } else { "; it lets nobody act" };
            let (users, tokens) = (file.users(), file.tokens().len());
            Ok(format!("is right: roles for users: {users}{compared}, tokens: {tokens}{expired}{off}"))
        })
    }
}

fn check<T: Display>(files: &[PathBuf], read: impl Fn(&PathBuf) -> Result<T, FileError>) -> anyhow::Result<()> {
    let mut wrong = 0;
    for path in files {
        match read(path) {
            Ok(told) => output::write(&format!("{} {told}\n", path.display()))?,
            Err(error) => {
                wrong += 1;
                output::note(&format!("{} cannot be taken: {error}", path.display()));
            }
        }
    }
    if wrong > 0 {
        let what = if wrong == 1 { "file is" } else { "files are" };
        return Err(UsageError(format!("{wrong} of {} {what} wrong", files.len())).into());
    }
    Ok(())
}
