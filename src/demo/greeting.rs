//! The introduction: addresses, and what will happen.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpListener;

use super::collections::{FILMS, HELD_IN_TURN};
use super::depositors::first_large;
use super::monitoring::Monitoring;
use super::operator::Operator;
use super::pace::Pace;
use super::repository::WAIT_LIMIT_SECONDS;
use super::{Options, rot, storage};
use queuekeeper_zookeeper::Servers;

/// The addresses, and what will happen.
pub(super) fn greeting(
    options: &Options,
    pace: Pace,
    listeners: &[TcpListener],
    (zookeeper, directory): (&Servers, &Path),
    monitoring: Option<&Monitoring>,
) -> String {
    let Options { jobs, rate, seed, .. } = options;
    let steps = if (rate - 1.0).abs() < f64::EPSILON { "transition" } else { "transitions" };
    let mut text = format!(
        "A repository in {}, with {jobs} jobs from before the demo; its depositors\n\
         submit enough for about {rate} job {steps} per second, seed {seed}.\n\n",
        directory.display()
    );
    for address in listeners.iter().filter_map(|listener| listener.local_addr().ok()) {
        let addresses = [("Status page", ""), ("Deposit", "submit"), ("Metrics", "metrics")];
        for (what, page) in addresses {
            writeln!(text, "  {what:<12} http://{address}/{page}").expect(INFALLIBLE);
        }
    }
    let story = match monitoring {
        Some(monitoring) => alerts(pace, monitoring),
        None => relief(pace),
    };
    let (held, rot) = (HELD_IN_TURN[0], rot(pace));
    writeln!(text, "  ZooKeeper    {zookeeper}   (connect with zkCli.sh -server {zookeeper})").expect(INFALLIBLE);
    if let Some(monitoring) = monitoring {
        let (prometheus, alertmanager) = (monitoring.prometheus(), monitoring.alertmanager());
        let directory = monitoring.directory().display();
        write!(
            text,
            "  Prometheus   http://127.0.0.1:{prometheus}/alerts
  Alertmanager http://127.0.0.1:{alertmanager}/   (query with amtool --alertmanager.url=http://127.0.0.1:{alertmanager} alert)
  their files  {directory}
"
        )
        .expect(INFALLIBLE);
    }
    write!(
        text,
        "
The first line of the status page shows the state of the queue, as `queuekeeper status --watch` does:
  now        the queue is moving
{story}{rot}Later it stalls again at times, and recovers; a collection is held, {held} first; jobs fail, and
an operator resumes or deletes them; now and then there is a fault.
Try it: deposit a file of yours with the profile default, and watch it become an object; or pause the ingest queue, which
stops all but Recording, and unpause it.
Ctrl-C ends it and leaves nothing behind; until then it keeps up to 8 GiB in its directory.

"
    )
    .expect(INFALLIBLE);
    text
}

/// When jobs begin to wait in Provisioning, from the start: small ones may pass the large ones for some seconds.
fn stalled(pace: Pace, alerts: bool) -> Duration {
    first_large(pace, alerts) + pace.time(WAIT_LIMIT_SECONDS + 2.0)
}

/// What to watch, and when.
fn relief(pace: Pace) -> String {
    let stalled = stalled(pace, false);
    let [stall, end] = [stalled, stalled + Operator::relief(pace)].map(in_seconds);
    let threshold = storage::THRESHOLD * 100.0;
    format!(
        "  {stall}  it stalls in Provisioning, and the page shows why: a large deposit needs more working storage
             than is left below {threshold} %, and freed space is reserved for it
  {end}  it moves again: the operator has enlarged working storage, as the page recommends
"
    )
}

/// The same with Prometheus.
fn alerts(pace: Pace, monitoring: &Monitoring) -> String {
    let hour = monitoring.hour();
    // No job leaves Provisioning for an hour; then the alert's `for`.
    let stalled = stalled(pace, true);
    let [stall, raised] = [stalled, stalled + hour.mul_f64(7.0 / 6.0)].map(in_seconds);
    let (hour, collection) = (hour.as_secs_f64(), FILMS.mnemonic);
    format!(
        "  {stall}  it stalls in Provisioning: a large deposit needs more working storage than is left
  {raised}  Prometheus, whose rules take {hour} s for an hour here, raises MerrittProvisioningStuck for the cause
             waiting_for_grant, and Alertmanager calls this server, whose rule holds {collection} until
             there is space; the operator here leaves that and failed jobs alone for some time
"
    )
}

/// When a copy rots, and what becomes of that.
fn rot(pace: Pace) -> String {
    let [first, found, left] = rot::times(pace);
    let (first, found, left) = (in_seconds(first), found.as_secs(), left.as_secs());
    format!(
        "  {first}  a byte of a copy rots on disk, now and then another one: the mill finds it within about {found} s, and
             /mill/errors shows it. Have it repaired there from the other copy: after {left} s the operator does
"
    )
}

/// In how many seconds, in nine characters.
fn in_seconds(instant: Duration) -> String {
    format!("{:<9}", format!("in {} s", instant.as_secs()))
}

/// Why writing the text cannot fail.
const INFALLIBLE: &str = "writing to a String does not fail";
