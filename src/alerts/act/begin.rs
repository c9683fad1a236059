//! Starting a decision: its items are selected and frozen as a list.

use std::time::Duration;

use jiff::Timestamp;

use super::{ActiveDecision, Next};
use crate::alerts::decision::{DecisionKind, ItemList};
use crate::alerts::evaluation::Stop;
use crate::alerts::guard;
use crate::alerts::item::DecisionItem;
use crate::alerts::outcome::AlertOutcome;
use crate::alerts::server::Shared;
use crate::alerts::time::later;

/// The time after which a new hold is certain to be in the mirror.
const MIRROR_DELAY: Duration = Duration::from_secs(10);

impl Shared {
    /// Freezes the list of a decision, or finishes it if there is nothing to do.
    pub(super) async fn begin(&self, active: &mut ActiveDecision<'_>) -> Next {
        let now = Timestamp::now();
        let list = match active.decision.kind {
            DecisionKind::Act => self.list(active, now),
            DecisionKind::Undo => self.list_of_holds(active, now),
        };
        match list {
            Ok(list) => {
                active.decision.list = Some(list);
                if self.save(active).await { Next::Continue } else { Next::Retry }
            }
            Err(Stop { outcome, why, left }) => {
                if active.decision.kind == DecisionKind::Act && outcome != AlertOutcome::BreakerOpen {
                    active.memory.left = left;
                }
                self.finish(active, outcome, &why).await
            }
        }
    }

    fn list(&self, active: &mut ActiveDecision<'_>, now: Timestamp) -> Result<ItemList, Stop> {
        // Holds that a user released are no longer the rule's. A new hold may not be in the mirror yet.
        let queue_view = self.queue_view(now);
        active
            .memory
            .holds
            .retain(|hold| !queue_view.is_free(&hold.collection) || later(hold.since, MIRROR_DELAY) > now);
        let ActiveDecision { rule, decision, memory, .. } = &*active;
        let (scope, key) = (&decision.scope, decision.scope.key());
        guard::admit(rule, memory, &decision.cause, &key, now)?;
        let choice = self.queue_view(now).choose(rule, scope, memory)?;
        let (room, bound) = active.room(choice.present, now);
        let wanted = choice.items.len();
        if room == 0 {
            let why = bound.refusal(wanted);
            if bound.trips() {
                tracing::warn!(rule = rule.name, "opened the breaker of a rule: {why}");
                active.memory.trip(why.clone(), now);
            }
            return Err(Stop { left: choice.left, ..Stop::new(AlertOutcome::Budget, why) });
        }
        let items: std::collections::VecDeque<DecisionItem> =
            choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX)).collect();
        let limited = (items.len() < wanted).then(|| bound.why().to_owned());
        active.memory.left = choice.left;
        Ok(ItemList { items, of: choice.of, limited, ..ItemList::default() })
    }

    fn list_of_holds(&self, active: &ActiveDecision<'_>, now: Timestamp) -> Result<ItemList, Stop> {
        let holds = active.memory.holds.clone();
        if holds.is_empty() {
            return Err(Stop::new(AlertOutcome::NothingToDo, "the rule no longer holds any collection"));
        }
        let queue_view = self.queue_view(now);
        let held_from = holds.iter().map(|hold| (hold.collection.clone(), queue_view.held_from(hold))).collect();
        let items: std::collections::VecDeque<_> = holds.iter().map(DecisionItem::hold).collect();
        Ok(ItemList { of: items.len(), items, held_from, ..ItemList::default() })
    }
}
