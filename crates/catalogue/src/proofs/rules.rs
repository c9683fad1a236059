//! How old proofs may become, as the producer of checks has it: others who look at proofs go by the same.

use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::database::value::{millis, values};
use crate::error::Error;
use crate::loops::Lead;

/// By which rules a producer requests checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRules {
    /// How old the last proof of a copy may become.
    pub max_age: Duration,
    /// The lines of the list of what is checked; none where that is everything.
    pub include: String,
    /// The lines of the list of what of that is not checked.
    pub exclude: String,
}

impl Catalogue {
    /// Keeps the rules of a producer, as long as this leader leads.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn keep_check_rules(&self, lead: &Lead, rules: &CheckRules) -> Result<(), Error> {
        let CheckRules { max_age, include, exclude } = rules;
        let sql = "UPDATE loops SET max_age = $3, include = $4, exclude = $5 WHERE producer = $1 AND epoch = $2
            AND (max_age IS NULL OR max_age <> $3 OR include <> $4 OR exclude <> $5)";
        let mut session = self.database.begin().await?;
        let values = values![&lead.producer, lead.epoch, millis(*max_age), include, exclude];
        let outcome = session.run(sql, values).await;
        session.end(outcome).await.map(|_rows| ())
    }

    /// The rules of a producer; `None` before one has led it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn check_rules(&self, producer: &str) -> Result<Option<CheckRules>, Error> {
        let sql = "SELECT max_age, include, exclude FROM loops WHERE producer = $1 AND max_age IS NOT NULL";
        let rules = self.list(sql, values![producer], |row| {
            let max_age = Duration::from_millis(row.count(0)?);
            Ok(CheckRules { max_age, include: row.get(1)?, exclude: row.get(2)? })
        });
        Ok(rules.await?.pop())
    }
}
