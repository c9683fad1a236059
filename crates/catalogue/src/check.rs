//! Whether what the catalogue says fits together.

mod chain;
mod copies;

use std::fmt;

use crate::catalogue::Catalogue;
use crate::counters::{Counter, Figures, read_figures};
use crate::database::Session;
use crate::database::dialect::Dialect;
use crate::database::value::values;
use crate::error::{Error, ErrorKind};
use crate::proofs;
use crate::schema::NEWEST;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueFinding {
    /// What, as one line.
    pub what: String,
    /// What to do about it.
    pub fix: &'static str,
}

impl fmt::Display for CatalogueFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}; {}", self.what, self.fix)
    }
}

/// A rule that SQL does not enforce: a statement whose rows break it, each described by its first column.
struct Rule {
    sql: &'static str,
    what: &'static str,
    fix: &'static str,
}

/// More findings of one kind say no more.
const MOST_FINDINGS: u32 = 20;

const REBUILD: &str = "run queuekeeper catalogue rebuild";
const RESTORE: &str = "restore a backup, and find out who changed the database";

const NOT_THE_ROWS: &str = "report this as a bug; the rows are right";

const SETTLE: &str = "make a change in that store, for example with queuekeeper store put: this compares the store and records the outcome";

/// A living process extends its lease long before the end.
const LEFT: &str = "SELECT change, user_name, store, space, key FROM intents WHERE lease_end < {now}
    ORDER BY lease_end LIMIT $1";

/// The argument `$1` of each is the limit.
const RULES: &[Rule] = &[
    Rule {
        sql: "SELECT ark FROM objects WHERE current_version <> (
                SELECT COALESCE(MAX(number), 0) FROM versions WHERE versions.object = objects.id) LIMIT $1",
        what: "the current version of an object is not its newest one:",
        fix: REBUILD,
    },
    Rule {
        sql: "SELECT ark FROM objects WHERE current_version <> (
                SELECT COUNT(*) FROM versions WHERE versions.object = objects.id) LIMIT $1",
        what: "an object lacks one of its versions:",
        fix: REBUILD,
    },
    Rule {
        sql: "SELECT {job_text} FROM versions WHERE (file_count, byte_count) <> (
                SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM files WHERE files.version = versions.id)
            LIMIT $1",
        what: "the files of a version differ from those recorded by the job",
        fix: REBUILD,
    },
    Rule {
        sql: "SELECT local_id FROM local_ids WHERE NOT EXISTS (SELECT 1 FROM objects WHERE objects.ark = local_ids.ark)
                AND NOT EXISTS (SELECT 1 FROM identifiers WHERE identifiers.ark = local_ids.ark) LIMIT $1",
        what: "a local id belongs to no object and no reserved ARK:",
        fix: REBUILD,
    },
];

/// How each counter is counted: its scope and its figure; `None` for one of what leaves no rows.
pub(crate) fn counted(counter: Counter) -> Option<&'static str> {
    Some(match counter {
        Counter::ContentItems => "SELECT store, COUNT(*) FROM copies WHERE NOT is_deleted GROUP BY store",
        Counter::ContentBytes => {
            "SELECT store, CAST(SUM(size) AS BIGINT) FROM copies WHERE NOT is_deleted GROUP BY store"
        }
        Counter::AuditEvents => "SELECT store, COUNT(*) FROM audit_log GROUP BY store",
        Counter::Objects => "SELECT collection, COUNT(*) FROM objects GROUP BY collection",
        Counter::Versions => {
            "SELECT collection, COUNT(*) FROM versions JOIN objects ON objects.id = versions.object GROUP BY collection"
        }
        Counter::Files => {
            "SELECT collection, COUNT(*) FROM files JOIN versions ON versions.id = files.version
                JOIN objects ON objects.id = versions.object GROUP BY collection"
        }
        Counter::FileBytes => {
            "SELECT collection, CAST(SUM(size) AS BIGINT) FROM files JOIN versions ON versions.id = files.version
                JOIN objects ON objects.id = versions.object GROUP BY collection"
        }
        Counter::SpaceItems => {
            "SELECT copies.store || '/' || items.space AS scope, COUNT(*)
                FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted GROUP BY scope"
        }
        Counter::SpaceBytes => {
            "SELECT copies.store || '/' || items.space AS scope, CAST(SUM(copies.size) AS BIGINT)
                FROM copies JOIN items ON items.id = copies.item WHERE NOT copies.is_deleted GROUP BY scope"
        }
        Counter::Tasks => "SELECT queue || '/' || state AS scope, COUNT(*) FROM tasks GROUP BY scope",
        Counter::WaitingTasks => "SELECT kind, COUNT(*) FROM tasks WHERE state = 'waiting' GROUP BY kind",
        Counter::HeldTasks => {
            "SELECT account || '/' || destination AS scope, COUNT(*) FROM tasks WHERE state = 'held' GROUP BY scope"
        }
        Counter::DeadTasks => "SELECT account, COUNT(*) FROM tasks WHERE state = 'dead' GROUP BY account",
        Counter::PausedTasks => {
            "SELECT CAST(pause AS TEXT) AS scope, COUNT(*) FROM tasks WHERE state = 'paused' GROUP BY scope"
        }
        Counter::BitErrors => {
            "SELECT account || '/' || store AS scope, COUNT(*) FROM bit_errors WHERE ended IS NULL GROUP BY scope"
        }
        Counter::SpaceBitErrors => {
            "SELECT store || '/' || space AS scope, COUNT(*) FROM bit_errors WHERE ended IS NULL GROUP BY scope"
        }
        Counter::BitResults | Counter::EndedTasks => return None,
    })
}

