//! Faults on purpose: which requests they meet, and what they do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Where a request is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before anything is done, and before the body is read.
    Arrival,
    /// When so many bytes of its body have come.
    Upload(u64),
    /// When everything is ready, just before the change is made. A client that leaves takes the change with it.
    Commit,
    /// When all is done, before the answer.
    Answer,
    /// When so many bytes of the answer's body have gone out.
    Download(u64),
}

/// What is wrong with a page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// It begins at the first key again.
    Repeat,
    /// A page's worth of keys is left out before it.
    Skip,
    /// Its keys come in descending order.
    Backwards,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The request is refused with this status and code, and nothing is done.
    Refuse(u16, &'static str),
    /// The connection ends when so many bytes of the request's body have come.
    CutUpload(u64),
    /// The connection ends when so many bytes of the answer's body have gone out.
    CutDownload(u64),
    /// All is done, and the connection ends without an answer.
    CutAnswer,
    /// The request waits, for so long or until [`FaultHandle::release`].
    Stall(Point, Option<Duration>),
    /// `Content-Length` is wrong by so many bytes.
    LengthOffBy(i64),
    /// A page of a listing is wrong.
    Page(PageFault),
    /// The change is made after [`FaultHandle::release`] (or so long), whether the client is there still or not. The
    /// connection ends before, without an answer, unless the client is kept waiting for it.
    Late {
        /// For how long at most, if at all.
        limit: Option<Duration>,
        /// Whether the client gets its answer when the change is made.
        is_answered: bool,
    },
}

impl Effect {
    /// 503, as S3 answers to too many requests.
    pub const SLOW_DOWN: Self = Self::Refuse(503, "SlowDown");
    /// 500.
    pub const INTERNAL_ERROR: Self = Self::Refuse(500, "InternalError");
}

/// The operations that change something.
pub const WRITES: [&str; 13] = [
    "AbortMultipartUpload",
    "CompleteMultipartUpload",
    "CopyObject",
    "CreateBucket",
    "CreateMultipartUpload",
    "DeleteBucket",
    "DeleteObject",
    "DeleteObjects",
    "PutBucketVersioning",
    "PutObject",
    "RestoreObject",
    "UploadPart",
    "UploadPartCopy",
];

/// An effect and the requests that it meets; all of them at first.
#[derive(Clone, Debug)]
pub struct Fault {
    effect: Effect,
    operations: Vec<&'static str>,
    key: Option<String>,
    skip: u64,
    every: u64,
    times: u64,
}

impl Fault {
    /// A fault that meets every request.
    #[must_use]
    pub fn new(effect: Effect) -> Self {
        Self { effect, operations: Vec::new(), key: None, skip: 0, every: 1, times: u64::MAX }
    }

    /// Meets this operation alone, such as `PutObject`; called again, that one, too.
    #[must_use]
    pub fn on(mut self, operation: &'static str) -> Self {
        self.operations.push(operation);
        self
    }

    /// Meets what changes something: [`WRITES`].
    #[must_use]
    pub fn on_writes(mut self) -> Self {
        self.operations.extend(WRITES);
        self
    }

    /// Meets requests for this key alone.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Meets the `n`th of those requests alone, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        (self.skip, self.every, self.times) = (n.saturating_sub(1), 1, 1);
        self
    }

    /// Meets each `n`th of those requests.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.every = n.max(1);
        self
    }

    /// Meets so many requests and no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn fits(&self, operation: &str, key: Option<&str>) -> bool {
        let is_operation = self.operations.is_empty() || self.operations.contains(&operation);
        is_operation && self.key.as_deref().is_none_or(|wanted| Some(wanted) == key)
    }
}

#[derive(Debug, Default)]
struct Met {
    fitting: u64,
    taken: u64,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    met: Mutex<Met>,
    reached: watch::Sender<u64>,
    released: watch::Sender<bool>,
}

impl Rule {
    /// Whether this fault meets a request, which is counted.
    fn takes(&self, operation: &str, key: Option<&str>) -> bool {
        if !self.fault.fits(operation, key) {
            return false;
        }
        let mut met = self.met.lock();
        met.fitting += 1;
        let after = met.fitting.saturating_sub(self.fault.skip);
        let is_met = after > 0 && after.is_multiple_of(self.fault.every) && met.taken < self.fault.times;
        met.taken += u64::from(is_met);
        is_met
    }
}

/// A fault that has met a request.
#[derive(Clone, Debug)]
pub(super) struct Armed {
    pub(super) effect: Effect,
    rule: Arc<Rule>,
}

impl Armed {
    /// Notes that the effect is taking place.
    pub(super) fn reach(&self) {
        self.rule.reached.send_modify(|times| *times += 1);
    }

    /// Waits until it is released.
    pub(super) async fn hold(self, limit: Option<Duration>) {
        let mut released = self.rule.released.subscribe();
        self.reach();
        let released = released.wait_for(|released| *released);
        // The sender lives as long as the rule, which is ours.
        match limit {
            Some(limit) => drop(tokio::time::timeout(limit, released).await),
            None => drop(released.await),
        }
    }
}

/// All faults that are in force.
#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Mutex<Vec<Arc<Rule>>>,
}

impl Faults {
    pub(super) fn add(&self, fault: Fault) -> FaultHandle {
        let (reached, released) = (watch::Sender::new(0), watch::Sender::new(false));
        let rule = Arc::new(Rule { fault, met: Mutex::default(), reached, released });
        self.rules.lock().push(Arc::clone(&rule));
        FaultHandle { rule }
    }

    /// Takes all away, and releases what they hold.
    pub(super) fn clear(&self) {
        for rule in self.rules.lock().drain(..) {
            rule.released.send_replace(true);
        }
    }

    /// Those that meet a request.
    pub(super) fn meet(&self, operation: &str, key: Option<&str>) -> Vec<Armed> {
        let rules = self.rules.lock();
        let met = rules.iter().filter(|rule| rule.takes(operation, key));
        met.map(|rule| Armed { effect: rule.fault.effect, rule: Arc::clone(rule) }).collect()
    }
}

/// A fault that is in force. It stays so when the handle is dropped.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    rule: Arc<Rule>,
}

impl FaultHandle {
    /// How often it has taken effect.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.rule.reached.borrow()
    }

    /// Waits until it has taken effect so often.
    pub async fn reached(&self, times: u64) {
        let mut reached = self.rule.reached.subscribe();
        reached.wait_for(|count| *count >= times).await.unwrap();
    }

    /// Lets go what it holds now and whatever it would hold later.
    pub fn release(&self) {
        self.rule.released.send_replace(true);
    }
}
