//! The daemons of a process: sessions, lanes, workers.
//!
//! One session holds the locks of all workers, another one the watches. When the first ends its workers are cancelled,
//! and a new session begins with new polls; what they had done is found by their jobs' UUIDs.

mod adjust;
mod arrivals;
pub mod fence;
mod holds;
mod lane;
mod leftovers;
mod presence;
pub(crate) mod session;
mod store_holds;
mod volume_grants;
mod volumes;
mod worker;
mod workers;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use queuekeeper_queue::path::{self, AccessQueue, Path};
use queuekeeper_queue::{Due, Queue};
use queuekeeper_zookeeper::{Config, ConnectError, Connection, Sessions, chroot};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};
use zookeeper_client::{Acls, Client};

use crate::daemon::{Daemon, Takes};
use crate::outbox;
use crate::progress;
use crate::services::Services;
use fence::Fence;
pub use presence::{CATALOGUE, WrongCatalogue, catalogue, replace_catalogue};
use session::{AtWork, Session};
pub(crate) use worker::{RECONNECTING, through};

/// How often the profiles are looked at.
const PROFILES: Duration = Duration::from_secs(5);

/// Why the daemons cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no session, and trying again is of no use.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The queue has another catalogue.
    #[error(transparent)]
    Catalogue(#[from] WrongCatalogue),
}

/// Runs the daemons, and delivers what the outbox holds, until `stopping` is true and what was under way has ended, or
/// was given up after [`Settings::shutdown`](crate::settings::Settings::shutdown).
///
/// # Errors
/// When the first session cannot be had for a reason that trying again will not repair, or the queue has another
/// catalogue.
pub async fn run(
    services: Arc<Services>,
    zookeeper: Config,
    stopping: watch::Receiver<bool>,
) -> Result<(), EngineError> {
    // Messages need no session: what is written down is delivered whatever becomes of ZooKeeper.
    let mut delivery = Box::pin(outbox::deliver::run(&services, &stopping));
    let mut daemons = Box::pin(run_daemons(&services, zookeeper, stopping.clone()));
    tokio::select! {
        ended = &mut daemons => ended?,
        () = &mut delivery => return daemons.await,
    }
    if tokio::time::timeout(services.settings.shutdown, delivery).await.is_err() {
        warn!("aborted a delivery that did not end; the message is due again when its lease has ended");
    }
    Ok(())
}

async fn run_daemons(
    services: &Arc<Services>,
    zookeeper: Config,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), EngineError> {
    for daemon in Daemon::ALL {
        services.metrics.set_workers(daemon, services.settings.workers_of(daemon));
    }
    let mut sessions = Sessions::new(zookeeper.clone());
    let mut watches = Sessions::new(zookeeper.clone()).without_ephemerals();
    let connection = sessions.subscribe();
    // What was at work when a session was lost.
    let mut left = AtWork::default();
    while !*stopping.borrow() {
        let client = tokio::select! {
            client = sessions.establish() => client?,
            never = note_problems(services, connection.clone()) => match never {},
            _ = stopping.changed() => continue,
        };
        let timeout = client.session_timeout();
        let queue = Queue::new(client.clone()).with_acl(zookeeper.acl.clone());
        let session = Session::new(Arc::clone(services), queue, Fence::new(timeout), stopping.clone());
        let session = Arc::new(session);
        let _running = Running(Arc::clone(&session));
        let acls = if zookeeper.acl.is_empty() { Acls::anyone_all() } else { Acls::new(&zookeeper.acl) };
        presence::check_catalogue(&client, services, &acls).await?;
        let note = presence::announce(&client, services, &acls).await;
        *services.no_session.lock() = None;
        info!(session = %client.session_id(), "the daemons have a session");
        let is_removed = Arc::new(AtomicBool::new(left.is_empty()));
        if !left.is_empty() {
            let (of_task, left, is_removed) = (Arc::clone(&session), left.clone(), Arc::clone(&is_removed));
            session.spawn(async move {
                let are_known = leftovers::remove(&of_task, &left).await;
                is_removed.store(are_known, Ordering::Relaxed);
            });
        }
        tokio::select! {
            end = sessions.follow(&client) => warn!(?end, "the session of the daemons is over; their work begins again"),
            // The next session waits for it.
            () = chroot::removed(&client, &zookeeper.servers) => warn!("the chroot was removed; all work ends"),
            () = session.fence.keep(&client) => {}
            () = follow_changes(&session, &mut watches) => {}
            () = read_profiles(services) => {}
            () = progress::publish(&client, &services.downloads, &acls) => {}
            () = presence::keep_current(&session, &client, note) => {}
            () = work(&session) => {}
        }
        *services.no_session.lock() = Some("the session with ZooKeeper has ended".to_owned());
        // What is under way must not go on without the locks.
        session.running.lock().abort_all();
        while let Some(_ended) = next_ended(&session).await {}
        let before = std::mem::replace(&mut left, session.at_work());
        if !is_removed.load(Ordering::Relaxed) {
            left.extend(before);
        }
    }
    Ok(())
}

