//! Changes of a directory through the audited store and the catalogue, by processes that are killed.

#[path = "audited"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod audited {
    mod child;
    mod killed;
    mod setup;
}
