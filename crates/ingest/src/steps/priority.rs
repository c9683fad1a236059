//! The priority of jobs by their size: very large ones, and those of unknown size, come later.

use queuekeeper_queue::id::Priority;

use crate::space::Rules;

/// How much later they come.
const LATER: u8 = 10;

/// The priority of a job of this size that had another one before its size was asked for.
pub(super) fn estimated(rules: &Rules, size: Option<u64>, before: Priority) -> Priority {
    if rules.comes_later(size) { later(before) } else { before }
}

/// The priority of a job whose size is known by what it has, and was taken for another.
///
/// One that was later without need is not any more. At the last priority it stays: where it was before that is not
/// known.
pub(super) fn corrected(rules: &Rules, estimate: Option<u64>, size: u64, before: Priority) -> Priority {
    match (rules.comes_later(estimate), rules.comes_later(Some(size))) {
        (false, true) => later(before),
        (true, false) if before < Priority::MAX => {
            let number = before.number().checked_sub(LATER);
            number.and_then(|number| Priority::new(number.into())).unwrap_or(before)
        }
        (true, false | true) | (false, false) => before,
    }
}

fn later(priority: Priority) -> Priority {
    Priority::new((priority.number() + LATER).into()).unwrap_or(Priority::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_comes_later_while_it_is_very_large_or_of_unknown_size() {
        let rules = Rules { large: 100, ..Rules::default() };
        let priority = |number| Priority::new(number).unwrap();
        let after = |size, before| i64::from(estimated(&rules, size, priority(before)).number());
        assert_eq!([after(Some(99), 5), after(Some(100), 5), after(None, 5), after(None, 95)], [5, 15, 15, 99]);
        let corrected = |estimate, size, before| corrected(&rules, estimate, size, priority(before)).number();
        assert_eq!([corrected(None, 99, 15), corrected(Some(100), 99, 15)], [5, 5], "it is smaller");
        assert_eq!([corrected(Some(99), 100, 5), corrected(Some(1), 100, 95)], [15, 99], "it is larger");
        let others = [corrected(Some(9), 99, 5), corrected(None, 100, 15), corrected(Some(100), 500, 15)];
        assert_eq!(others, [5, 15, 15], "it is what it was taken for");
        assert_eq!(corrected(None, 1, 99), 99, "where it was is not known");
        assert_eq!(corrected(None, 1, 5), 5, "it was not estimated here, or an operator has changed it");
        // Whatever is estimated again is corrected to the same.
        for size in [1, 100] {
            let once = corrected(Some(size), size, 15);
            assert_eq!(once, 15);
        }
    }
}
