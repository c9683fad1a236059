//! From which queue, and of which account, tasks are taken next.

use queuekeeper_catalogue::tasks::TaskQueue;

/// One take in so many begins at another queue than the first, so that a flood in one does not stop the others.
const SHARE: u64 = 10;

/// The order in which queues and accounts are looked at.
#[derive(Clone, Debug)]
pub(super) struct TakeOrder {
    queues: Vec<TaskQueue>,
    accounts: Vec<String>,
    takes: u64,
}

impl TakeOrder {
    pub(super) fn new(queues: Vec<TaskQueue>, accounts: Vec<String>) -> Self {
        Self { queues, accounts, takes: 0 }
    }

    /// Where the next take looks, one after the other, until it finds tasks. The queues in their order, but for one
    /// take in ten, which begins at each of the later ones in turn; the accounts in turn, each take at the one behind
    /// that of the last.
    pub(super) fn next(&mut self) -> Vec<(TaskQueue, String)> {
        let (turn, rest) = (self.takes / SHARE, self.takes % SHARE);
        let later = u64::try_from(self.queues.len()).unwrap_or(u64::MAX).saturating_sub(1).max(1);
        let first = if rest == SHARE - 1 { 1 + turn % later } else { 0 };
        let queues = rotated(&self.queues, first);
        let accounts = rotated(&self.accounts, self.takes);
        self.takes += 1;
        queues.flat_map(|queue| accounts.clone().map(move |account| (*queue, account.clone()))).collect()
    }
}

/// All of a list, beginning at a place that is counted around.
fn rotated<T>(list: &[T], first: u64) -> impl Iterator<Item = &T> + Clone {
    let length = u64::try_from(list.len()).unwrap_or(u64::MAX).max(1);
    let first = usize::try_from(first % length).unwrap_or(0);
    list.iter().cycle().skip(first).take(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_queue_comes_first_but_for_one_take_in_ten_and_accounts_take_turns() {
        let queues = vec![TaskQueue::Audit, TaskQueue::DuplicationHigh, TaskQueue::BitIntegrity];
        let mut order = TakeOrder::new(queues, vec!["a".to_owned(), "b".to_owned()]);
        let takes: Vec<_> = (0..40).map(|_| order.next()).collect();
        assert!(takes.iter().all(|take| take.len() == 6));
        let first = |at: usize| takes[at][0].0;
        assert!((0..40).filter(|at| at % 10 != 9).all(|at| first(at) == TaskQueue::Audit));
        assert_eq!(
            [9, 19, 29, 39].map(first),
            [TaskQueue::DuplicationHigh, TaskQueue::BitIntegrity, TaskQueue::DuplicationHigh, TaskQueue::BitIntegrity,]
        );
        assert_eq!((takes[0][0].1.as_str(), takes[1][0].1.as_str(), takes[2][0].1.as_str()), ("a", "b", "a"));
        assert_eq!(TakeOrder::new(Vec::new(), Vec::new()).next(), []);
        let mut one = TakeOrder::new(vec![TaskQueue::Audit], vec!["a".to_owned()]);
        assert!((0..20).all(|_| one.next() == [(TaskQueue::Audit, "a".to_owned())]));
    }
}
