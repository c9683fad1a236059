//! What fails, as one line that names the database and says what to do.

use std::path::Path;
use std::sync::Arc;

use sqlx::error::DatabaseError;

/// A failure of one function of the catalogue. Where it names a transaction, nothing of that was done, unless
/// [`Self::is_temporary`] and the connection broke at its end; every function may then be repeated.
#[derive(Debug, thiserror::Error)]
#[error("catalogue {place}: {kind}")]
pub struct Error {
    /// Which database: the path of its file, or `postgres://USER@HOST:PORT/DATABASE`; never with a password.
    pub place: Arc<str>,
    /// Why.
    #[source]
    pub kind: ErrorKind,
}

/// Why a function of the catalogue failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL names no database.
    #[error("not a database: {0}; expected sqlite:PATH or postgres://USER@HOST/DATABASE")]
    Url(String),
    /// A SQLite file on a file system whose locks and shared memory other hosts do not see.
    #[error(
        "the file is on a network file system ({0}), which SQLite cannot use safely; use a local disk or PostgreSQL"
    )]
    NetworkFileSystem(&'static str),
    /// There is no file, or an empty one, or a database without tables, and none is to be made.
    #[error("there is none; `catalogue migrate` creates it")]
    Missing,
    /// The file or its directory cannot be opened.
    #[error("cannot be opened: {0}; check that its directory exists and belongs to the user of this program")]
    Open(String),
    /// Another process is writing and does not come to an end.
    #[error("locked by another process for too long; try again, or stop the process that has it open")]
    Locked,
    /// It cannot be written.
    #[error("read-only; make the file and its directory (or the database) writable for the user of this program")]
    ReadOnly,
    /// The file is damaged, or no SQLite database.
    #[error(
        "damaged, or not a database: {0}; restore it from a backup or, if there is none, move it away (a file with its -wal and -shm) and run `catalogue rebuild`"
    )]
    Corrupt(String),
    /// The database belongs to something else.
    #[error("the database of another program ({0}); name an empty database or a file that does not exist")]
    Foreign(String),
    /// A newer program has changed the schema.
    #[error(
        "was written by a newer queuekeeper (schema {found}, this program supports up to {known}); upgrade this program"
    )]
    Newer {
        /// The version of the schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The schema is of an earlier program, and is not to be changed.
    #[error(
        "has schema {found}, but this program checks schema {known}: check it with the queuekeeper that wrote it, or migrate it with `catalogue migrate`"
    )]
    Older {
        /// The version of the schema.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The server has no such database.
    #[error("{text}; name another in its URL, or create it on the server: {create}")]
    NoDatabase {
        /// The server's words.
        text: String,
        /// The statement that creates it.
        create: String,
    },
    /// There is no connection to the server, or no answer.
    #[error("cannot be reached: {0}; check that the server is running, and host and port")]
    Away(String),
    /// No encrypted connection comes about.
    #[error(
        "no TLS connection: {0}; check sslmode and sslrootcert in its URL, and the certificate and the setting ssl of \
         the server"
    )]
    Tls(String),
    /// The disk is full.
    #[error("the disk is full; free space; nothing was changed")]
    Full,
    /// The server refuses user or password.
    #[error("access denied: {0}; check the user in its URL, and the password in the file that password_file names")]
    Denied(String),
    /// The user of the URL lacks a privilege.
    #[error("{text}; the user in its URL needs the privilege: {grant}")]
    Privilege {
        /// The server's words.
        text: String,
        /// What to grant.
        grant: &'static str,
    },
    /// A backup cannot be written.
    #[error("the backup {path} cannot be written: {why}")]
    Backup {
        /// The file of the backup.
        path: String,
        /// Why, and what to do.
        why: String,
    },
    /// A transaction was ended in favour of another one.
    #[error("rolled back in favour of another transaction ({0}); try again")]
    Conflict(String),
    /// What was to be recorded contradicts what is recorded.
    #[error("{0}")]
    Refused(String),
    /// The function is for the other kind of database.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Anything else that the database reports.
    #[error("{0}")]
    Database(String),
}

impl Error {
    pub(crate) fn new(place: &Arc<str>, kind: ErrorKind) -> Self {
        Self { place: Arc::clone(place), kind }
    }

    pub(crate) fn from_sqlx(place: &Arc<str>, error: &sqlx::Error) -> Self {
        let kind = match error {
            // The only writing connection of a file: others wait behind one that waits for another process.
            sqlx::Error::PoolTimedOut if !place.starts_with("postgres:") => ErrorKind::Locked,
            // On some file systems the shared memory of the log is where a full disk is met first.
            error if io_code(error).is_some() && is_full(Path::new(&**place)) => ErrorKind::Full,
            error => match ErrorKind::from_sqlx(error) {
                ErrorKind::NoDatabase { text, .. } => ErrorKind::NoDatabase { text, create: create_database(place) },
                kind => kind,
            },
        };
        Self::new(place, kind)
    }

