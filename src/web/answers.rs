//! What the API answers, for the command line: the same questions over the same image, without a server. So the two
//! cannot differ.

use jiff::Timestamp;
use prometheus_client::registry::Registry;

use super::State;
use super::actions::Versions;
use super::api::{self, AccessFilter, BatchFilter, FailurePage, FaultFilter, LockFilter};
use super::http::params;
use super::http::problem::Problem;
use super::http::query;
use crate::alerts::{Foreign, RulesStatus};
use crate::config::Config;
use crate::metrics::storage::Storage;
use crate::mirror::Store;
use crate::views::access::AccessList;
use crate::views::batches::{BatchList, BatchStanding};
use crate::views::failures::FailureList;
use crate::views::faults::FaultList;
use crate::views::job::JobDetail;
use crate::views::jobs::JobList;
use crate::views::locks::LockList;
use crate::views::overview::{Overview, Recent};

/// Parameters, by the names that they have in a query string of the API.
pub(crate) type Pairs = query::Pairs;

/// Answers questions about an image.
#[derive(Debug)]
pub(crate) struct Answers {
    state: State,
}

impl Answers {
    /// Answers over `store`; of `config` they tell where ZooKeeper is.
    pub(crate) fn new(config: Config, store: Store, storage: Option<Storage>) -> Self {
        Self { state: State::new(config, store, storage, None, Registry::default()) }
    }

    /// The whole queue, with what rules are at, what stands among our own znodes and a person should look at, and how many
    /// of that there are beyond.
    pub(crate) fn overview(
        &self,
        automation: Option<RulesStatus>,
        foreign: (Vec<Foreign>, usize),
        now: Timestamp,
    ) -> Result<Overview, Problem> {
        let (source, view) = (self.state.source(), self.state.view(now));
        let recent = Recent { automation, foreign, ..source.recent(now) };
        let summary = view.summary.as_ref().ok_or_else(Problem::no_image)?;
        Ok(source.overview(summary, &recent, now))
    }

    /// Which jobs.
    pub(crate) fn jobs(&self, asked: &Pairs, now: Timestamp) -> Result<JobList, Problem> {
        self.state.jobs(&query::parse(asked)?, now)
    }

    /// All jobs that a query asks for, and the version of each one's status.
    pub(crate) fn matching(&self, asked: &Pairs, now: Timestamp) -> Result<Versions, Problem> {
        self.state.matching(asked, now).map(|(_, items)| items)
    }

    /// One job.
    pub(crate) async fn job(&self, id: &str, now: Timestamp) -> Result<JobDetail, Problem> {
        api::find_job(&self.state, id, now).await
    }

    /// Failed jobs in groups.
    pub(crate) fn failures(&self, asked: &Pairs) -> Result<FailureList, Problem> {
        params::of_pairs::<FailurePage>(asked)?.list(&self.state)
    }

    /// Which batches.
    pub(crate) fn batches(&self, asked: &Pairs) -> Result<BatchList, Problem> {
        params::of_pairs::<BatchFilter>(asked)?.list(&self.state)
    }

    /// One batch, by its id or UUID.
    pub(crate) fn batch(&self, name: &str, now: Timestamp) -> Result<BatchStanding, Problem> {
        api::detail(&self.state, name, now)
    }

    /// Which access requests.
    pub(crate) fn access(&self, asked: &Pairs, now: Timestamp) -> Result<AccessList, Problem> {
        params::of_pairs::<AccessFilter>(asked)?.list(&self.state, now)
    }

    /// Which locks.
    pub(crate) fn locks(&self, asked: &Pairs, now: Timestamp) -> Result<LockList, Problem> {
        params::of_pairs::<LockFilter>(asked)?.list(&self.state, now)
    }

    /// What is broken.
    pub(crate) fn faults(&self, asked: &Pairs, now: Timestamp) -> Result<FaultList, Problem> {
        params::of_pairs::<FaultFilter>(asked)?.list(&self.state, now)
    }
}
