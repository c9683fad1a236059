//! Following the audit log: each event leads to tasks, once.

use super::event::Event;
use super::list::AFTER;
use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::values;
use crate::error::Error;
use crate::tasks::{NewTask, put};

/// What following the log came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// How many events were read.
    pub events: u64,
    /// How many tasks are new by them.
    pub tasks: u64,
}

impl Catalogue {
    /// Reads the next events for a follower, at most `limit` and at most 1,000, and requests the tasks that they lead
    /// to: in one transaction with the place up to which the follower has come, so that each event leads to its tasks
    /// once, whichever process dies or follows at the same time. A follower that is new begins at the end of the log.
    ///
    /// # Errors
    /// When the database cannot be written; then the follower is where it was.
    pub async fn follow_audit(
        &self,
        follower: &str,
        limit: u32,
        tasks: impl Fn(&Event) -> Vec<NewTask> + Send + Sync,
    ) -> Result<Followed, Error> {
        let mut session = self.database.begin().await?;
        let outcome = follow(&mut session, follower, limit, tasks).await;
        let followed = session.end(outcome).await?;
        if followed.tasks > 0 {
            self.notify().await;
        }
        Ok(followed)
    }
}

impl Catalogue {
    /// How many events a follower has not read; none before it has begun.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn unfollowed(&self, follower: &str) -> Result<u64, Error> {
        let sql = "SELECT audit_chain.seq - COALESCE((SELECT seq FROM followers WHERE name = $1), 0) FROM audit_chain";
        Ok(self.list(sql, values![follower], |row| row.count(0)).await?.pop().unwrap_or(0))
    }
}

async fn follow(
    session: &mut Session,
    follower: &str,
    limit: u32,
    tasks: impl Fn(&Event) -> Vec<NewTask> + Send + Sync,
) -> Result<Followed, Error> {
    let known = "SELECT seq FROM followers WHERE name = $1 {lock}";
    let new =
        "INSERT INTO followers (name, seq) SELECT $1, seq FROM audit_chain WHERE only_row = 1 ON CONFLICT DO NOTHING";
    let mut row = session.row(known, values![follower]).await?;
    if row.is_none() {
        session.run(new, values![follower]).await?;
        row = session.row(known, values![follower]).await?;
    }
    let seq = row.map(|row| session.decode(row.count(0))).transpose()?.unwrap_or(0);
    let (mut last, mut wanted, mut events) = (seq, Vec::new(), 0);
    for row in session.rows(AFTER, values![seq, page(limit)]).await? {
        let event = session.decode(Event::read(&row))?;
        last = event.seq;
        events += 1;
        wanted.extend(tasks(&event));
    }
    if events == 0 {
        return Ok(Followed { events, tasks: 0 });
    }
    let new = put(session, wanted).await?;
    session.run("UPDATE followers SET seq = $2 WHERE name = $1", values![follower, last]).await?;
    Ok(Followed { events, tasks: new })
}
