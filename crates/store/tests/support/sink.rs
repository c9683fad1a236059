//! An audit log in memory, which stops at any step, or is away.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use queuekeeper_store::StoreName;
use queuekeeper_store::audit::{AuditSink, Begun, Intent, Rival, Settlement, SinkError, Subject};
use tokio::time::Instant;
use uuid::Uuid;

use super::steps::Steps;

/// An audit log in memory.
#[derive(Default)]
pub(crate) struct MemorySink {
    steps: Steps,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Vec<(Intent, Instant)>,
    settled: BTreeMap<Uuid, Settlement>,
    events: Vec<(Intent, Settlement)>,
    extended: usize,
    is_away: bool,
    writes_left: Option<usize>,
}

impl State {
    fn open(&mut self, intent: &Intent) -> Option<&mut (Intent, Instant)> {
        self.open.iter_mut().find(|(open, _)| (open.id, open.holder) == (intent.id, intent.holder))
    }
}

fn take_over(left: &mut (Intent, Instant), lease: Duration) -> Intent {
    left.0.holder = Uuid::now_v7();
    left.1 = Instant::now() + lease;
    left.0.clone()
}

impl MemorySink {
    /// An empty audit log that stops with these steps: each write has one before it, and one behind.
    pub(crate) fn new(steps: Steps) -> Self {
        Self { steps, state: Mutex::default() }
    }

    /// Whether it can be reached.
    pub(crate) fn set_away(&self, is_away: bool) {
        let mut state = self.state.lock();
        (state.is_away, state.writes_left) = (is_away, None);
    }

    /// Cannot be reached any more after so many writes.
    pub(crate) fn go_away_after(&self, writes: usize) {
        self.state.lock().writes_left = Some(writes);
    }

    /// All events, in their order.
    pub(crate) fn events(&self) -> Vec<(Intent, Settlement)> {
        self.state.lock().events.clone()
    }

    /// The intents that are not settled.
    pub(crate) fn open_intents(&self) -> Vec<Intent> {
        self.state.lock().open.iter().map(|(intent, _)| intent.clone()).collect()
    }

    /// How many intents there were.
    pub(crate) fn intents(&self) -> usize {
        let state = self.state.lock();
        state.open.len() + state.settled.len()
    }

    /// How often a lease was extended.
    pub(crate) fn extended(&self) -> usize {
        self.state.lock().extended
    }

    /// Ends the leases of all open intents.
    pub(crate) fn end_leases(&self) {
        for (_, until) in &mut self.state.lock().open {
            *until = Instant::now();
        }
    }

    /// Takes every open intent away from its holder, as if its lease had ended long ago.
    pub(crate) fn steal(&self) {
        for (intent, _) in &mut self.state.lock().open {
            intent.holder = Uuid::now_v7();
        }
    }

    async fn write<T>(&self, write: impl FnOnce(&mut State) -> Result<T, SinkError>) -> Result<T, SinkError> {
        self.steps.step().await;
        let result = {
            let mut state = self.state.lock();
            state.is_away |= state.writes_left == Some(0);
            state.writes_left = state.writes_left.map(|writes| writes.saturating_sub(1));
            if state.is_away {
                return Err(SinkError::Unavailable("the connection was refused".to_owned()));
            }
            write(&mut state)
        };
        self.steps.step().await;
        result
    }
}

#[async_trait]
impl AuditSink for MemorySink {
    async fn begin(&self, intent: &Intent, lease: Duration) -> Result<Begun, SinkError> {
        let begin = |state: &mut State| {
            let now = Instant::now();
            match state.open.iter_mut().find(|(open, _)| open.subject == intent.subject) {
                Some((rival, until)) if *until > now => {
                    Ok(Begun::Busy(Rival::new(rival.id, rival.user.clone(), rival.change, *until - now)))
                }
                Some(left) => Ok(Begun::Left(Box::new(take_over(left, lease)))),
                None => {
                    state.open.push((intent.clone(), now + lease));
                    Ok(Begun::Ours)
                }
            }
        };
        self.write(begin).await
    }

    async fn extend(&self, intent: &Intent, lease: Duration) -> Result<(), SinkError> {
        let extend = |state: &mut State| {
            let open = state.open(intent).ok_or(SinkError::Lost)?;
            *open = (intent.clone(), Instant::now() + lease);
            state.extended += 1;
            Ok(())
        };
        self.write(extend).await
    }

    async fn settle(&self, intent: &Intent, settlement: &Settlement) -> Result<(), SinkError> {
        let settle = |state: &mut State| {
            if state.settled.get(&intent.id) == Some(settlement) {
                return Ok(());
            }
            state.open(intent).ok_or(SinkError::Lost)?;
            state.open.retain(|(open, _)| open.id != intent.id);
            state.settled.insert(intent.id, settlement.clone());
            if *settlement != Settlement::NotDone {
                state.events.push((intent.clone(), settlement.clone()));
            }
            Ok(())
        };
        self.write(settle).await
    }

    async fn take_left(&self, store: &StoreName, lease: Duration) -> Result<Option<Intent>, SinkError> {
        let take = |state: &mut State| {
            let now = Instant::now();
            let mut left = state
                .open
                .iter_mut()
                .filter(|(Intent { subject: Subject { store: of, .. }, .. }, until)| of == store && *until <= now);
            Ok(left.next().map(|left| take_over(left, lease)))
        };
        self.write(take).await
    }
}
