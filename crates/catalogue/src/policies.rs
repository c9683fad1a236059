//! The policies of accounts as they are in force, with all that were before.

use jiff::Timestamp;

use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;
use crate::loops;

/// A policy that is, or was, in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRecord {
    /// Its number.
    pub id: u64,
    /// The account.
    pub account: String,
    /// Since when.
    pub time: Timestamp,
    /// Who brought it into force.
    pub user: String,
    /// Why.
    pub reason: String,
    /// Its file's text.
    pub content: String,
}

/// Policies of an account, the newest first.
pub(crate) const POLICIES: &str = "SELECT id, account, time, user_name, reason, content FROM policies
    WHERE account = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

impl Catalogue {
    /// The policies of an account with numbers below `before`, the newest first, which is in force; at most `limit`,
    /// and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn policies(&self, account: &str, before: Option<u64>, limit: u32) -> Result<Vec<PolicyRecord>, Error> {
        self.list(POLICIES, values![account, before.unwrap_or(u64::MAX), page(limit)], record).await
    }

    /// Brings a policy into force, where the last one of the account is still the one with this number; the answer is
    /// whether it is. The next loop through all copies begins soon then.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn record_policy(
        &self,
        account: &str,
        last: Option<u64>,
        user: &str,
        reason: &str,
        content: &str,
    ) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let outcome = async {
            // Of two that do it at once, the second one sees what the first one did.
            session
                .run(
                    "INSERT INTO accounts (name, configuration, last_seen) VALUES ($1, '{}', {now})
                        ON CONFLICT (name) DO UPDATE SET last_seen = excluded.last_seen",
                    values![account],
                )
                .await?;
            let row = session.row("SELECT MAX(id) FROM policies WHERE account = $1", values![account]).await?;
            let now = row.map(|row| session.decode(row.parse(0, |id: i64| u64::try_from(id)))).transpose()?.flatten();
            if now != last {
                return Ok(false);
            }
            let sql = "INSERT INTO policies (account, time, user_name, reason, content) VALUES ($1, {now}, $2, $3, $4)";
            session.run(sql, values![account, user, reason, content]).await?;
            loops::follow_policy(&mut session).await.map(|()| true)
        };
        let outcome = outcome.await;
        session.end(outcome).await
    }
}

fn record(row: &DatabaseRow) -> Result<PolicyRecord, sqlx::Error> {
    Ok(PolicyRecord {
        id: row.count(0)?,
        account: row.get(1)?,
        time: row.time(2)?,
        user: row.get(3)?,
        reason: row.get(4)?,
        content: row.get(5)?,
    })
}
