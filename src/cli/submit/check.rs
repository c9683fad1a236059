//! `queuekeeper submit --check`: what is wrong with a deposit, without making it.

use std::fs::File;
use std::io::Seek as _;
use std::time::Duration;

use anyhow::Context as _;
use queuekeeper_ingest::deposit::{Findings, NewDeposit};
use queuekeeper_ingest::fetch::{Fetcher, Settings};
use queuekeeper_ingest::profile::Profiles;
use serde_json::json;

use super::SubmitArgs;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, REFUSED};
use crate::mirror::words::counted;
use crate::server::standalone::DataDirectory;

/// For how long URLs of a manifest are requested.
const LONGEST: Duration = Duration::from_mins(2);

impl SubmitArgs {
    /// Checks the deposit, and prints what is wrong.
    ///
    /// # Errors
    /// When something is, or it cannot be found out.
    pub(super) async fn check(&self) -> anyhow::Result<()> {
        let url = self.url()?;
        let deposit = self.deposit(url.as_ref())?;
        let fetcher = self.fetcher(&deposit)?;
        let found = if let Some(url) = &url {
            let scratch = tempfile::tempdir().context("cannot make a directory for the manifest")?;
            deposit.check_url(url, &fetcher, scratch.path(), LONGEST).await?
        } else {
            deposit.check_content(self.content().await?, &fetcher, LONGEST).await?
        };
        self.print_findings(&found)?;
        match found.problems.len() {
            0 => Ok(()),
            count => {
                let least = if found.has_more { "at least " } else { "" };
                let problems = counted(count as u64, "problem", "problems");
                Err(CommandError::new(REFUSED, format!("{least}{problems}; nothing was deposited")).into())
            }
        }
    }

    /// The content in a file: where it lies, or copied from standard input or a pipe, which can be read once only.
    async fn content(&self) -> anyhow::Result<File> {
        let mut once = if self.payload == "-" {
            self.open()?
        } else {
            let file = self.file()?;
            if file.metadata()?.is_file() {
                return Ok(file);
            }
            Box::new(file)
        };
        let copied = tokio::task::spawn_blocking(move || {
            let mut copy = tempfile::tempfile()?;
            std::io::copy(&mut once, &mut copy)?;
            copy.rewind()?;
            Ok::<_, std::io::Error>(copy)
        });
        copied.await?.context("cannot copy the content")
    }

    /// What requests URLs as the daemons do for the profile.
    fn fetcher(&self, deposit: &NewDeposit) -> anyhow::Result<Fetcher> {
        let of_data = || self.data.clone().map(|data| DataDirectory::new(data).profiles());
        let directory =
            self.profiles.clone().or_else(of_data).ok_or_else(|| {
                UsageError::flag("--profiles", "--check needs the directory of the profiles, or --data")
            })?;
        let profiles = Profiles::read(&directory).map_err(|error| UsageError::flag("--profiles", error))?;
        let profile = profiles.get(&deposit.profile).ok_or_else(|| {
            let why = format!("there is no profile {:?} in {}", deposit.profile, directory.display());
            CommandError::new(REFUSED, why)
        })?;
        Ok(Fetcher::new(profile.guard(), profile.credentials.clone(), Settings::default())?)
    }

    fn print_findings(&self, found: &Findings) -> anyhow::Result<()> {
        let problems: Vec<_> = found
            .problems
            .iter()
            .map(|one| json!({"line": one.line, "column": one.column, "message": one.message}))
            .collect();
        let value = json!({
            "type": found.kind.map(|kind| kind.to_string()), "rows": found.rows, "urls_requested": found.requested,
            "urls_not_requested": found.unrequested, "problems": problems, "has_more": found.has_more,
        });
        let mut lines: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
        if lines.is_empty() {
            lines.push("nothing is wrong".to_owned());
        }
        if let Some(kind) = found.kind {
            let rows = found.rows.map(|rows| format!(", rows: {rows}")).unwrap_or_default();
            lines.push(format!("type: {kind}{rows}"));
        }
        if found.requested + found.unrequested > 0 {
            lines.push(format!("URLs checked: {}, not checked: {}", found.requested, found.unrequested));
        }
        self.output.show(&value, |screen| lines.iter().for_each(|line| screen.say(line)))
    }
}
