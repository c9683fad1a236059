//! The parts of a deposit that became several batches.

use serde::Serialize;
use utoipa::ToSchema;

use super::DepositView;
use queuekeeper_ingest::withdrawal::WITHDRAWN;

/// A part of a deposit, which is a batch of some of its rows.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct DepositPart {
    /// Which one it is, from 1.
    pub(crate) part: u64,
    /// Its id, under which it is shown in full; the first part has that of the deposit.
    #[schema(example = "bid-9c1a0b5e-0000-4000-8000-000000000003")]
    pub(crate) id: String,
    /// Its state, with the same values as that of a deposit.
    #[schema(example = "completed")]
    pub(crate) state: String,
    /// Its batch; null once that is gone from the queue.
    #[schema(example = "bid0000000043")]
    pub(crate) batch: Option<String>,
    /// How it ended; null while it is in progress.
    pub(crate) outcome: Option<String>,
    /// How many of its jobs are not done.
    pub(crate) processing: u64,
    /// How many have failed.
    pub(crate) failed: u64,
    /// How many are completed.
    pub(crate) completed: u64,
    /// How many have warnings.
    pub(crate) warned: u64,
}

impl DepositPart {
    fn of(part: u64, view: &DepositView) -> Self {
        Self {
            part,
            id: view.id.clone(),
            state: view.state.clone(),
            batch: view.batch.clone(),
            outcome: view.outcome.clone(),
            processing: view.processing,
            failed: view.failed,
            completed: view.completed,
            warned: view.warned.total,
        }
    }

    /// Whether nothing more happens to it by itself.
    fn has_ended(&self) -> bool {
        matches!(&*self.state, "completed" | "failed" | "deleted" | WITHDRAWN | "removed" | "refused")
    }
}

impl DepositView {
    /// Adds the further parts, by their numbers: what is said of the deposit is said of all of them then, but its batch
    /// and jobs, which are those of the first.
    pub(super) fn add_parts(&mut self, parts: impl IntoIterator<Item = (u64, Self)>) {
        self.parts.push(DepositPart::of(1, self));
        for (number, view) in parts {
            self.parts.push(DepositPart::of(number, &view));
            self.processing += view.processing;
            self.failed += view.failed;
            self.completed += view.completed;
            // One that was withdrawn already is no hindrance to the others.
            self.may_withdraw |= view.may_withdraw && self.state == WITHDRAWN;
            self.may_withdraw &= view.may_withdraw || view.state == WITHDRAWN;
            self.withdrawing_since = self.withdrawing_since.or(view.withdrawing_since);
            self.withdrawal_refused = self.withdrawal_refused.take().or(view.withdrawal_refused);
        }
        let at_work = self.parts.iter().find(|part| !part.has_ended());
        let decisive = at_work.or_else(|| self.parts.iter().find(|part| part.state == "failed"));
        if let Some(part) = decisive {
            self.state.clone_from(&part.state);
        }
        let outcomes = self.parts.iter().map(|part| Some(format!("part {}: {}", part.part, part.outcome.as_ref()?)));
        self.outcome = outcomes.collect::<Option<Vec<_>>>().map(|outcomes| outcomes.join("; "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deposit_is_where_the_first_of_its_parts_is_that_has_not_ended() {
        let view = |state: &str, outcome: Option<&str>| DepositView {
            id: "bid-1".to_owned(),
            state: state.to_owned(),
            outcome: outcome.map(ToOwned::to_owned),
            completed: 3,
            may_withdraw: state == "pending",
            ..DepositView::default()
        };
        let of = |first: &str, second: &str| {
            let mut whole = view(first, Some("done"));
            whole.add_parts([(2, view(second, Some("done").filter(|_| second != "reporting")))]);
            whole
        };
        for (first, second, state) in [
            ("completed", "reporting", "reporting"),
            ("failed", "completed", "failed"),
            ("completed", "failed", "failed"),
            ("removed", "completed", "removed"),
            ("withdrawn", "pending", "pending"),
            ("pending", "completed", "pending"),
        ] {
            assert_eq!(of(first, second).state, state, "{first} {second}");
        }
        let whole = of("completed", "reporting");
        assert_eq!((whole.completed, whole.outcome, whole.parts.len()), (6, None, 2));
        assert_eq!(of("failed", "completed").outcome.as_deref(), Some("part 1: done; part 2: done"));
        let may =
            [("pending", "pending"), ("pending", "completed"), ("withdrawn", "pending"), ("completed", "pending")];
        assert_eq!(may.map(|(first, second)| of(first, second).may_withdraw), [true, false, true, false]);
    }
}