    /// Whether the same call may succeed later, with the same arguments.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.kind,
            // A connection that breaks while it is set up is one of TLS.
            ErrorKind::Away(_) | ErrorKind::Tls(_) | ErrorKind::Locked | ErrorKind::Full | ErrorKind::Conflict(_)
        )
    }
}

impl ErrorKind {
    fn from_sqlx(error: &sqlx::Error) -> Self {
        use sqlx::Error as E;
        match error {
            E::Database(error) if error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() => {
                Self::from_sqlite(&**error)
            }
            E::Database(error) => Self::from_postgres(&**error),
            E::Configuration(error) => Self::Url(one_line(&error.to_string())),
            E::InvalidArgument(text) => Self::Refused(text.clone()),
            E::Io(error) => Self::Away(one_line(&error.to_string())),
            E::Tls(error) => Self::Tls(one_line(&error.to_string())),
            E::PoolTimedOut => Self::Away("no connection within the time limit".to_owned()),
            E::PoolClosed | E::WorkerCrashed => Self::Away("the connections are closed".to_owned()),
            E::Protocol(text) => Self::Away(one_line(text)),
            E::ColumnDecode { .. } | E::Decode(_) | E::ColumnIndexOutOfBounds { .. } => {
                Self::Corrupt(one_line(&error.to_string()))
            }
            _ => Self::Database(one_line(&error.to_string())),
        }
    }

    /// By the primary result code: <https://sqlite.org/rescode.html>.
    fn from_sqlite(error: &dyn DatabaseError) -> Self {
        let code = error.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
        let text = one_line(error.message());
        match code & 0xff {
            5 | 6 => Self::Locked,
            8 => Self::ReadOnly,
            13 => Self::Full,
            11 | 26 => Self::Corrupt(text),
            14 => Self::Open(text),
            10 => Self::Database(format!("{text}; check the disk, its free space, and the limit on file sizes")),
            _ => Self::Database(text),
        }
    }

    /// By the SQLSTATE: appendix A of PostgreSQL's documentation.
    fn from_postgres(error: &dyn DatabaseError) -> Self {
        let code = error.code().unwrap_or_default();
        let text = one_line(error.message());
        match &*code {
            "28000" | "28P01" => Self::Denied(text),
            "42501" => Self::Privilege { grant: missing_grant(&text), text },
            "3D000" => Self::NoDatabase { text, create: String::new() },
            "53100" => Self::Full,
            "25006" => Self::ReadOnly,
            "55P03" => Self::Locked,
            // The last is a transaction that was silent for too long.
            "40001" | "40P01" | "25P03" => Self::Conflict(text),
            "XX001" | "XX002" => Self::Corrupt(text),
            // Shutting down, starting up, out of connections or memory.
            "57P01" | "57P02" | "57P03" | "57P05" | "53200" | "53300" => Self::Away(text),
            _ if code.starts_with("08") => Self::Away(text),
            _ => Self::Database(text),
        }
    }
}

/// The extended result code of SQLite, where it reports an error of input or output.
pub(crate) fn io_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    error.code()?.parse().ok().filter(|code| code & 0xff == 10)
}

/// Whether the disk of a file has no space for the next pages of a log and its index.
pub(crate) fn is_full(path: &Path) -> bool {
    const LEAST_BYTES: u64 = 64 * 1024;
    rustix::fs::statvfs(path).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < LEAST_BYTES)
}

/// What makes the database `postgres://USER@HOST:PORT/DATABASE`.
fn create_database(place: &str) -> String {
    let rest = place.split_once("://").map_or(place, |(_, rest)| rest);
    let (user, rest) = rest.split_once('@').unwrap_or(("", rest));
    let database = rest.rsplit_once('/').map_or(rest, |(_, database)| database);
    format!("CREATE DATABASE {} OWNER {}", identifier(database), identifier(user))
}

/// A name as SQL has it.
fn identifier(name: &str) -> String {
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
    if name.chars().all(is_plain) && name.starts_with(|char: char| !char.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// What to grant, by the kind of what a server refuses access to.
fn missing_grant(text: &str) -> &'static str {
    if text.contains("for schema") {
        "GRANT USAGE, CREATE ON SCHEMA public TO it, or ALTER SCHEMA public OWNER TO it"
    } else if text.contains("for database") {
        "GRANT CONNECT, CREATE ON DATABASE to it"
    } else if text.contains("must be owner") {
        "ALTER TABLE .. OWNER TO it, since it changes the schema"
    } else {
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO it (SELECT for a server that only shows), \
         or make it the owner of all tables"
    }
}

/// The text of a driver or a server on one line, and of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    /// Longer texts quote data.
    const MOST_CHARS: usize = 300;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().filter(|char| !char.is_control()).take(MOST_CHARS).collect()
}
