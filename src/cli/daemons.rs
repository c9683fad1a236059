//! `queuekeeper daemons`: which daemons run, and on what they work.

use clap::Args;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::{Column, Screen, Table, note, without_csv};
use super::words::{ago, count};
use crate::views::daemons::DaemonList;
use crate::words::{counted, size};

/// List the daemons of queuekeeper and what they are working on
///
/// Daemons of other programs are known only by their locks: they are counted by state, not listed.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct DaemonsArgs {
    #[command(flatten)]
    client: ClientArgs,
}

impl DaemonsArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let store = link.store(false).await?;
            Ok(link.source(&store).daemons(Timestamp::now())?)
        });
        let list = list.await?;
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() && list.processes.is_empty() {
            note("no process of queuekeeper runs daemons for this queue");
        }
        Ok(())
    }
}

fn show(list: &DaemonList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut states = Table::new([
        Column::new("STATE"),
        Column::number("WORKERS"),
        Column::number("JOBS"),
        Column::number("LOCKED"),
        Column::number("LAST TAKEN"),
    ]);
    for state in &list.states {
        states.row([
            state.state.to_owned(),
            count(state.workers),
            count(state.jobs),
            count(state.locked),
            ago(state.last_taken, now),
        ]);
    }
    screen.table(&states);
    for process in &list.processes {
        screen.gap();
        let workers: Vec<_> = process.workers.iter().map(|(daemon, workers)| format!("{daemon} {workers}")).collect();
        screen.entry(&format!(
            "{}, process {}, version {}, for {}: {}",
            process.host,
            process.pid,
            process.version,
            ago(Some(process.since), now),
            workers.join(", ")
        ));
        if let Some(mail) = &process.mail {
            let waiting = counted(mail.waiting, "mail waits", "mails wait");
            let why = if mail.why.is_empty() { String::new() } else { format!(": {}", mail.why) };
            screen.entry(&format!("  {waiting}, the oldest for {}{why}", ago(Some(mail.since), now)));
        }
        for job in &process.jobs {
            screen.entry(&format!("  {} in {}, for {}", job.job, job.state, ago(Some(job.since), now)));
        }
        for lock in &process.locks {
            screen.entry(&format!("  {lock}"));
        }
    }
    if list.grants.is_empty() {
        return;
    }
    screen.gap();
    let mut grants = Table::new([
        Column::new("JOB"),
        Column::new("STATE"),
        Column::new("VOLUME"),
        Column::number("GRANTED"),
        Column::number("WRITTEN"),
        Column::number("WAITS FOR"),
        Column::number("FOR"),
    ]);
    for grant in &list.grants {
        let bytes = |bytes: Option<u64>| bytes.map(size).unwrap_or_default();
        grants.row([
            grant.job.clone(),
            grant.state.to_owned(),
            grant.volume.clone(),
            size(grant.granted_bytes),
            bytes(grant.written_bytes),
            bytes(grant.extension_bytes),
            ago(Some(grant.since), now),
        ]);
    }
    screen.table(&grants);
    let more = list.grants_total.saturating_sub(list.grants.len() as u64);
    if more > 0 {
        screen.entry(&format!("and {} more", count(more)));
    }
}