/// Notes why there is no session.
async fn note_problems(services: &Services, mut connection: watch::Receiver<Connection>) -> Infallible {
    loop {
        *services.no_session.lock() = connection.borrow_and_update().problem();
        if connection.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The work of a session: it has the session, and would go on with it where the engine is dropped.
struct Running(Arc<Session>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.lock().abort_all();
    }
}

async fn next_ended(session: &Session) -> Option<()> {
    std::future::poll_fn(|context| session.running.lock().poll_join_next(context)).await.map(drop)
}

/// Runs all lanes until the process is to stop, and what was taken has ended or has had its time.
async fn work(session: &Arc<Session>) {
    let mut lanes = JoinSet::new();
    for daemon in Daemon::ALL.into_iter().filter(|daemon| session.services.settings.runs(*daemon)) {
        let session = Arc::clone(session);
        match daemon.spec().takes {
            Takes::Jobs(state) => lanes.spawn(lane::take(session, daemon, state)),
            Takes::JobsByGrant(_) => lanes.spawn(lane::provide(session)),
            // Once their jobs are created, or being so, batches are due for the rest of that and of their withdrawal.
            Takes::Batches(Due::Jobs | Due::RestOfJobs | Due::Withdrawal) => {
                lanes.spawn(crate::batches::expand(session))
            }
            Takes::Batches(due @ (Due::Report | Due::UpdatedReport)) => {
                lanes.spawn(crate::reports::report(session, daemon, due))
            }
            Takes::Requests => lanes.spawn(crate::access::assemble(session)),
            Takes::Leftovers => lanes.spawn(crate::cleanup::clean(session)),
        };
    }
    let mut stopping = session.stopping.clone();
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => {}
        Some(ended) = lanes.join_next() => warn!(?ended, "a daemon has ended; restarting all"),
    }
    let rest = async { while next_ended(session).await.is_some() {} };
    if tokio::time::timeout(session.services.settings.shutdown, rest).await.is_err() {
        warn!("aborted work that did not end; its jobs keep their states");
    }
}

/// Wakes the daemons by watches.
async fn follow_changes(session: &Arc<Session>, watches: &mut Sessions) {
    loop {
        let client = match watches.establish().await {
            Ok(client) => client,
            Err(error) => {
                warn!(%error, "no session for watches; daemons poll instead");
                tokio::time::sleep(session.services.settings.look_again).await;
                continue;
            }
        };
        tokio::select! {
            _ = watches.follow(&client) => {}
            () = watch_all(session, &client) => {}
        }
    }
}

async fn watch_all(session: &Arc<Session>, client: &Client) {
    let running = Daemon::ALL.into_iter().filter(|daemon| session.services.settings.runs(*daemon));
    let folders = running.flat_map(|daemon| arrivals::folders(daemon.spec().takes).map(move |folder| (folder, daemon)));
    let watches = folders.map(|(folder, daemon)| async move {
        arrivals::watch_children(session, client, &folder.to_string(), daemon).await;
    });
    let pause = Path::QueueLock(path::QueueName::Ingest).to_string();
    tokio::join!(
        arrivals::watch_jobs(session, client),
        futures::future::join_all(watches),
        arrivals::watch_existence(client, &pause, &session.paused, || session.wake_all()),
        futures::future::join_all(AccessQueue::ALL.iter().map(|access| watch_access_pause(session, client, *access))),
        session.watch_holds(client),
        session.watch_volumes(client)
    );
}

/// Wakes the access daemon when one of its queues was paused, or is not any more.
async fn watch_access_pause(session: &Session, client: &Client, access: AccessQueue) {
    if !session.services.settings.runs(Daemon::Access) {
        return;
    }
    let (pause, wake) = (Path::QueueLock(access.pausable()).to_string(), session.wake(Daemon::Access));
    arrivals::watch_existence(client, &pause, &watch::Sender::new(false), || wake.notify_one()).await;
}

/// Reads the profiles again when their files change.
async fn read_profiles(services: &Services) {
    loop {
        tokio::time::sleep(PROFILES).await;
        match services.profiles.write().read_again() {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) if changes.broken.is_empty() => info!(%changes, "reloaded the profiles"),
            Ok(changes) => warn!(%changes, "reloaded the profiles, and some cannot be used"),
            Err(error) => warn!(%error, "cannot reload the profiles; the previous ones stay in use"),
        }
    }
}
