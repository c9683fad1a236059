//! Beginning a decision: what there is to do now, frozen as a list.

use jiff::Timestamp;

use super::{Case, Next};
use crate::alerts::decision::{Kind, List};
use crate::alerts::guard::{self, Stop};
use crate::alerts::item::Item;
use crate::alerts::outcome::Outcome;
use crate::alerts::server::Shared;

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
            Err(Stop { outcome, why }) => {
                if outcome == Outcome::Budget {
                    case.memory.trip(why.clone(), now);
                    tracing::warn!(rule = case.rule.name, "the breaker of a rule opens: {why}");
                }
                self.finish(case, outcome, &why).await
            }
        }
    }

    fn list(&self, case: &mut Case<'_>, now: Timestamp) -> Result<List, Stop> {
        let Case { rule, decision, memory, .. } = &*case;
        let (target, key) = (&decision.target, decision.target.key());
        guard::admit(rule, memory, &decision.cause, &key, now)?;
        let choice = self.sight(now).choose(rule, target, memory)?;
        let (room, why) = case.room(choice.present, now);
        let wanted = choice.items.len();
        if room == 0 {
            return Err(Stop::new(Outcome::Budget, format!("{why}, and {wanted} are to be done")));
        }
        let items: std::collections::VecDeque<Item> =
            choice.items.into_iter().take(usize::try_from(room).unwrap_or(usize::MAX)).collect();
        let limited = (items.len() < wanted).then(|| why.to_owned());
        case.memory.left = choice.left;
        Ok(List { items, of: choice.of, limited, ..List::default() })
    }

    fn list_of_holds(&self, case: &Case<'_>, now: Timestamp) -> Result<List, Stop> {
        let holds = case.holds_of_cause();
        if holds.is_empty() {
            return Err(Stop::new(Outcome::NothingToDo, "nothing of it is held any more"));
        }
        let sight = self.sight(now);
        let held_from = holds.iter().map(|hold| (hold.collection.clone(), sight.held_from(hold))).collect();
        let items: std::collections::VecDeque<_> = holds.iter().map(Item::hold).collect();
        Ok(List { of: items.len(), items, held_from, ..List::default() })
    }
}
