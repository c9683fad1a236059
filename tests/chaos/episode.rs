//! What happens.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use rand::RngExt;
use tokio::time::{Instant, sleep};

use super::world::{World, number};
use queuekeeper_testkit::proxy::{Direction, Newcomers, Proxy};

/// How many jobs move before, during and after what happens.
const MOVED: usize = 25;

/// How many jobs make up a burst, each of nine znodes, and how many in the long form: 10,000 or 50,000 changes, and as
/// many when they are gone again.
const BURST: (usize, usize) = (1_100, 5_600);

/// How far a clock is set off, in seconds.
const OFF: [i64; 5] = [-7_200, -45, 30, 3_600, 90_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Episode {
    /// All connections are reset, and found again at once or a little later.
    Cut,
    /// All connections are reset several times in a row, in the middle of walks.
    CutAgain,
    /// One server of several is cut off from us.
    CutOne,
    /// No server is reachable for longer than a session lasts.
    Expire,
    /// Connections stay open, and nothing passes.
    Stall,
    /// Requests are held back, and answers are not: what a loss of packets one way is to a connection.
    StallRequests,
    /// Answers and events are held back, and requests are not.
    StallAnswers,
    /// Every answer comes late.
    Slow,
    /// A server is killed and started again with its data.
    KillServer,
    /// The leader is killed, and another takes over.
    KillLeader,
    /// All servers are killed and started again with their data.
    KillAll,
    /// One server of several comes back with an empty disk.
    LoseOne,
    /// All servers come back with empty disks, and the queue is built anew.
    LoseAll,
    /// A server stands still, as in a long collection of garbage.
    Pause,
    /// The program is killed and started again.
    KillProgram,
    /// The program's clock is set, and with the next episode of this kind set again.
    SetClock,
    /// The tree is deleted and built anew under us, with new names.
    Rebuild,
    /// The same with the old names, while we are cut off.
    RebuildUnseen,
    /// Tens of thousands of changes as fast as the server takes them.
    Burst,
}

impl Episode {
    pub(super) const ALL: [Self; 19] = [
        Self::Cut,
        Self::CutAgain,
        Self::CutOne,
        Self::Expire,
        Self::Stall,
        Self::StallRequests,
        Self::StallAnswers,
        Self::Slow,
        Self::KillServer,
        Self::KillLeader,
        Self::KillAll,
        Self::LoseOne,
        Self::LoseAll,
        Self::Pause,
        Self::KillProgram,
        Self::SetClock,
        Self::Rebuild,
        Self::RebuildUnseen,
        Self::Burst,
    ];

    /// Whether it is another than the others where so many servers are one.
    pub(super) fn is_for(self, members: usize) -> bool {
        match self {
            Self::CutOne | Self::KillLeader | Self::LoseOne => members > 1,
            Self::Cut
            | Self::CutAgain
            | Self::Expire
            | Self::Stall
            | Self::StallRequests
            | Self::StallAnswers
            | Self::Slow
            | Self::KillServer
            | Self::KillAll
            | Self::LoseAll
            | Self::Pause
            | Self::KillProgram
            | Self::SetClock
            | Self::Rebuild
            | Self::RebuildUnseen
            | Self::Burst => true,
        }
    }

    /// Makes it happen, and gives the moment at which it was over and all could be as before.
    pub(super) async fn happens(self, world: &mut World) -> Instant {
        match self {
            Self::Cut => {
                let lasts = Duration::from_millis(world.rng.random_range(0..2_500));
                disturbed(world, |proxy| proxy.cut(Newcomers::Close), lasts).await
            }
            Self::Expire => disturbed(world, |proxy| proxy.cut(Newcomers::Refuse), Duration::from_secs(6)).await,
            Self::Stall => stalled(world, Direction::Both).await,
            Self::StallRequests => stalled(world, Direction::ToServer).await,
            Self::StallAnswers => stalled(world, Direction::ToClient).await,
            Self::Slow => {
                let late = Duration::from_millis(world.rng.random_range(20..300));
                disturbed(world, |proxy| proxy.slow(late), Duration::from_secs(3)).await
            }
            Self::CutAgain => {
                for _ in 0..6 {
                    world.cluster.proxies.iter().for_each(|proxy| proxy.cut(Newcomers::Close));
                    world.daemons.work(4).await;
                    world.cluster.proxies.iter().for_each(Proxy::restore);
                    // In the midst of connecting, watching or walking.
                    sleep(Duration::from_millis(world.rng.random_range(0..400))).await;
                }
                Instant::now()
            }
            Self::CutOne => {
                let one = world.cluster.one(&mut world.rng);
                world.cluster.proxies[one].cut(Newcomers::Refuse);
                let over = Instant::now();
                world.daemons.work(MOVED).await;
                over
            }
            Self::KillServer | Self::LoseOne => {
                let one = world.cluster.one(&mut world.rng);
                kill(world, one, self == Self::LoseOne).await
            }
            Self::KillLeader => {
                let leader = world.cluster.leader().await;
                kill(world, leader, false).await
            }
            Self::KillAll => {
                world.cluster.restart_all(false).await;
                world.cluster.serves().await;
                Instant::now()
            }
            Self::LoseAll => {
                world.cluster.restart_all(true).await;
                world.daemons.lost();
                world.daemons.build(&world.cluster).await;
                Instant::now()
            }
            Self::Pause => {
                let one = world.cluster.one(&mut world.rng);
                world.cluster.servers[one].suspend();
                sleep(stalls(world)).await;
                world.cluster.servers[one].resume();
                world.cluster.serves().await;
                Instant::now()
            }
            Self::KillProgram => {
                world.daemons.work(MOVED).await;
                world.comes_right("the last work before a kill", Instant::now()).await;
                world.program.kill_and_restart(&world.daemons.steps);
                Instant::now()
            }
            Self::SetClock => {
                world.program.set_clock(OFF[world.rng.random_range(0..OFF.len())]);
                world.daemons.work(MOVED).await;
                Instant::now()
            }
            Self::Rebuild => {
                world.sentry.excuse(true);
                world.daemons.delete_tree().await;
                world.daemons.build(&world.cluster).await;
                Instant::now()
            }
            Self::RebuildUnseen => {
                world.cluster.proxies.iter().for_each(|proxy| proxy.cut(Newcomers::Close));
                world.daemons.delete_tree().await;
                world.daemons.begin_again();
                world.daemons.build(&world.cluster).await;
                world.cluster.proxies.iter().for_each(Proxy::restore);
                Instant::now()
            }
            Self::Burst => {
                world.daemons.submit(if is_long() { BURST.1 } else { BURST.0 }).await;
                Instant::now()
            }
        }
    }
}

/// Whether this is the long form.
fn is_long() -> bool {
    number("QUEUEKEEPER_CHAOS_MINUTES").is_some_and(|minutes| minutes > 0)
}

/// How long a stall lasts: some are shorter than a session, and some are not.
fn stalls(world: &mut World) -> Duration {
    Duration::from_millis(world.rng.random_range(300..8_000))
}

async fn stalled(world: &mut World, direction: Direction) -> Instant {
    let lasts = stalls(world);
    disturbed(world, |proxy| proxy.stall(direction), lasts).await
}

/// Disturbs all connections for a while, in which work goes on.
async fn disturbed(world: &mut World, disturb: impl Fn(&Proxy), lasts: Duration) -> Instant {
    world.daemons.work(MOVED).await;
    world.cluster.proxies.iter().for_each(disturb);
    let until = Instant::now() + lasts;
    world.daemons.work(MOVED).await;
    tokio::time::sleep_until(until).await;
    world.cluster.proxies.iter().for_each(Proxy::restore);
    Instant::now()
}

/// Kills one server while work goes on, as far as the others can, and starts it again.
async fn kill(world: &mut World, one: usize, is_lost: bool) -> Instant {
    world.daemons.work(MOVED).await;
    let is_alone = world.cluster.servers.len() == 1;
    let server = &mut world.cluster.servers[one];
    server.kill().unwrap();
    if is_lost {
        server.lose_data().unwrap();
    }
    if is_alone {
        server.restart().await.unwrap();
    }
    world.cluster.serves().await;
    world.daemons.work(MOVED).await;
    let over = Instant::now();
    if is_alone {
        return over;
    }
    let recovery = world.comes_right("a kill, before the server is back", over).await;
    world.early.push(recovery);
    world.cluster.servers[one].restart().await.unwrap();
    Instant::now()
}
