//! A decision whose last write had no answer: it may be done, and then nothing in ZooKeeper waits for its end any more.

use jiff::Timestamp;

use crate::alerts::decision::Decision;
use crate::alerts::memory::{Event, Memory};
use crate::alerts::outcome::AlertOutcome;
use queuekeeper_zookeeper::coordination::Snapshot;

/// The end of a decision, written without an answer.
#[derive(Clone, Debug)]
pub(in crate::alerts) struct UnansweredEnd {
    pub(in crate::alerts) decision: Decision,
    pub(in crate::alerts) outcome: AlertOutcome,
    pub(in crate::alerts) why: String,
    /// When it was written, which its event in the rule's state has as well.
    pub(in crate::alerts) at: Timestamp,
}

/// What became of a write without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::alerts) enum Fate {
    /// It is not done so far.
    Open,
    /// It is done.
    Done,
    /// Another process has ended the decision, and records that.
    Overtaken,
}

impl UnansweredEnd {
    /// What became of it, by what our own znodes are now.
    pub(in crate::alerts) fn fate(&self, snapshot: &Snapshot) -> Fate {
        let memory = snapshot.rules.get(&self.decision.rule).and_then(|node| Memory::read(&node.data).ok());
        let is_ours = |event: &Event| event.at == self.at && event.outcome == self.outcome;
        if memory.is_some_and(|memory| memory.events.iter().any(is_ours)) {
            return Fate::Done;
        }
        // Another decision may have the same name meanwhile.
        let pending = snapshot.pending(&self.decision.name()).and_then(|node| Decision::read(&node.data).ok());
        if pending.is_some_and(|decision| decision.id == self.decision.id) { Fate::Open } else { Fate::Overtaken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::audit::ActionId;
    use crate::alerts::decision::{DecisionKind, Scope, Trigger};
    use queuekeeper_zookeeper::coordination::Node;

    #[test]
    fn an_end_without_an_answer_is_done_open_or_another_processs() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let decision = Decision {
            id: ActionId::new(at),
            kind: DecisionKind::Act,
            rule: "resume".to_owned(),
            cause: Trigger { alert: "A".to_owned(), fingerprint: "0a".to_owned(), starts_at: at },
            scope: Scope::default(),
            at,
            list: None,
            failures: 0,
            not_before: None,
        };
        let node =
            |name: String, data| Node { name, data, version: 0, czxid: 1, created: at, changed: at, children: 0 };
        let other = Decision { id: ActionId::new(at), ..decision.clone() };
        let end = UnansweredEnd { decision, outcome: AlertOutcome::Executed, why: "resumed 2 jobs".to_owned(), at };
        let memory = |outcome| {
            let mut memory = Memory::default();
            memory.record_event(outcome, "resumed 2 jobs", at);
            node("resume".to_owned(), memory.data())
        };
        let fate = |waits: &[&Decision], rule: Option<Node>| {
            let rules = rule.into_iter().map(|node| ("resume".to_owned(), node)).collect();
            let pending = waits.iter().map(|decision| node(decision.name(), decision.data())).collect();
            end.fate(&Snapshot { pending, rules, ..Snapshot::default() })
        };
        assert_eq!(fate(&[&end.decision], None), Fate::Open);
        assert_eq!(fate(&[], Some(memory(AlertOutcome::Executed))), Fate::Done);
        // The next decision on the same scope has the same name.
        assert_eq!(fate(&[&other], Some(memory(AlertOutcome::Executed))), Fate::Done);
        assert_eq!(fate(&[&other], Some(memory(AlertOutcome::Failed))), Fate::Overtaken);
        assert_eq!(fate(&[], None), Fate::Overtaken);
    }
}
