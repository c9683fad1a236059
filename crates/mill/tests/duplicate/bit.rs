//! Checks of copies: each row of the table planted for real, by single checks and by loops.

mod adopt;
pub(super) mod cold;
mod compare;
mod forecast;
mod loops;
mod mailed;
mod many;
mod reports;
mod requested;
mod rows;
mod sealed;
mod seals;
mod verify;
mod world;
