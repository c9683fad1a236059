//! Copies are brought to what their sources are, and proven, in directories and in buckets.

#[path = "duplicate"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod duplicate {
    mod asides;
    mod bit;
    mod flow;
    mod forced;
    mod limits;
    mod loops;
    mod objects;
    mod pauses;
    mod repairs;
    mod rows;
    mod stats;
    mod world;
}
