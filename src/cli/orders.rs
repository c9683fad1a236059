//! Orders on one thing.

use super::act::ActArgs;
use super::client::{ClientArgs, Link};
use super::exit::Ending;
use crate::actions::{Action, Order, Seen, Subject};
use crate::queue::path::Path;

/// Orders something, without a look at anything else.
pub(super) async fn order_one(client: &ClientArgs, act: &ActArgs, order: Order) -> anyhow::Result<()> {
    act.check()?;
    client.ask(async |link| order_over(link, client, act, order).await).await
}

/// The same over a session.
pub(super) async fn order_over(link: &Link, client: &ClientArgs, act: &ActArgs, order: Order) -> anyhow::Result<()> {
    // What is broken may be purged, and that goes by its age; what is done with may be at any.
    if order.action == Action::Purge && !act.is_dry_run() {
        // Where it is refused, that is said of what needs it.
        let _ = link.measure().await;
    }
    act.with_desk(link, None, client.output, async |desk| desk.order(order).await).await
}

/// Breaks a lock. Whether it is a fault only the whole queue tells; by force nobody asks.
pub(super) async fn break_lock(client: &ClientArgs, act: &ActArgs, lock: Path, force: bool) -> anyhow::Result<()> {
    act.check()?;
    client
        .ask(async |link| {
            if !force && !act.is_dry_run() {
                link.measure_or_refuse(", or break the lock with --force if it is certain that nobody works under it")
                    .await?;
            }
            let found = link.queue().find_lock(&lock).await;
            let found = found.map_err(Ending::from)?;
            // Another lock in its place is another's.
            let seen = found.map(|lock| Seen { czxid: Some(lock.czxid), ..Seen::default() });
            let store = if force || seen.is_none() { None } else { Some(link.store(true).await?) };
            let order = Order { seen, force, ..Order::new(Action::BreakLock, Subject::Lock(lock)) };
            act.with_desk(link, store, client.output, async |desk| desk.order(order).await).await
        })
        .await
}
