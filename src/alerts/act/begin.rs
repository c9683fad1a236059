//! Beginning a decision: what there is to do now, frozen as a list.

use std::time::Duration;

use jiff::Timestamp;

use super::{Case, Next};
use crate::alerts::decision::{Kind, List};
use crate::alerts::guard::{self, Stop};
use crate::alerts::item::Item;
use crate::alerts::outcome::Outcome;
use crate::alerts::server::Shared;
use crate::alerts::time::later;

/// Within what time a hold that was made is in the image for certain.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

impl Shared {
    /// Freezes the list of a decision, or ends it where nothing is to be done.
    pub(super) async fn begin(&self, case: &mut Case<'_>) -> Next {
        let now = Timestamp::now();
        let list = match case.decision.kind {
            Kind::Act => self.list(case, now),
            Kind::Undo => self.list_of_holds(case, now),
        };
        match list {
            Ok(list) => {
                case.decision.list = Some(list);
                if self.write(case).await { Next::On } else { Next::Later }
            }
            Err(Stop { outcome, why, left }) => {
                if case.decision.kind == Kind::Act && outcome != Outcome::BreakerOpen {
                    case.memory.left = left;
                }
                self.finish(case, outcome, &why).await
            }
        }
    }

    fn list(&self, case: &mut Case<'_>, now: Timestamp) -> Result<List, Stop> {
        // What a person has released is none of the rule's any more. What was held just now may not be in the image yet.
        let sight = self.sight(now);
        case.memory.holds.retain(|hold| !sight.is_free(&hold.collection) || later(hold.since, SEEN_WITHIN) > now);
        let Case { rule, decision, memory, .. } = &*case;
        let (scope, key) = (&decision.scope, decision.scope.key());
        guard::admit(rule, memory, &decision.cause, &key, now)?;
        let choice = self.sight(now).choose(rule, scope, memory)?;
        let (room, bound) = case.room(choice.present, now);
        let wanted = choice.items.len();
        if room == 0 {
            let why = format!("{}, and {wanted} would be to do", bound.why());
            if bound.trips() {
                tracing::warn!(rule = rule.name, "the breaker of a rule opens: {why}");
                case.memory.trip(why.clone(), now);
            }
            return Err(Stop { left: choice.left, ..Stop::new(Outcome::Budget, why) });
        }
        let items: std::collections::VecDeque<Item> =
            choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX)).collect();
        let limited = (items.len() < wanted).then(|| bound.why().to_owned());
        case.memory.left = choice.left;
        Ok(List { items, of: choice.of, limited, ..List::default() })
    }

    fn list_of_holds(&self, case: &Case<'_>, now: Timestamp) -> Result<List, Stop> {
        let holds = case.memory.holds.clone();
        if holds.is_empty() {
            return Err(Stop::new(Outcome::NothingToDo, "nothing of it is held any more"));
        }
        let sight = self.sight(now);
        let held_from = holds.iter().map(|hold| (hold.collection.clone(), sight.held_from(hold))).collect();
        let items: std::collections::VecDeque<_> = holds.iter().map(Item::hold).collect();
        Ok(List { of: items.len(), items, held_from, ..List::default() })
    }
}
