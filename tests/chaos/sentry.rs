//! Looks at the program all the time, also while something happens to it.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::samples::Samples;

/// How often it looks: what is untrue for less than that may be missed.
const EVERY: Duration = Duration::from_millis(50);

/// How long an answer may take.
const ANSWERS: Duration = Duration::from_secs(10);

pub(super) struct Sentry {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// How many answers it got.
    answers: u64,
    /// The first thing that was said and was not so.
    untrue: Option<String>,
    /// Whether there are faults in truth: a tree that is taken apart leaf by leaf has some.
    is_excused: bool,
}

impl Sentry {
    /// Watches the program at `address`, over a connection that it keeps.
    pub(super) fn watch(address: &str) -> Self {
        let url = format!("http://{address}/metrics");
        let seen = Arc::new(Mutex::new(Seen::default()));
        let task = tokio::spawn(look(url, Arc::clone(&seen)));
        Self { seen, task }
    }

    /// From now on faults may be true, or may not be again.
    pub(super) fn excuse(&self, is_excused: bool) {
        self.seen.lock().unwrap().is_excused = is_excused;
    }

    /// How often it has looked.
    ///
    /// # Panics
    /// When the program said something that was not so, at any time.
    pub(super) fn has_seen_nothing_untrue(&self, until: &str) -> u64 {
        assert!(!self.task.is_finished(), "the program is not looked at any more");
        let seen = self.seen.lock().unwrap();
        if let Some(untrue) = &seen.untrue {
            panic!("at some time until {until}: {untrue}");
        }
        seen.answers
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look(url: String, seen: Arc<Mutex<Seen>>) {
    let http = reqwest::Client::builder().timeout(ANSWERS).pool_max_idle_per_host(1).build().unwrap();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // While it is being killed and started there is no answer, or half of one.
        let Ok(answer) = http.get(&url).send().await else { continue };
        let Ok(text) = answer.text().await else { continue };
        let untrue = Samples::new(&text).untrue();
        let mut seen = seen.lock().unwrap();
        seen.answers += 1;
        if !seen.is_excused {
            seen.untrue = seen.untrue.take().or(untrue);
        }
    }
}
