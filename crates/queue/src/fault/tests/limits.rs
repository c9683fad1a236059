//! The limits by their faults, and their defaults.

use super::*;
use crate::fault::limits::ms;
use crate::state::AccessState;

#[test]
fn each_limit_in_time_is_listed_with_its_fault_and_the_states_that_it_holds_for() {
    let limits = Limits { report: Duration::from_secs(299), ..limits() };
    let lines: Vec<_> = limits
        .by_fault()
        .into_iter()
        .map(|FaultLimit { fault, item, state, limit }| {
            format!("{fault} {} {} {}", item.unwrap_or("-"), state.unwrap_or("-"), limit.as_secs())
        })
        .collect();
    let of = |fault: &str| {
        let of = lines.iter().filter_map(|line| line.strip_prefix(fault)?.strip_prefix(' '));
        of.collect::<Vec<_>>().join(", ")
    };
    let (hour, day) = (3_600, 86_400);
    assert_eq!(
        of("stuck_state"),
        format!(
            "- pending {hour}, - estimating {hour}, - provisioning {}, - downloading {day}, - processing {day}, \
             - storing {day}, - recording {}, - notify {hour}",
            6 * hour,
            2 * hour
        )
    );
    assert_eq!(
        of("leaked_lock"),
        format!(
            "job pending 600, job estimating {hour}, job provisioning {}, job downloading {day}, job processing {day}, \
             job storing {day}, job recording {}, job notify {hour}, batch pending {hour}, batch processing {}, \
             batch reporting {hour}, batch update-reporting {hour}, batch failed {hour}, request pending 600, \
             request processing {day}, object - {}",
            2 * day,
            2 * hour,
            12 * hour,
            2 * hour
        )
    );
    for (fault, limits) in [
        ("leaked_storage_lock", "- - 60"),
        ("overdue_batch", "report - 299, processing - 14400"),
        ("contradicting_batch", "- - 299"),
        ("no_daemon", "- - 301"),
        ("held_collection_backlog", "- - 303"),
        ("forgotten_pause", "- - 86400"),
    ] {
        assert_eq!(of(fault), limits, "{fault}");
    }
    assert_eq!(lines.len(), 8 + 16 + 7);
}

#[test]
fn a_limit_by_state_is_kept_for_each_state_and_for_those_that_are_not_known() {
    let seconds = Duration::from_secs;
    let mut limits = StateLimits::new(seconds(1), &[(AccessState::Failed, seconds(2))]);
    limits.set(AccessState::Pending, seconds(3));
    let all = AccessState::ALL.iter().copied().map(Some).chain([None]);
    assert_eq!(all.map(|state| limits.get(state).as_secs()).collect::<Vec<_>>(), [3, 1, 1, 2, 1, 1]);
    let counted = StateLimits::<AccessState>::of(seconds(9), |state| seconds(state.index() as u64));
    assert_eq!(counted.get(Some(AccessState::Failed)), seconds(3));
    assert_eq!(counted.get(None), seconds(9));
}

#[test]
fn a_duration_beyond_all_instants_is_cut() {
    assert_eq!([Duration::from_micros(2_500), Duration::MAX].map(ms), [2, i64::MAX]);
}
