//! One request and its answer: what is known of it on the way, and the faults that meet it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::fault::{Armed, Effect, PageFault, Point};

/// What is requested, once the library has found out.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) operation: String,
    pub(super) bucket: Option<String>,
    pub(super) key: Option<String>,
    pub(super) faults: Vec<Armed>,
}

/// A request on its way.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    target: OnceLock<Target>,
    is_cut: AtomicBool,
}

impl Exchange {
    pub(super) fn begin(&self, target: Target) {
        self.target.set(target).expect("a request is checked once");
    }

    pub(super) fn target(&self) -> Option<&Target> {
        self.target.get()
    }

    fn faults(&self) -> impl Iterator<Item = &Armed> {
        self.target.get().into_iter().flat_map(|target| &target.faults)
    }

    /// The first fault that does something of a kind, with what it does.
    pub(super) fn find<T>(&self, of: impl Fn(Effect) -> Option<T>) -> Option<(T, Armed)> {
        self.faults().find_map(|armed| Some((of(armed.effect)?, armed.clone())))
    }

    /// Ends the connection without an answer.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Waits where a fault says so.
    pub(super) async fn pause(&self, point: Point) {
        let stalls = |effect| match effect {
            Effect::Stall(at, limit) if at == point => Some(limit),
            _ => None,
        };
        if let Some((limit, armed)) = self.find(stalls) {
            armed.hold(limit).await;
        }
    }

    /// Refuses the request where a fault says so.
    pub(super) fn check_refused(&self) -> S3Result<()> {
        let refuses = |effect| match effect {
            Effect::Refuse(status, code) => Some((status, code)),
            _ => None,
        };
        let Some(((status, code), armed)) = self.find(refuses) else { return Ok(()) };
        armed.reach();
        let code = S3ErrorCode::from_bytes(code.as_bytes()).expect("a code is text");
        let mut error = S3Error::with_message(code, "This is a fault on purpose.");
        error.set_status_code(StatusCode::from_u16(status).expect("a status is a status"));
        Err(error)
    }

    /// What is wrong with a page of a listing.
    pub(super) fn page_fault(&self) -> Option<PageFault> {
        let pages = |effect| match effect {
            Effect::Page(fault) => Some(fault),
            _ => None,
        };
        let (fault, armed) = self.find(pages)?;
        armed.reach();
        Some(fault)
    }

    /// Whether the change is made late: for how long it may wait, and whether the client waits for it.
    pub(super) fn late(&self) -> Option<((Option<Duration>, bool), Armed)> {
        self.find(|effect| match effect {
            Effect::Late { limit, is_answered } => Some((limit, is_answered)),
            _ => None,
        })
    }
}
