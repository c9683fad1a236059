//! One item of a decision: looked at again, and done by one transaction with all that is written of it.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

use super::{Case, MOST_FAILURES, Next};
use crate::actions::{Action, ActionKind, Actor, NotBeside, Reason, Refusal, Role, Source, Target};
use crate::alerts::decision::{Decision, Kind, List};
use crate::alerts::guard;
use crate::alerts::item::Item;
use crate::alerts::memory::Hold;
use crate::alerts::outcome::Outcome;
use crate::alerts::rule::Remedy;
use crate::alerts::server::Shared;
use crate::alerts::time::later;

/// How many items that were done are named when all is over.
const MOST_NAMED: usize = 100;

impl Shared {
    /// Goes on with a decision by one item.
    pub(super) async fn next(&self, case: &mut Case<'_>) -> Next {
        let now = Timestamp::now();
        if self.check_synced(now).is_err() {
            return Next::Later;
        }
        let Some(item) = case.list().items.front().cloned() else { return self.end(case).await };
        let action = match self.action(case, &item, now) {
            Ok(action) => action,
            Err(why) => return self.pass(case, &item, &why).await,
        };
        if case.decision.kind == Kind::Act && case.room(u64::MAX >> 1, now).0 == 0 {
            return self.stop(case, now).await;
        }
        let (actor, reason) = (case.actor(), case.decision.reason());
        let reason = Reason::new(&reason).unwrap_or_else(|_| {
            Reason::new(&format!("rule {}", case.rule.name)).expect("a rule's name is short and not empty")
        });
        let (before, memory, together) = (case.decision.clone(), case.memory.clone(), case.together.clone());
        case.done(&item, now);
        // What a decision over many ends with is a transaction of its own: it may find more to take back.
        let writes = [&case.lead.writes()[..], &case.writes(false)[..]].concat();
        // A hold notes since when it is in whole seconds, by which it is known again.
        let at = if action.kind() == ActionKind::Hold { whole_second(now) } else { now };
        match self.actions.execute_beside(&action, &actor, &reason, &writes, at).await {
            Ok(_) => {
                case.moved();
                if case.decision.kind == Kind::Undo {
                    case.released.insert((item.on, item.version));
                }
                Next::On
            }
            Err(error) => {
                (case.decision, case.memory, case.together) = (before, memory, together);
                self.not_done(case, &item, error, now).await
            }
        }
    }

    /// The action on an item, if it still is as it was chosen.
    fn action(&self, case: &Case<'_>, item: &Item, now: Timestamp) -> Result<Action, String> {
        let target = item.target().ok_or("this is nothing that anything is done to")?;
        let sight = self.sight(now);
        match case.decision.kind {
            Kind::Act => {
                sight.still(case.rule, &case.decision.scope, &target)?;
                if case.memory.attempts_on(&item.on) >= case.rule.attempts {
                    return Err("it was tried often enough".to_owned());
                }
                item.action(case.rule.remedy, target).map_err(|refusal| refusal.to_string())
            }
            Kind::Undo => {
                if let Target::Job(job) = &target
                    && !item.since.is_some_and(|since| sight.is_held_since(*job, since))
                {
                    return Err("it is not Held any more".to_owned());
                }
                item.undoing(&case.rule.actor(), target).map_err(|refusal| refusal.to_string())
            }
        }
    }

    /// An item was not done.
    async fn not_done(&self, case: &mut Case<'_>, item: &Item, error: NotBeside, now: Timestamp) -> Next {
        match error {
            NotBeside::Write { path, why } => {
                if case.lead.is_at(&path) {
                    self.coordination.resign();
                } else {
                    tracing::debug!(rule = case.rule.name, path, %why, "a decision is looked at anew");
                }
                Next::Later
            }
            NotBeside::Action(
                refusal @ (Refusal::Conflict { .. }
                | Refusal::Missing(_)
                | Refusal::Invalid(_)
                | Refusal::Forbidden { .. }),
            ) => self.pass(case, item, &refusal.to_string()).await,
            NotBeside::Action(refusal @ Refusal::Unavailable(_)) => {
                tracing::debug!(rule = case.rule.name, "a decision waits: {refusal}");
                Next::Later
            }
            // Whether it was done stands in the decision itself, which is read again.
            NotBeside::Action(Refusal::Unknown(why) | Refusal::InPart(why)) => {
                tracing::warn!(rule = case.rule.name, "{why}; the decision tells, and is read again");
                self.metrics.count(Outcome::Unknown);
                Next::Later
            }
            NotBeside::Action(Refusal::Failed(why)) => self.fail(case, &why, now).await,
        }
    }

    /// Leaves an item that is not as it was.
    async fn pass(&self, case: &mut Case<'_>, item: &Item, why: &str) -> Next {
        tracing::info!(rule = case.rule.name, item = item.on, "not done: {why}");
        let list = case.list_mut();
        list.items.pop_front();
        list.passed += 1;
        if case.decision.kind == Kind::Undo
            && let Some(collection) = item.collection()
        {
            // Somebody released it before us, or holds it himself: it is none of the rule's any more.
            case.memory.holds.retain(|hold| hold.collection != collection);
        }
        if self.write(case).await { Next::On } else { Next::Later }
    }

