//! Processes of the mill and the database server are killed at random while content is written, changed and deleted: at
//! the end every item is where its policy wants it, nothing else is there but what is foreign or aside, and nothing was
//! done twice. Then copies rot at random, and each is found and repaired once.
//!
//! The long form, by hand: `QUEUEKEEPER_CHAOS_MINUTES=30 cargo test --test chaos -- --nocapture`; with
//! `QUEUEKEEPER_CHAOS_SEED=N` the order of another run comes again.

#[path = "chaos"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod chaos {
    mod depositor;
    mod operator;
    mod oracle;
    mod processes;
    mod rot;
    mod run;
    mod world;
}
