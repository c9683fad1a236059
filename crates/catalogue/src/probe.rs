//! What there is of a catalogue, with nothing changed: its schema stays as it is, and none is made.

use crate::catalogue::Catalogue;
use crate::database::dialect::Dialect;
use crate::database::value::values;
use crate::database::{Database, Session};
use crate::error::{Error, ErrorKind, one_line};
use crate::schema;

/// A catalogue that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// What errors call the database: the path of its file, or `postgres://USER@HOST:PORT/DATABASE`.
    pub place: String,
    /// The version of its schema; 0 where there is none yet, and one can be made.
    pub schema: i64,
    /// The version to which [`Catalogue::open`] would bring it.
    pub newest: i64,
}

/// What every change of content does to the counters, without an effect.
const WRITES: [&str; 3] = [
    "INSERT INTO counter_deltas (name, scope, delta) VALUES ('probe', 'probe', 0)",
    "UPDATE counters SET value = value WHERE name = 'probe'",
    "DELETE FROM counter_deltas WHERE name = 'probe'",
];

impl Catalogue {
    /// Opens a catalogue without bringing its schema up to date, for [`Self::backup`] and [`Self::check`]; other
    /// functions may fail where the schema is older. One that cannot be written is only read.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`] where there is none; others as [`Self::open`].
    pub async fn open_as_is(url: &str) -> Result<Self, Error> {
        let database = Database::connect_as_is(url).await?;
        match schema::look(&database).await? {
            Some((id, schema)) => Ok(Self::new(database, id, schema)),
            None => Err(database.error(ErrorKind::Missing)),
        }
    }

    /// Whether a catalogue can be used, or made where there is none: connects, reads every page of a file, and writes
    /// what it takes back.
    ///
    /// # Errors
    /// As [`Self::open`], and when it can only be read.
    pub async fn probe(url: &str) -> Result<Probed, Error> {
        let database = match Database::connect_as_is(url).await {
            Err(Error { kind: ErrorKind::Missing, place }) => {
                Database::try_to_make(url)?;
                return Ok(Probed { place: place.to_string(), schema: 0, newest: schema::NEWEST });
            }
            connected => connected?,
        };
        let outcome = probe_in(&database).await;
        database.close().await;
        let schema = outcome?;
        Ok(Probed { place: database.place().to_string(), schema, newest: schema::NEWEST })
    }

    /// Whether the URL of a PostgreSQL server is one: nothing is opened.
    ///
    /// # Errors
    /// With a sentence that does not repeat the URL.
    pub fn check_server_url(url: &str) -> Result<(), String> {
        Database::check_server_url(url)
    }
}

async fn probe_in(database: &Database) -> Result<i64, Error> {
    let found = schema::look(database).await?.map(|(_, version)| version);
    look_for_damage(database).await?;
    let mut session = database.begin().await?.without_limit();
    let outcome = write(&mut session, found.is_none()).await;
    session.roll_back().await;
    outcome?;
    Ok(found.unwrap_or(0))
}

async fn write(session: &mut Session, is_empty: bool) -> Result<(), Error> {
    if is_empty {
        return schema::try_to_begin(session).await;
    }
    for sql in WRITES {
        session.run(sql, values![]).await?;
    }
    Ok(())
}

/// What SQLite finds in its own pages, without comparing indexes with their tables.
async fn look_for_damage(database: &Database) -> Result<(), Error> {
    let mut session = database.read().await?;
    if session.dialect() == Dialect::Postgres {
        return Ok(());
    }
    let row = session.row("SELECT quick_check FROM pragma_quick_check LIMIT 1", values![]).await?;
    let text: Option<String> = row.map(|row| session.decode(row.get(0))).transpose()?;
    match text.as_deref() {
        Some("ok") | None => Ok(()),
        Some(damage) => Err(session.error(ErrorKind::Corrupt(one_line(damage)))),
    }
}
