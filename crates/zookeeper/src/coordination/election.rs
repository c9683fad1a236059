//! Leader election: the candidate whose ephemeral znode was created first acts.

use std::time::Duration;

use tokio::sync::{Notify, watch};
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::nodes::{ELECTION, PAUSED, candidate_number};
use crate::Write;

/// The pause before the next attempt to stand for election.
const PAUSE: Duration = Duration::from_secs(1);

/// The right to act, as long as its znode is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    candidate: String,
}

impl Leadership {
    /// What every transaction of the leader contains: it is refused when the leader has changed, or when automatic
    /// actions are paused.
    #[must_use]
    pub fn writes(&self) -> [Write; 2] {
        [Write::Present(self.candidate.clone()), Write::Absent(PAUSED.to_owned())]
    }

    /// What a transaction contains that only records state, which continues while automatic actions are paused.
    #[must_use]
    pub fn check(&self) -> Write {
        Write::Present(self.candidate.clone())
    }

    /// Whether a path is that of the znode by which it leads.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        self.candidate == path
    }
}

/// Where the outcome of an election is published.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElectionState<'a> {
    pub(super) lead: &'a watch::Sender<Option<Leadership>>,
    /// Why this process cannot stand for election, as long as it cannot.
    pub(super) problem: &'a watch::Sender<Option<String>>,
}

/// Stands for election, and leads whenever it is the first, until it is dropped. `resign` makes it stand again.
pub(super) async fn stand(client: &Client, acls: Acls<'_>, state: ElectionState<'_>, resign: &Notify) {
    // One for the whole session: a candidate that was made though the answer was lost is found again by it.
    let prefix = format!("_c_{}-candidate-", Uuid::now_v7());
    loop {
        match elected(client, acls, &prefix, state.problem).await {
            Ok(candidate) => {
                tracing::info!(candidate, "acquired leadership for automatic actions");
                state.lead.send_replace(Some(Leadership { candidate: candidate.clone() }));
                // Until the session is over, when this is dropped, or it is seen that the znode is gone.
                resign.notified().await;
                state.lead.send_replace(None);
                tracing::warn!("lost leadership for automatic actions; standing for election again");
                // If it still exists, it would block the next candidate.
                let _ = client.delete(&candidate, None).await;
            }
            Err(error) => {
                let problem = format!("{ELECTION}: {error}");
                if state.problem.borrow().as_ref() != Some(&problem) {
                    tracing::warn!("cannot stand for election: {problem}");
                }
                state.problem.send_replace(Some(problem));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Becomes a candidate and waits until no other is before it. Returns its znode.
///
/// The client library has a lock for this. It takes every child of the folder for a candidate whose name has the right
/// ending, and so waits forever behind one that a user created by hand: then there is no leader, and no reason is
/// shown.
async fn elected(
    client: &Client,
    acls: Acls<'_>,
    prefix: &str,
    problem: &watch::Sender<Option<String>>,
) -> Result<String, Error> {
    let at = |name: &str| format!("{ELECTION}/{name}");
    loop {
        let names = match client.list_children(ELECTION).await {
            Err(Error::NoNode) => Vec::new(),
            names => names?,
        };
        let mut candidates: Vec<_> =
            names.into_iter().filter_map(|name| Some((candidate_number(&name)?, name))).collect();
        candidates.sort_unstable();
        let Some(own) = candidates.iter().position(|(_, name)| name.starts_with(prefix)) else {
            let options = CreateMode::EphemeralSequential.with_acls(acls);
            match client.create(&at(prefix), b"", &options).await {
                Err(Error::NoNode) => client.mkdir(ELECTION, &CreateMode::Persistent.with_acls(acls)).await?,
                made => drop(made?),
            }
            continue;
        };
        problem.send_if_modified(|problem| problem.take().is_some());
        let mut ahead = None;
        for (_, name) in candidates[..own].iter().rev() {
            let (stat, changed) = client.check_and_watch_stat(&at(name)).await?;
            // A candidate ends with its session. A persistent one, or one of our own session, is not another leader.
            let owner = stat.map_or(0, |stat| stat.ephemeral_owner);
            if owner != 0 && owner != client.session_id().0 {
                ahead = Some(changed);
                break;
            }
        }
        match ahead {
            Some(changed) => drop(changed.changed().await),
            None => return Ok(at(&candidates[own].1)),
        }
    }
}
