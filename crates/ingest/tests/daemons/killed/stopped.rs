//! A process that is stopped in the middle of a write for longer than its session lasts, and goes on when another one
//! has done its work.

use std::time::{Duration, Instant};

use queuekeeper_testkit::traced::{Trace, WriteFault};
use queuekeeper_testkit::wait::eventually;

use super::{LIMIT, SESSION, Trial, kinds};

/// How long it is stopped at least: then its session is over, which the server looks for each tick.
const OVER: Duration = SESSION.saturating_mul(2);

/// How long it is stopped at most: it may have been stopped while it had a lock of the database or of a file, for which
/// the other one waits.
const STOPPED: Duration = SESSION.saturating_mul(8);

impl Trial {
    /// Runs a process to the write in whose middle it is stopped, and another one meanwhile; then both until all is
    /// done. The answer is what the first one wrote.
    pub(super) async fn run_stopped(&self, context: &str, fault: WriteFault) -> Trace {
        let first = self.start(Some(fault));
        let began = Instant::now();
        while !first.is_stopped() {
            if first.has_ended() || kinds::is_done(&self.world, self.kind).await {
                return first.stop().await;
            }
            assert!(began.elapsed() < LIMIT, "{context}: it is neither stopped nor done");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (mut second, stopped) = (self.start(None), Instant::now());
        while !second.has_ended() && stopped.elapsed() < STOPPED {
            if stopped.elapsed() > OVER && kinds::is_done(&self.world, self.kind).await {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eventually(LIMIT, &format!("{context}: its session is over"), async || {
            stopped.elapsed() > OVER && self.world.children("/queuekeeper/daemons").await.len() <= 1
        })
        .await;
        first.go_on();
        if second.has_ended() {
            // The catalogue could not be opened.
            second = self.start(None);
        }
        eventually(LIMIT, &format!("{context}: both have a session, and all is done"), async || {
            assert!(!first.has_ended() && !second.has_ended(), "{context}: a process has ended");
            self.world.children("/queuekeeper/daemons").await.len() == 2 && kinds::is_done(&self.world, self.kind).await
        })
        .await;
        let (trace, other) = tokio::join!(first.stop(), second.stop());
        assert_eq!((trace.code, other.code), (Some(0), Some(0)), "{context}");
        trace
    }
}
