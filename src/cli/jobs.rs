//! `queuekeeper jobs`: jobs by any filter.

use clap::Args;
use jiff::Timestamp;

use super::act::ActArgs;
use super::client::{ClientArgs, Link, job_id};
use super::exit::CommandError;
use super::output::{Column, OutputArgs, Screen, Table};
use super::paging::Paging;
use super::verbs::{self, ParameterArgs};
use super::words::{ago, number, size, yes};
use super::{UsageError, headings};
use crate::actions::{ActionKind, BulkAction, JobAction, ListOf, MAX_ITEMS, Target, TargetKind};
use crate::mirror::MirrorStore;
use crate::views::PageQuery;
use crate::views::jobs::{JobFilter, JobItem, JobList};
use crate::views::query::Parameters as _;
use queuekeeper_queue::id::JobId;

/// The number of example jobs shown before a bulk action.
const SAMPLE: usize = 10;

/// List jobs, or execute an action on each that matches
///
/// Listing and --dry-run write nothing, so they assume that the clocks of this host and of ZooKeeper agree, unless
/// znodes show otherwise; an action with --fault or --min-age first measures ZooKeeper's clock by one write to
/// /queuekeeper/clock.
#[derive(Clone, Debug, Args)]
pub(super) struct JobsArgs {
    /// The action on each matching job [default: list them]
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Job), conflicts_with_all = ["limit", "cursor"])]
    action: Option<ActionKind>,

    #[command(flatten)]
    filter: JobFilter,

    #[command(flatten)]
    paging: Paging,

    /// Leave out this job; may be repeated
    #[arg(long, value_name = "JOB", value_parser = job_id, requires = "action", help_heading = headings::ACTING)]
    except: Vec<JobId>,

    #[command(flatten)]
    parameters: ParameterArgs<JobAction>,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

impl JobsArgs {
    /// Lists them, or executes an action on each.
    ///
    /// # Errors
    /// When the queue cannot be read, there is no such collection or group, or not everything could be done.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        match self.action {
            None => self.list().await,
            Some(kind) => self.act(kind).await,
        }
    }

    async fn list(&self) -> anyhow::Result<()> {
        self.parameters.check(None)?;
        let list = self.client.ask(async |link| {
            let store = link.store(self.filter.fault.is_some()).await?;
            let (source, now) = (link.source(&store), Timestamp::now());
            Ok(self.paging.take(|page| source.jobs(&self.filter, page, now))?)
        });
        let list = list.await?;
        self.client.output.list(&list, &list.items, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "job", "jobs");
        }
        Ok(())
    }

    /// Executes an action on each job that matches now.
    async fn act(&self, kind: ActionKind) -> anyhow::Result<()> {
        let bulk = BulkAction { kind, parameters: self.parameters.of(kind)? };
        if !self.filter.is_filtered() && !self.paging.is_all() {
            return Err(UsageError("set a filter, or --all for all jobs".to_owned()).into());
        }
        change_jobs(&self.client, &self.act, bulk, &self.filter, &self.except).await
    }
}

/// Executes an action on each job that a query finds, but for those left out.
async fn change_jobs(
    client: &ClientArgs,
    act: &ActArgs,
    bulk: BulkAction,
    filter: &JobFilter,
    except: &[JobId],
) -> anyhow::Result<()> {
    act.check(client.output)?;
    client
        .ask(async |link| {
            if filter.goes_by_age() && !act.is_dry_run() {
                link.measure_or_refuse(", or select the jobs without --fault and --min-age").await?;
            }
            let store = link.store(filter.fault.is_some()).await?;
            change_found(link, store, act, client.output, bulk, (filter, except)).await
        })
        .await
}

/// The same with a mirror.
async fn change_found(
    link: &Link,
    store: MirrorStore,
    act: &ActArgs,
    output: OutputArgs,
    bulk: BulkAction,
    (filter, except): (&JobFilter, &[JobId]),
) -> anyhow::Result<()> {
    let (source, now) = (link.source(&store), Timestamp::now());
    let found = source.matching(filter, MAX_ITEMS, now).map_err(CommandError::from)?;
    if let Some(other) = except.iter().find(|id| !found.iter().any(|(found, _)| found == *id)) {
        return Err(UsageError::flag("--except", format!("{other} does not match the filter")).into());
    }
    let found = found.into_iter().filter(|(id, _)| !except.contains(id));
    let items = found.map(|(id, version)| (Target::Job(id), Some(version))).collect();
    let mut sample = source.jobs(filter, &PageQuery::first(SAMPLE + except.len()), now).map_err(CommandError::from)?;
    let is_left = |job: &JobItem| !except.iter().any(|id| id.to_string() == job.id);
    sample.items.retain(is_left);
    sample.items.truncate(SAMPLE);
    act.with_session(link, Some(store), output, async |session| {
        session.each(bulk, ListOf::Jobs, items, |screen| show(&sample, screen)).await
    })
    .await
}

fn show(list: &JobList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut table = Table::new([
        Column::new("JOB"),
        Column::new("STATE"),
        Column::number("FOR"),
        Column::number("PRI"),
        Column::number("TRY"),
        Column::new("LOCK"),
        Column::number("SPACE").if_wide(),
        Column::new("BATCH").if_wide(),
        Column::rest("COLLECTION").if_wide(),
        Column::rest("FILE").if_wide(),
        Column::rest("MESSAGE").if_wide(),
        Column::rest("ABOUT").if_narrow(),
    ]);
    for job in &list.items {
        table.row([
            job.id.clone(),
            state(job),
            ago(job.entered, now),
            number(job.priority),
            number(job.retry_count.filter(|count| *count > 0)),
            yes(job.locked),
            size(job.space_needed_bytes),
            number(job.batch.as_ref()),
            job.collection.clone(),
            job.filename.clone(),
            job.message.clone(),
            about(job),
        ]);
    }
    screen.table(&table);
}

/// Its state; the text of its status if that is not a state.
fn state(job: &JobItem) -> String {
    job.status_text.as_ref().map_or_else(|| job.state.to_owned(), |text| format!("{} ({text})", job.state))
}

/// The message of a failed job, else its title.
fn about(job: &JobItem) -> String {
    if job.group.is_some() { job.message.clone() } else { job.filename.clone() }
}
