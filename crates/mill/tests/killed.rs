//! A mill in a process of its own, which is killed behind its writes, and started again.

#![cfg(target_arch = "x86_64")]

#[path = "killed"]
#[expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
mod killed {
    mod run;
    mod world;
}
