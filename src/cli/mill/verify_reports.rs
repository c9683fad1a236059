//! `queuekeeper mill verify-reports`: whether the reports of an account are as they were written.

use clap::Args;
use queuekeeper_store::StoreFamilies;

use super::ConfigArgs;
use crate::cli::exit::{CommandError, FAILED, NOT_PROVEN};
use crate::cli::output;
use crate::cli::words::count;
use crate::server;
use crate::views::mill;
use crate::words::counted;

/// Check that no report of an account was changed, removed or inserted
///
/// Each report has a seal with the SHA-256 of its files and of the previous seal. The chain is followed from the last
/// seal, which is in the catalogue, to the first, and each file is read. One line for each problem; exits with 7 if
/// there is any.
#[derive(Clone, Debug, Args)]
pub(super) struct VerifyReportsArgs {
    /// The account
    #[arg(value_name = "ACCOUNT")]
    account: String,

    /// Use only the store, not the catalogue, which need not be in the file: the last seal is then the one with the
    /// highest number
    #[arg(long)]
    store_only: bool,

    /// The SHA-256 of a seal that was the last one at an earlier time: the chain must contain it
    #[arg(long, value_name = "SHA256", value_parser = sha256)]
    seal: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,
}

/// A SHA-256 in hexadecimal, in small letters.
fn sha256(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let why = || "expected 64 hexadecimal digits, as verify-reports writes them at its end".to_owned();
    is_hash.then(|| text.to_ascii_lowercase()).ok_or_else(why)
}

impl VerifyReportsArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        crate::cli::log::begin_plain();
        let read = if self.store_only { self.config.read_for_stores() } else { self.config.read() };
        let (file, config) = read?;
        let account = mill::account(&config.accounts, &self.account).map_err(CommandError::from)?;
        let (families, stores) = (StoreFamilies::default(), file.stores());
        let mut chain = server::mill::report_chain(account, stores, &families).await;
        chain.noted = self.seal;
        if !self.store_only {
            chain.catalogue = Some(server::catalogue::open(stores).await?);
        }
        let mut lines = Ok(());
        let mut say = |line: String| {
            lines = std::mem::replace(&mut lines, Ok(())).and_then(|()| output::write(&format!("{line}\n")));
        };
        let outcome = chain.verify(&mut say).await;
        if let Some(catalogue) = chain.catalogue {
            catalogue.close().await;
        }
        lines?;
        let totals = outcome.map_err(|why| CommandError::new(FAILED, why))?;
        let last = totals.last.map(|last| format!("; the last seal has SHA-256 {last}")).unwrap_or_default();
        let wrong = count(totals.wrong);
        output::write(&format!("{}, {wrong} wrong{last}\n", counted(totals.reports, "report", "reports")))?;
        if totals.wrong > 0 {
            return Err(CommandError::new(NOT_PROVEN, format!("{wrong} wrong")).into());
        }
        Ok(())
    }
}
