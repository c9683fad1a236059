//! The introduction: addresses, and what will happen.

use std::fmt::Write as _;

use tokio::net::TcpListener;

use super::catalogue::{FILMS, HELD_IN_TURN};
use super::monitoring::Monitoring;
use super::pace::Pace;
use super::submit::first_large;
use super::{Options, volume};
use queuekeeper_zookeeper::Servers;

/// The addresses, and what will happen.
pub(super) fn greeting(
    options: &Options,
    pace: Pace,
    listeners: &[TcpListener],
    zookeeper: &Servers,
    monitoring: Option<&Monitoring>,
) -> String {
    let Options { jobs, rate, seed, .. } = options;
    let steps = if (rate - 1.0).abs() < f64::EPSILON { "transition" } else { "transitions" };
    let mut text = format!("A simulated queue of {jobs} jobs with about {rate} {steps} per second, seed {seed}.\n\n");
    for address in listeners.iter().filter_map(|listener| listener.local_addr().ok()) {
        writeln!(text, "  Status page  http://{address}/\n  Metrics      http://{address}/metrics").expect(INFALLIBLE);
    }
    let stall = first_large(pace).as_secs();
    let threshold = volume::THRESHOLD * 100.0;
    let held = HELD_IN_TURN[0];
    let alerts = monitoring.map(|monitoring| alerts(pace, monitoring)).unwrap_or_default();
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
What will happen:
  at once          jobs move from state to state, and new submissions keep coming
  in about {stall} s    an urgent submission of very large objects fills working storage above {threshold} %:
                   jobs wait in Provisioning, and nothing behind them moves until space is freed; it comes back later
{alerts}  all the time     a collection is held, {held} first; jobs fail, and an operator resumes or deletes them
  now and then     a fault: an orphan entry, a forgotten lock
Try it: create /locks/queue/ingest in ZooKeeper, which pauses all but Recording; delete it to continue.
Ctrl-C ends it and leaves nothing behind.

"
    )
    .expect(INFALLIBLE);
    text
}

/// What to watch with Prometheus, and when.
fn alerts(pace: Pace, monitoring: &Monitoring) -> String {
    let hour = monitoring.hour().as_secs_f64();
    // No job leaves Provisioning for an hour, from some seconds after the submission; then the alert's `for`.
    let raised = (first_large(pace) + pace.time(14.0) + monitoring.hour().mul_f64(7.0 / 6.0)).as_secs();
    let collection = FILMS.mnemonic;
    format!(
        "  in about {raised} s    Prometheus, in whose rules an hour is {hour} s here, raises MerrittProvisioningStuck for the cause
                   waiting_for_space, and Alertmanager calls this server; while {collection} is held,
                   more of its objects do not make the stall longer. The operator here neither holds nor
                   releases that collection, and leaves failed jobs alone for some time
"
    )
}

/// Why writing the text cannot fail.
const INFALLIBLE: &str = "writing to a String does not fail";
