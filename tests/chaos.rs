//! Everything that may happen to a server, a connection, a clock and to queuekeeper itself, at random and again and
//! again: afterwards the mirror equals the tree, has counted what happened and nothing else, and holds no more than
//! before.
//!
//! The long form, by hand: `QUEUEKEEPER_CHAOS_MINUTES=60 cargo test --test chaos -- --nocapture`, with a real
//! Prometheus that must raise no alert; with `QUEUEKEEPER_CHAOS_SEED=N` the order of another run comes again.

#[path = "support"]
mod support {
    pub(crate) mod prometheus;
}

#[path = "mirror"]
#[expect(dead_code, reason = "the mirror's own tests use all of it")]
mod mirror {
    pub(crate) mod facts;
    pub(crate) mod grammar;
    pub(crate) mod harness;
    pub(crate) mod oracle;
    pub(crate) mod values;
}

#[path = "chaos"]
mod chaos {
    mod clock;
    mod cluster;
    mod daemons;
    mod episode;
    mod program;
    mod samples;
    mod sentry;
    mod suite;
    mod world;
}
