//! Actions on one target.

use super::act::ActArgs;
use super::client::ClientArgs;
use super::exit::CommandError;
use super::verbs::ParameterArgs;
use crate::actions::{Action, ActionKind, LockAction, Precondition, Requested};
use queuekeeper_queue::path::Path;

/// Executes an action that needs nothing else read.
pub(super) async fn act_on_one(client: &ClientArgs, act: &ActArgs, action: Action) -> anyhow::Result<()> {
    act.check(client.output)?;
    client
        .ask(async |link| {
            act.with_session(link, None, client.output, async |session| session.action(action).await).await
        })
        .await
}

/// Breaks a lock. Whether it is a fault depends on the whole queue, which is not read with force.
pub(super) async fn break_lock(
    client: &ClientArgs,
    act: &ActArgs,
    lock: Path,
    parameters: &ParameterArgs<LockAction>,
) -> anyhow::Result<()> {
    let force = parameters.of(ActionKind::BreakLock)?.force;
    act.check(client.output)?;
    client
        .ask(async |link| {
            if !force && !act.is_dry_run() {
                link.measure_or_refuse(
                    ", or break the lock with --force if it is certain that no daemon is working under it",
                )
                .await?;
            }
            let found = link.queue().find_lock(&lock).await;
            let found = found.map_err(CommandError::from)?;
            // A lock that was created in its place belongs to another session.
            let precondition = found.map(|lock| Precondition { czxid: Some(lock.czxid), ..Precondition::default() });
            let store = if force || precondition.is_none() { None } else { Some(link.store(true).await?) };
            let action =
                Action::from(Requested::Lock(lock.clone(), LockAction::BreakLock { force })).only_if(precondition);
            act.with_session(link, store, client.output, async |session| session.action(action).await).await
        })
        .await
}
