//! Orders on one thing.

use super::act::ActArgs;
use super::client::ClientArgs;
use super::exit::Ending;
use crate::actions::{Action, Order, Seen, Subject};
use queuekeeper_queue::path::Path;

/// Orders something, without a look at anything else.
pub(super) async fn order_one(client: &ClientArgs, act: &ActArgs, order: Order) -> anyhow::Result<()> {
    act.check()?;
    client.ask(async |link| act.with_desk(link, None, client.output, async |desk| desk.order(order).await).await).await
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
