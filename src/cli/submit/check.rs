//! `queuekeeper submit --check`: what is wrong with a deposit, without making it.

use std::time::Duration;

use anyhow::Context as _;
use queuekeeper_ingest::deposit::{DepositFinding, Findings, NewDeposit};
use queuekeeper_ingest::fetch::{Fetcher, Settings};
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::pack::PackError;
use serde_json::json;

use super::SubmitArgs;
use super::payload::{Content, Payload};
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, REFUSED};
use crate::words::counted;

/// For how long URLs of a manifest are requested.
const LONGEST: Duration = Duration::from_mins(2);

impl SubmitArgs {
    /// Checks the deposit, and prints what is wrong.
    ///
    /// # Errors
    /// When something is, or it cannot be found out.
    pub(super) async fn check(&self) -> anyhow::Result<()> {
        let payload = self.payload()?;
        let deposit = self.deposit(&payload)?;
        let fetcher = self.fetcher(&deposit)?;
        let found = if let Payload::Url(url) = &payload {
            let scratch = tempfile::tempdir().context("cannot create a directory for the manifest")?;
            deposit.check_url(url, &fetcher, scratch.path(), LONGEST).await?
        } else if let Some(file) = payload.file().await? {
            deposit.check_content(file, Some(&fetcher), LONGEST).await?
        } else {
            // Its files are what they are: nothing but the names is checked.
            let problems = deposit.check().err().map(|error| DepositFinding::whole(&error)).into_iter().collect();
            Findings { problems, ..Findings::new(deposit.kind) }
        };
        self.print_findings(&found)
    }

    /// Prints why files and directories cannot be packed, and gives what that is as an error.
    pub(super) fn refused(&self, error: &PackError) -> anyhow::Error {
        let problems = error.problems.iter().map(DepositFinding::whole).collect();
        let found = Findings { problems, has_more: error.has_more, ..Findings::new(Some(DepositType::Container)) };
        self.print_findings(&found).err().unwrap_or_else(|| CommandError::new(REFUSED, error.to_string()).into())
    }

    /// What requests URLs as the daemons do for the profile.
    fn fetcher(&self, deposit: &NewDeposit) -> anyhow::Result<Fetcher> {
        let directory = self.profile_directory().ok_or_else(|| {
            UsageError::flag("--profiles", "--check requires the directory of the profiles, or --data")
        })?;
        let profile = super::profile(&directory, &deposit.profile)?;
        Ok(Fetcher::new(profile.guard(), profile.credentials.clone(), Settings::default())?)
    }

    /// What is wrong with a manifest that is sent to a server, which sees nothing of it; no URL of it is requested.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read_manifest(&self, deposit: &NewDeposit, content: &Content) -> anyhow::Result<Findings> {
        let Some(file) = content.file()? else { return Ok(Findings::new(deposit.kind)) };
        // Its digest is computed where it is sent.
        let deposit = NewDeposit { digest: None, ..deposit.clone() };
        Ok(deposit.check_content(file, None, LONGEST).await?)
    }

    /// Prints what is wrong.
    ///
    /// # Errors
    /// When something is.
    pub(super) fn print_findings(&self, found: &Findings) -> anyhow::Result<()> {
        let problems: Vec<_> = found
            .problems
            .iter()
            .map(|one| json!({"line": one.line, "column": one.column, "message": one.message}))
            .collect();
        let value = json!({
            "type": found.kind.map(|kind| kind.to_string()), "rows": found.rows, "batches": found.batches,
            "urls_requested": found.requested,
            "urls_not_requested": found.unrequested, "warnings": found.warnings, "problems": problems,
            "has_more": found.has_more,
        });
        let mut lines: Vec<_> = found.problems.iter().map(ToString::to_string).collect();
        if lines.is_empty() {
            let nothing =
                if found.warnings.is_empty() { "no problems found" } else { "no reason to refuse it was found" };
            lines.push(nothing.to_owned());
        }
        lines.extend(found.warnings.iter().map(|warning| format!("warning: {warning}")));
        if let Some(kind) = found.kind {
            let rows = found.rows.map(|rows| format!(", rows: {rows}")).unwrap_or_default();
            let batches = found.batches.filter(|batches| *batches > 1);
            let batches = batches.map(|batches| format!(", which become {batches} batches")).unwrap_or_default();
            lines.push(format!("type: {kind}{rows}{batches}"));
        }
        if found.requested + found.unrequested > 0 {
            lines.push(format!("URLs checked: {}, not checked: {}", found.requested, found.unrequested));
        }
        self.output.show(&value, |screen| lines.iter().for_each(|line| screen.say(line)))?;
        match found.problems.len() {
            0 => Ok(()),
            count => {
                let least = if found.has_more { "at least " } else { "" };
                let problems = counted(count as u64, "problem", "problems");
                Err(CommandError::new(REFUSED, format!("{least}{problems}; nothing was deposited")).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_ingest::deposit::MOST_REQUESTS;
    use queuekeeper_ingest::parts::MOST_JOBS;

    use super::*;
    use crate::words::count;

    #[test]
    fn the_help_and_the_documentation_state_the_limits_of_a_batch_and_of_a_check() {
        let mut commands = crate::cli::command();
        let help = commands.find_subcommand_mut("submit").unwrap().render_long_help().to_string();
        let page = include_str!("../../../docs/ingest.md");
        let (jobs, urls) = (count(MOST_JOBS), count(MOST_REQUESTS));
        let longest = counted(LONGEST.as_secs() / 60, "minute", "minutes");
        let of_help = [
            format!("more than {jobs} rows"),
            format!("first {urls} URLs of a manifest are requested, for at most {longest}"),
        ];
        let of_page = [format!("at most {jobs} jobs"), format!("the first {urls}, for at most {longest}")];
        for (text, limits) in [(help.as_str(), of_help), (page, of_page)] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for limit in limits {
                assert!(text.contains(&limit), "“{limit}” is not in: {text}");
            }
        }
    }
}
