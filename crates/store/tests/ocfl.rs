//! Objects in stores: written, interrupted at each write, raced for, damaged, repaired, and judged by a validator that
//! is not ours.
//!
//! With `QUEUEKEEPER_ROCFL=PROGRAM`, the validator `rocfl` (`cargo install rocfl`) validates all that ocfl-py does but
//! for one name. How much memory large objects take is in `peak.rs`.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

#[path = "ocfl/bucket.rs"]
mod bucket;
#[path = "ocfl/crash.rs"]
mod crash;
#[path = "ocfl/damage.rs"]
mod damage;
#[path = "ocfl/helpers.rs"]
mod helpers;
#[path = "ocfl/model.rs"]
mod model;
#[path = "ocfl/rivals.rs"]
mod rivals;
#[path = "ocfl/roots.rs"]
mod roots;
#[path = "ocfl/versions.rs"]
mod versions;

#[path = "support/memory.rs"]
mod memory;
#[path = "support/steps.rs"]
mod steps;