    /// Another rule has used up what there was: the rest is not done.
    async fn stop(&self, case: &mut Case<'_>, now: Timestamp) -> Next {
        let (_, bound) = case.room(u64::MAX >> 1, now);
        if bound.trips() {
            case.memory.trip(bound.why(), now);
        }
        let list = case.list_mut();
        list.items.clear();
        list.limited = Some(bound.why().to_owned());
        if self.write(case).await { Next::On } else { Next::Later }
    }

    /// ZooKeeper refused it: it is tried again later, and not for ever.
    async fn fail(&self, case: &mut Case<'_>, why: &str, now: Timestamp) -> Next {
        self.metrics.count(Outcome::Failed);
        case.decision.failures += 1;
        let failures = case.decision.failures;
        if failures >= MOST_FAILURES {
            return self.finish(case, Outcome::GaveUp, &format!("it failed {failures} times: {why}")).await;
        }
        let pause = guard::pause_after(failures);
        case.decision.not_before = Some(later(now, pause));
        case.memory.tell(Outcome::Failed, &format!("{why}; tried again in {} min", pause.as_secs() / 60), now);
        tracing::error!(rule = case.rule.name, failures, "a decision failed and is tried again: {why}");
        // The others of the queue are looked after meanwhile.
        if self.write(case).await { Next::Over } else { Next::Later }
    }

    /// Everything of the list is behind us: there may be more to take back; otherwise it is over.
    async fn end(&self, case: &mut Case<'_>) -> Next {
        let now = Timestamp::now();
        if case.decision.kind == Kind::Undo {
            let more = self.held_still(case, now);
            if !more.is_empty() {
                let list = case.list_mut();
                list.of += more.len();
                list.items.extend(more);
                return if self.write(case).await { Next::On } else { Next::Later };
            }
        }
        let Decision { kind, cause, scope, .. } = &case.decision;
        let (verb, is_act) = match kind {
            Kind::Act => (case.rule.remedy.verb(), true),
            Kind::Undo => ("release", false),
        };
        let (list, key) = (case.list(), scope.key());
        let why = format!("{}{}", list.in_words(&past(verb)), list.named());
        let outcome = if list.done > 0 { Outcome::Executed } else { Outcome::NothingToDo };
        if list.done > 0 && is_act {
            let cause = cause.clone();
            case.memory.see(&key, &cause.fingerprint, cause.starts_at, case.rule.cooldown, now);
        }
        self.finish(case, outcome, &why).await
    }

    /// The jobs that are Held because of what the rule held, of collections that are free by now.
    fn held_still(&self, case: &Case<'_>, now: Timestamp) -> Vec<Item> {
        let sight = self.sight(now);
        let list = case.list();
        // What was looked at and could not be released, again and again, is left to a person.
        if list.passed > list.done {
            return Vec::new();
        }
        // What was just released here may still be held in the image.
        let is_free = |collection: &str| case.freed.contains(collection) || sight.is_free(collection);
        let free = list.held_from.iter().filter(|(collection, _)| is_free(collection));
        free.flat_map(|(collection, since)| {
            let held = sight.held_since(collection, *since);
            held.into_iter().map(|item| Item { since: Some(*since), ..item })
        })
        .filter(|item| !case.released.contains(&(item.on.clone(), item.version)))
        .collect()
    }
}

impl Case<'_> {
    fn list(&self) -> &List {
        self.decision.list.as_ref().expect("a decision is begun before its items are looked at")
    }

    fn list_mut(&mut self) -> &mut List {
        self.decision.list.get_or_insert_default()
    }

    /// Who acts: somebody who may do what cannot be undone only where that is switched on and wanted.
    fn actor(&self) -> Actor {
        let may_all = self.rules.are_destructive_allowed && self.rule.remedy.is_destructive();
        let role = if may_all && self.decision.kind == Kind::Act { Role::Admin } else { Role::Operator };
        Actor { name: self.rule.actor(), role, source: Source::Alert, from: None }
    }

    /// Notes that an item is done, in everything that is written together with it.
    fn done(&mut self, item: &Item, now: Timestamp) {
        let list = self.list_mut();
        list.items.pop_front();
        list.done += 1;
        if list.did.len() < MOST_NAMED {
            list.did.push(item.on.clone());
        }
        self.decision.not_before = None;
        match self.decision.kind {
            Kind::Act => {
                guard::take(self.rule, &mut self.memory, &mut self.together, self.rules.budget, &item.on, now);
                if self.rule.remedy == Remedy::HoldCollections
                    && let Some(collection) = item.collection()
                {
                    let fingerprint = self.decision.cause.fingerprint.clone();
                    self.memory.holds.push(Hold { collection, since: whole_second(now), fingerprint });
                }
            }
            Kind::Undo => {
                if let Some(collection) = item.collection() {
                    self.memory.holds.retain(|hold| hold.collection != collection);
                    // To hold it did what it should: it was no try that failed.
                    self.memory.forget_attempts(Some(&item.on));
                    self.freed.insert(collection);
                }
            }
        }
    }
}

/// The instant as a hold's own note says it.
fn whole_second(now: Timestamp) -> Timestamp {
    now.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc)).unwrap_or(now)
}

/// What was done, in a word.
fn past(verb: &str) -> String {
    match verb {
        "hold" => "held".to_owned(),
        "break" => "broke".to_owned(),
        "repair" => "repaired".to_owned(),
        verb => format!("{verb}d"),
    }
}
