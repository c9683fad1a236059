//! What a newcomer is told: where to look, and what will happen.

use std::fmt::Write as _;

use tokio::net::TcpListener;

use super::catalogue::HELD_IN_TURN;
use super::pace::Pace;
use super::submit::first_large;
use super::{Options, volume};
use crate::zookeeper::Servers;

/// Where to look and what will happen.
pub(super) fn greeting(options: &Options, pace: Pace, listeners: &[TcpListener], zookeeper: &Servers) -> String {
    let Options { jobs, rate, seed, .. } = options;
    let mut text = format!("A made-up queue of {jobs} jobs at about {rate} transitions a second, seed {seed}.\n\n");
    for address in listeners.iter().filter_map(|listener| listener.local_addr().ok()) {
        writeln!(text, "  Status page  http://{address}/\n  Metrics      http://{address}/metrics").expect(INFALLIBLE);
    }
    let stall = first_large(pace).as_secs();
    let threshold = volume::THRESHOLD * 100.0;
    let held = HELD_IN_TURN[0];
    write!(
        text,
        "  ZooKeeper    {zookeeper}   (look with zkCli.sh -server {zookeeper})

What will happen:
  at once          jobs move from state to state, and new submissions keep coming
  in about {stall} s    an urgent submission of very large objects fills working storage above {threshold} %:
                   jobs wait in Provisioning, and nothing behind them moves until space is freed; it comes back later
  all the time     a collection is held, {held} first; jobs fail, and an operator resumes or deletes them
  now and then     a fault: an orphan entry, a forgotten lock
Try it: create /locks/queue/ingest in ZooKeeper, which pauses all but Recording; delete it to go on.
Ctrl-C ends it and leaves nothing behind.

"
    )
    .expect(INFALLIBLE);
    text
}

/// Why writing the text cannot fail.
const INFALLIBLE: &str = "writing to a String does not fail";
