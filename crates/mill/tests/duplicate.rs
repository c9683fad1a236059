//! Copies are brought to what their sources are, in directories and in buckets.

#[path = "duplicate"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod duplicate {
    mod asides;
    mod flow;
    mod forced;
    mod limits;
    mod loops;
    mod objects;
    mod pauses;
    mod rows;
    mod stats;
    mod world;
}
