//! `queuekeeper jobs`: which jobs, by any filter.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;

use super::UsageError;
use super::act::ActArgs;

use super::client::{ClientArgs, Link};
use super::exit::CommandError;
use super::output::{Column, OutputArgs, Screen, Table};
use super::paging::{Paging, Parameters};
use super::verbs::{self, JobParameters};
use super::words::{ago, number, size, yes};
use crate::actions::{ActionKind, BulkAction, ListOf, TargetKind};
use crate::mirror::Store;
use crate::mirror::find::{Direction, JobSort};
use crate::mirror::state_label;
use crate::views::jobs::{JobItem, JobList};
use crate::web::Pairs;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::state::{JobState, State as _};

/// How many jobs are shown before something is done to many.
const SAMPLE: usize = 10;

/// List jobs, or do something to each that matches
#[derive(Clone, Debug, Args)]
pub(super) struct JobsArgs {
    /// What to do to each job that matches; without it, list them
    #[arg(value_name = "ACTION", value_parser = verbs::parser(TargetKind::Job))]
    action: Option<ActionKind>,

    #[command(flatten)]
    parameters: JobParameters,

    #[command(flatten)]
    filter: JobFilter,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    act: ActArgs,

    #[command(flatten)]
    client: ClientArgs,
}

/// Which jobs; all that is given must hold.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Which jobs")]
pub(super) struct JobFilter {
    /// In one of these states; may be repeated
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = PossibleValuesParser::new(states()))]
    state: Vec<String>,

    /// Of the collection of this mnemonic; (none) for jobs that name none
    #[arg(long, value_name = "MNEMONIC")]
    collection: Option<String>,

    /// Of this batch: its id, or the number in it
    #[arg(long, value_name = "BID")]
    batch: Option<String>,

    /// In its state for at least so long, as 1h30m. A list and --dry-run assume that the clocks of this host and of
    /// ZooKeeper agree, unless znodes show otherwise
    #[arg(long, value_name = "DURATION")]
    min_age: Option<String>,

    /// Resumed at least so often
    #[arg(long, value_name = "NUMBER")]
    min_retries: Option<u32>,

    /// Locked, or with --locked=false not locked
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    locked: Option<bool>,

    /// With this fault
    #[arg(long, value_name = "FAULT", value_parser = PossibleValuesParser::new(Fault::ALL.map(Fault::label)), hide_possible_values = true)]
    fault: Option<String>,

    /// Of this group of failures, as `queuekeeper failures` names it
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// With this text in job id, file name, title, ARK, local ids, submitter or message
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// In this order [default: entered, the longest in their state first]
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(JobSort::ALL.map(JobSort::label)))]
    sort: Option<String>,

    /// In this direction [default: asc]
    #[arg(long, value_name = "DIRECTION", value_parser = PossibleValuesParser::new(Direction::ALL.map(Direction::label)))]
    direction: Option<String>,
}

/// The labels of all states of jobs, and the one for those that nobody knows.
fn states() -> Vec<&'static str> {
    JobState::ALL.iter().copied().map(Some).chain([None]).map(state_label).collect()
}

impl JobFilter {
    /// The same as parameters of the API.
    pub(super) fn asked(&self) -> Pairs {
        Parameters::default()
            .with_each("state", &self.state)
            .with("collection", self.collection.as_ref())
            .with("batch", self.batch.as_ref())
            .with("min_age", self.min_age.as_ref())
            .with("min_retries", self.min_retries)
            .with("locked", self.locked)
            .with("fault", self.fault.as_ref())
            .with("group", self.group.as_ref())
            .with("text", self.text.as_ref())
            .with("sort", self.sort.as_ref())
            .with("direction", self.direction.as_ref())
            .pairs()
    }
}

impl JobsArgs {
    /// Lists them, or does something to each.
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
            let answers = link.walk(self.filter.fault.is_some()).await?;
            let now = Timestamp::now();
            Ok(self.paging.take(self.filter.asked(), |asked| answers.jobs(asked, now))?)
        });
        let list = list.await?;
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::report(&list, "job", "jobs");
        }
        Ok(())
    }

    /// Does something to each job that matches, whatever arrives meanwhile.
    async fn act(&self, kind: ActionKind) -> anyhow::Result<()> {
        let bulk = self.parameters.of(kind)?;
        let asked = self.filter.asked();
        if self.paging.is_some() {
            return Err(UsageError("--limit and --cursor: it is done to all that match".to_owned()).into());
        }
        if asked.is_empty() && !self.paging.is_all() {
            return Err(UsageError("say which jobs, or --all for every job there is".to_owned()).into());
        }
        change_jobs(&self.client, &self.act, bulk, asked).await
    }
}

/// Does something to each job that a query finds.
pub(super) async fn change_jobs(
    client: &ClientArgs,
    act: &ActArgs,
    bulk: BulkAction,
    asked: Pairs,
) -> anyhow::Result<()> {
    act.check()?;
    client
        .ask(async |link| {
            let asks = |filters: &[&str]| asked.iter().any(|(name, _)| filters.contains(&name.as_str()));
            if asks(&["fault", "min_age"]) && !act.is_dry_run() {
                link.measure_or_refuse(", or choose the jobs without --fault and --min-age").await?;
            }
            let store = link.store(asks(&["fault"])).await?;
            change_found(link, store, act, client.output, bulk, &asked).await
        })
        .await
}

/// The same over an image.
async fn change_found(
    link: &Link,
    store: Store,
    act: &ActArgs,
    output: OutputArgs,
    bulk: BulkAction,
    asked: &Pairs,
) -> anyhow::Result<()> {
    let answers = link.answers(store.clone());
    let now = Timestamp::now();
    let items = answers.matching(asked, now).map_err(CommandError::from)?;
    let first = [asked.clone(), vec![("limit".to_owned(), SAMPLE.to_string())]].concat();
    let sample = answers.jobs(&first, now).map_err(CommandError::from)?;
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

/// Its state; the text of its status where that is none.
fn state(job: &JobItem) -> String {
    job.odd_status.as_ref().map_or_else(|| job.state.to_owned(), |odd| format!("{} ({odd})", job.state))
}

/// What somebody wants to know first: why it failed, or what it is.
fn about(job: &JobItem) -> String {
    if job.group.is_some() { job.message.clone() } else { job.filename.clone() }
}
