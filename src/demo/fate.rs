//! What goes wrong at the depositors' servers, determined by the seed and the path alone.

use super::dice::Dice;

/// What is wrong with a file, and for how many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) fault: FileFault,
    /// After so many requests its depositor has put it right.
    pub(super) requests: u32,
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFault {
    /// It is not there: 404.
    Gone,
    /// Its link has expired: 403.
    Expired,
    /// Its bytes are not those that it should have.
    Damaged,
    /// The server is too busy: 503.
    Busy,
    /// The connection is cut in the midst of it.
    Cut,
}

/// The faults with their weights, and for how many requests they last: what passes within one attempt of a daemon
/// makes no job wait, and what is tried again by an operator must be right at some time.
const FAULTS: [(u32, (FileFault, u32)); 6] = [
    (2, (FileFault::Gone, 1)),
    (1, (FileFault::Gone, u32::MAX)),
    (2, (FileFault::Expired, 1)),
    (2, (FileFault::Damaged, 1)),
    (3, (FileFault::Busy, 12)),
    (3, (FileFault::Cut, 2)),
];

/// What is wrong with a file of this path, which is below the name of its submission; `None` where nothing is.
///
/// One submission in sixteen is struck: a third of its files have one fault. Of the others one in eighty has some.
pub(super) fn of_file(seed: u64, submission: &str, path: &str) -> Option<Fate> {
    let mut all = Dice::new(seed, ("submission", submission));
    let is_struck = all.happens(1.0 / 16.0);
    let shared = all.weighted(&FAULTS);
    let mut one = Dice::new(seed, ("file", path));
    if !one.happens(if is_struck { 1.0 / 3.0 } else { 1.0 / 80.0 }) {
        return None;
    }
    let (fault, requests) = if is_struck { shared } else { one.weighted(&FAULTS) };
    Some(Fate { fault, requests })
}

/// How a depositor answers a callback, by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Well.
    Taken,
    /// It refuses the first: 403.
    RefusedOnce,
    /// It is away for the first two: 502.
    AwayTwice,
}

pub(super) fn of_callback(seed: u64, path: &str) -> Answer {
    let answers = [(50, Answer::Taken), (1, Answer::RefusedOnce), (1, Answer::AwayTwice)];
    Dice::new(seed, ("callback", path)).weighted(&answers)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn some_submissions_share_a_fault_and_few_files_of_others_have_one() {
        let mut struck = 0;
        let mut all = 0;
        for submission in 0..200 {
            let name = format!("etd_{submission}");
            let fates: Vec<Fate> = (0..60).filter_map(|file| of_file(9, &name, &format!("/{name}/{file}"))).collect();
            assert_eq!(of_file(9, &name, "/a"), of_file(9, &name, "/a"));
            all += fates.len();
            if fates.len() >= 10 {
                struck += 1;
                assert!(fates.iter().all(|fate| *fate == fates[0]), "{fates:?}");
            }
        }
        assert!((5..=30).contains(&struck), "{struck}");
        assert!((150..900).contains(&all), "{all} of 12,000");
        let faults: BTreeSet<String> = (0..5_000)
            .filter_map(|file| of_file(3, "quiet", &format!("/quiet/{file}")))
            .map(|fate| format!("{fate:?}"))
            .collect();
        assert!(faults.len() >= 4, "{faults:?}");
        let refused = (0..1_000).filter(|id| of_callback(1, &format!("/{id}")) != Answer::Taken).count();
        assert!((10..100).contains(&refused), "{refused}");
    }
}
