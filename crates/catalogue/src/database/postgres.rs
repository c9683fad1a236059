//! Connections to a PostgreSQL server.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, Pool, Postgres};
use tokio::time::timeout;

use super::without_maintenance;
use crate::error::{Error, ErrorKind};

/// How long a connection may take, and a wait for one that is free.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Connections of one process. A server has 100 by default, for all of them.
const MOST_CONNECTIONS: u32 = 24;

/// A connection that was idle for longer is tried before it is used.
const STALE: Duration = Duration::from_secs(5);

/// How long the server keeps a transaction whose process is silent: stopped, or on a host that is gone. Shorter than
/// the limit of a statement, so that those who wait for its rows get them.
const SILENT_TRANSACTION: &str = "SET idle_in_transaction_session_timeout = '40s'";

/// What may stand behind the `?` of the URL; the driver would log others with their values.
const PARAMETERS: [&str; 8] =
    ["sslmode", "sslrootcert", "sslcert", "sslkey", "host", "port", "user", "application_name"];

/// What the URL says.
///
/// # Errors
/// With a sentence, when it is invalid.
pub(super) fn options(url: &str) -> Result<PgConnectOptions, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let name = parameter.split_once('=').map_or(parameter, |(name, _)| name);
        if !PARAMETERS.contains(&name) {
            return Err(format!("the URL has an unknown parameter; expected one of {}", PARAMETERS.join(", ")));
        }
    }
    // The driver's message may quote the URL.
    let options = PgConnectOptions::from_str(url).map_err(|_quoting| "the URL is invalid".to_owned())?;
    Ok(options.disable_statement_logging())
}

/// Connects once, and returns the pool and what errors call the database.
pub(super) async fn connect(url: &str) -> Result<(Pool<Postgres>, Arc<str>), Error> {
    let options = options(url).map_err(|text| Error::new(&"postgres".into(), ErrorKind::Url(text)))?;
    let options = match options.get_application_name() {
        Some(_named) => options,
        None => options.application_name("queuekeeper"),
    };
    let place = place(&options);
    let failed = |error: sqlx::Error| Error::from_sqlx(&place, &error);
    // By itself: the pool would try again until its limit, and hide the reason.
    let silent = |_elapsed| Error::new(&place, ErrorKind::Away(format!("no answer within {CONNECT_LIMIT:?}")));
    let first = timeout(CONNECT_LIMIT, options.connect()).await.map_err(silent)?.map_err(failed)?;
    first.close().await.map_err(failed)?;

    let pool = without_maintenance(PgPoolOptions::new())
        .max_connections(MOST_CONNECTIONS)
        .acquire_timeout(CONNECT_LIMIT)
        .test_before_acquire(false)
        .after_connect(|connection, _known| {
            Box::pin(async move { connection.execute(SILENT_TRANSACTION).await.map(drop) })
        })
        .before_acquire(|connection, known| {
            Box::pin(async move {
                // A server that was away leaves connections that are dead: one is replaced here, not in a transaction.
                if known.idle_for > STALE {
                    return Ok(timeout(STALE, connection.ping()).await.is_ok_and(|answer| answer.is_ok()));
                }
                Ok(true)
            })
        });
    Ok((pool.connect_lazy_with(options), place))
}

fn place(options: &PgConnectOptions) -> Arc<str> {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    format!("postgres://{user}@{host}:{}/{database}", options.get_port()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use queuekeeper_testkit::postgres::Postgres;

    use crate::catalogue::Catalogue;
    use crate::database::value::values;
    use crate::error::ErrorKind;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_transaction_of_a_silent_process_ends_and_those_who_wait_for_its_rows_get_them() {
        let server = Postgres::start();
        let catalogue = Catalogue::open(&server.create("silent")).await.unwrap();
        let mut silent = catalogue.database.begin().await.unwrap();
        let limit = silent.rows("SHOW idle_in_transaction_session_timeout", values![]).await.unwrap();
        assert_eq!(limit[0].get::<String>(0).unwrap(), "40s");
        let take = "UPDATE audit_chain SET hash = hash";
        silent.run(take, values![]).await.unwrap();
        // The same limit, and shorter: the test does not wait for 40 s. From here on the process is silent.
        silent.script("SET idle_in_transaction_session_timeout = '300ms'").await.unwrap();
        let waiting = async {
            let mut other = catalogue.database.begin().await.unwrap();
            let outcome = other.run(take, values![]).await;
            other.end(outcome).await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
        let outcome = silent.run(take, values![]).await;
        let error = silent.end(outcome).await.unwrap_err();
        assert!(error.is_temporary(), "{error}");
        assert!(matches!(error.kind, ErrorKind::Conflict(_) | ErrorKind::Away(_)), "{error}");
    }
}
