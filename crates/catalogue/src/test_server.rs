//! The PostgreSQL server of the tests beside the code.

use std::sync::LazyLock;

use queuekeeper_testkit::postgres::Postgres;

/// One server for all tests of the binary; it ends with the process.
pub(crate) static SERVER: LazyLock<Postgres> = LazyLock::new(|| {
    let server = Postgres::start();
    // No test kills it: what would be left is in the cache of the kernel.
    server.sql("postgres", "ALTER SYSTEM SET fsync = off");
    server.sql("postgres", "SELECT pg_reload_conf()");
    server
});
