//! What tests share: proxies that cut and stall, servers, certificates, waiting, and the oracle of the tree. For
//! dev-dependencies only.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]
#![expect(clippy::missing_panics_doc, reason = "what fails in a helper fails the test")]

pub mod certs;
pub mod documentation;
pub mod ezid;
pub mod faulty;
mod flush;
pub mod origin;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod queue;
pub mod readers;
pub mod s3;
pub mod server;
pub mod smtp;
pub mod sqlite;
#[cfg(target_arch = "x86_64")]
pub mod traced;
pub mod tree;
pub mod wait;
pub mod wire;
pub mod wording;