impl Catalogue {
    /// Compares counters with rows, the audit log with its hashes, and what SQL does not enforce, all as of one
    /// instant. It reads every row, and changes nothing. Nothing found means that all fits.
    ///
    /// # Errors
    /// When the database cannot be read; [`ErrorKind::Older`] when its schema is not that of this program.
    pub async fn check(&self) -> Result<Vec<CatalogueFinding>, Error> {
        if self.schema() < NEWEST {
            return Err(self.database.error(ErrorKind::Older { found: self.schema(), known: NEWEST }));
        }
        let mut session = self.database.snapshot().await?.without_limit();
        let outcome = check_in(&mut session).await;
        let findings = session.end(outcome).await?;
        self.database.is_unchanged()?;
        Ok(findings)
    }
}

async fn check_in(session: &mut Session) -> Result<Vec<CatalogueFinding>, Error> {
    let mut findings = Vec::new();
    if session.dialect() == Dialect::Sqlite {
        damage(session, &mut findings).await?;
    }
    figures(session, &mut findings).await?;
    proof_days(session, &mut findings).await?;
    for rule in RULES {
        for row in session.rows(rule.sql, values![MOST_FINDINGS]).await? {
            let name: String = session.decode(row.get(0))?;
            findings.push(CatalogueFinding { what: format!("{} {name}", rule.what), fix: rule.fix });
        }
    }
    copies::check(session, &mut findings).await?;
    left(session, &mut findings).await?;
    chain::check(session, &mut findings).await?;
    Ok(findings)
}

/// Changes that processes left when they were killed, and that nothing has settled since.
async fn left(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    for row in session.rows(LEFT, values![MOST_FINDINGS]).await? {
        let read = || Ok((row.get::<String>(0)?, row.get::<String>(1)?, copies::item(&row, 2)?));
        let (change, user, item) = session.decode(read())?;
        let what = format!("a change of a killed process is not settled: {change} of {item} by {user}");
        findings.push(CatalogueFinding { what, fix: SETTLE });
    }
    Ok(())
}

/// What SQLite finds in its own pages. (PostgreSQL has `pg_amcheck` and checksums.)
async fn damage(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    for row in
        session.rows("SELECT integrity_check FROM pragma_integrity_check LIMIT $1", values![MOST_FINDINGS]).await?
    {
        let text: String = session.decode(row.get(0))?;
        if text != "ok" {
            let what = format!("the file is damaged: {}", crate::error::one_line(&text));
            findings.push(CatalogueFinding { what, fix: "restore a backup" });
        }
    }
    let foreign_keys = "SELECT \"table\" FROM pragma_foreign_key_check LIMIT $1";
    for row in session.rows(foreign_keys, values![MOST_FINDINGS]).await? {
        let table: String = session.decode(row.get(0))?;
        let what = format!("a row of {table} refers to a missing row");
        findings.push(CatalogueFinding { what, fix: RESTORE });
    }
    Ok(())
}

async fn figures(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    let mut kept = read_figures(session).await?;
    kept.retain(|(counter, _), _| counted(*counter).is_some());
    for (counter, sql) in Counter::ALL.into_iter().filter_map(|counter| Some((counter, counted(counter)?))) {
        let mut rows = Figures::new();
        for row in session.rows(sql, values![]).await? {
            rows.insert((counter, session.decode(row.get(0))?), session.decode(row.get(1))?);
        }
        for (of, figure) in rows {
            compare(findings, &of, kept.remove(&of).unwrap_or(0), figure);
        }
    }
    for (of, figure) in kept {
        compare(findings, &of, figure, 0);
    }
    Ok(())
}

async fn proof_days(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    for ((store, space, proof, day), (kept, counted)) in proofs::deviations(session).await? {
        let what = format!(
            "the number of items in {store}/{space} with proof {proof} of day {day} since 1970 is {kept}, but there are {counted}"
        );
        findings.push(CatalogueFinding { what, fix: NOT_THE_ROWS });
    }
    Ok(())
}

fn compare(findings: &mut Vec<CatalogueFinding>, (counter, scope): &(Counter, String), kept: i64, counted: i64) {
    if kept != counted {
        let what = format!("counter {} of {scope:?} is {kept}, but there are {counted}", counter.as_str());
        findings.push(CatalogueFinding { what, fix: NOT_THE_ROWS });
    }
}
