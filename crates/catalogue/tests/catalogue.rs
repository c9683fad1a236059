//! The catalogue on both databases, a real one of its own for each test.

#[path = "catalogue"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod catalogue {
    mod audit;
    mod away;
    mod backup;
    mod bit;
    mod bit_errors;
    mod brake;
    mod check;
    mod counters;
    mod crash;
    mod deposits;
    mod identifiers;
    mod index;
    mod inventory;
    mod loops;
    mod noted;
    mod open;
    mod outbox;
    mod pauses;
    mod probe;
    mod proofs;
    mod repairs;
    mod seals;
    mod support;
    mod tasks;
}
