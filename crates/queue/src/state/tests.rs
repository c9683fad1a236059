//! The tables of states, pair by pair.

use super::*;

/// The transition tables of the design, written out pair by pair: rows are `from`, columns `to` in the order of
/// `ALL`; `+` by anyone, `a` by an operator only, `w` by a withdrawal only, `b` by either of the two, `.` never.
fn check<S: State>(table: &[&str]) {
    assert_eq!(table.len(), S::ALL.len());
    for (from, row) in S::ALL.iter().zip(table) {
        let cells: Vec<char> = row.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(cells.len(), S::ALL.len(), "row {from}");
        for (to, cell) in S::ALL.iter().zip(cells) {
            let by = |authority| from.allows(*to, authority);
            let found = match (by(Authority::Daemon), by(Authority::Operator), by(Authority::Withdrawal)) {
                (true, true, true) => '+',
                (false, true, false) => 'a',
                (false, false, true) => 'w',
                (false, true, true) => 'b',
                (false, false, false) => '.',
                _ => '!',
            };
            assert_eq!(found, cell, "{from} -> {to}");
            assert_eq!(from.may_become(*to), cell != '.', "{from} -> {to}");
            assert_eq!(from.is_admin(*to), matches!(cell, 'a' | 'b'), "{from} -> {to}");
        }
    }
}

#[test]
fn every_pair_of_states_is_allowed_or_refused_as_designed() {
    //                 Pe Es Pv Dl Ps St Rc No Co Fa He De
    check::<JobState>(&[
        "              .  +  .  .  .  .  .  .  .  +  +  w",
        "              .  .  +  .  .  .  .  .  .  +  .  .",
        "              .  .  .  +  .  .  .  .  .  +  .  .",
        "              .  .  .  .  +  .  .  .  .  +  .  .",
        "              .  .  .  .  .  +  .  .  .  +  .  .",
        "              .  .  .  .  .  .  +  .  .  +  .  .",
        "              .  .  .  .  .  .  .  +  .  +  .  .",
        "              .  .  .  .  .  .  .  .  +  +  .  .",
        "              .  .  .  .  .  .  .  .  .  .  .  .",
        "              a  a  a  a  a  a  a  a  .  .  .  a",
        "              a  .  .  .  .  .  .  .  .  .  .  b",
        "              .  .  .  .  .  .  .  .  .  .  .  .",
    ]);
    //                   Pe Pr Re Up Co Fa He De
    check::<BatchState>(&[
        "                .  +  .  .  .  .  +  w",
        "                .  .  +  .  .  +  .  w",
        "                .  .  .  .  +  +  .  w",
        "                .  .  .  .  +  +  .  .",
        "                .  .  .  .  .  .  .  .",
        "                .  .  .  a  .  .  .  a",
        "                a  .  .  .  .  .  .  b",
        "                .  .  .  .  .  .  .  .",
    ]);
    //                    Pe Pr Co Fa De
    check::<AccessState>(&[
        "                 .  +  .  .  .",
        "                 .  .  +  +  .",
        "                 .  .  .  .  .",
        "                 a  +  .  .  a",
        "                 .  .  .  .  .",
    ]);
}

#[test]
fn a_failed_job_resumes_after_its_last_success() {
    use JobState as S;
    let rows = [
        (Some(S::Pending), S::Estimating),
        (Some(S::Estimating), S::Provisioning),
        (Some(S::Provisioning), S::Downloading),
        (Some(S::Downloading), S::Processing),
        (Some(S::Processing), S::Storing),
        (Some(S::Storing), S::Recording),
        (Some(S::Recording), S::Notify),
        (Some(S::Notify), S::Pending),
        (Some(S::Held), S::Pending),
        (Some(S::Failed), S::Pending),
        (None, S::Pending),
    ];
    for (last, expected) in rows {
        assert_eq!(S::resume_after(last), expected, "after {last:?}");
    }
}

#[test]
fn daemons_work_on_the_success_path_only_and_each_of_its_states_has_limits() {
    let worked_on: Vec<_> = JobState::ALL.iter().filter(|state| state.is_worked_on()).map(|s| s.label()).collect();
    let path = ["pending", "estimating", "provisioning", "downloading", "processing", "storing", "recording", "notify"];
    assert_eq!(worked_on, path);
    let hours = |limit: Duration| limit.as_secs_f64() / 3600.0;
    let limits: Vec<_> = JobState::ALL
        .iter()
        .map(|state| (hours(state.default_lock_limit()), hours(state.default_stuck_limit())))
        .collect();
    let day = (24.0, 24.0);
    let sixth = 1.0 / 6.0;
    let path = [(sixth, 1.0), (1.0, 1.0), (48.0, 6.0), day, day, day, (2.0, 2.0), (1.0, 1.0)];
    assert_eq!(limits, [&path[..], &[day; 4]].concat());
}

#[test]
fn a_pause_stops_every_state_that_daemons_work_on_but_recording() {
    for state in JobState::ALL {
        assert_eq!(state.continues_when_paused(), *state == JobState::Recording, "{state}");
    }
    assert!(!BatchState::ALL.iter().any(|state| state.continues_when_paused()));
}

#[test]
fn a_job_has_content_from_downloading_on_until_it_is_not_worked_on_any_more() {
    let of = |is: fn(JobState) -> bool| -> Vec<_> {
        JobState::ALL.iter().filter(|state| is(**state)).map(|state| state.label()).collect()
    };
    assert_eq!(of(JobState::has_content), ["downloading", "processing", "storing", "recording", "notify"]);
    assert_eq!(of(JobState::is_downloaded), ["processing", "storing", "recording", "notify"]);
}

#[test]
fn a_job_is_underway_where_daemons_work_on_it_and_nowhere_else() {
    for state in JobState::ALL {
        let is_underway = state.phase() == JobPhase::Underway;
        assert_eq!(
            (is_underway, state.default_limits().is_some()),
            (state.is_worked_on(), state.is_worked_on()),
            "{state}"
        );
    }
}

#[test]
fn a_job_has_failed_in_the_state_after_its_last_success_and_in_notify_behind_that() {
    use JobState as S;
    for (last, expected) in [
        (None, S::Pending),
        (Some(S::Storing), S::Recording),
        (Some(S::Recording), S::Notify),
        (Some(S::Notify), S::Notify),
    ] {
        assert_eq!(S::failed_in(last), expected, "after {last:?}");
    }
}

#[test]
fn a_step_aside_or_back_is_no_success() {
    use JobState as S;
    assert!(S::Pending.is_success_before(S::Estimating) && S::Notify.is_success_before(S::Completed));
    for aside in [S::Failed, S::Held, S::Deleted] {
        assert!(!S::Pending.is_success_before(aside) && !aside.is_success_before(S::Pending), "{aside}");
    }
}

#[test]
fn each_state_has_one_folder_of_references() {
    let names = JobOutcome::ALL.map(JobOutcome::folder);
    assert_eq!(names, ["batch-processing", "batch-failed", "batch-completed", "batch-deleted"]);
    for outcome in JobOutcome::ALL {
        assert_eq!(JobOutcome::from_folder(outcome.folder()), Some(outcome));
    }
    assert_eq!(JobOutcome::from_folder("batch-teleporting"), None);
    for state in JobState::ALL.iter().copied() {
        let expected = match state {
            JobState::Failed => JobOutcome::Failed,
            JobState::Completed => JobOutcome::Completed,
            JobState::Deleted => JobOutcome::Deleted,
            _ => JobOutcome::Processing,
        };
        assert_eq!(state.outcome(), expected, "{state}");
    }
}

#[test]
fn a_jump_along_the_success_path_names_each_step() {
    use JobState as S;
    assert_eq!(S::Downloading.steps_to(S::Recording), [S::Processing, S::Storing, S::Recording]);
    assert_eq!(S::Storing.steps_to(S::Storing), []);
    assert_eq!(S::Storing.steps_to(S::Processing), []);
    assert_eq!(S::Failed.steps_to(S::Completed), []);
}

#[test]
fn a_status_is_read_in_every_spelling_and_written_in_one() {
    for text in ["UpdateReporting", "updatereporting", "update-reporting", "UPDATE-REPORTING"] {
        assert_eq!(BatchState::from_any(text), Some(BatchState::UpdateReporting), "{text}");
    }
    assert_eq!(BatchState::from_name("update-reporting"), None);
    assert_eq!(JobState::from_any("Teleporting"), None);
    for (index, state) in JobState::ALL.iter().enumerate() {
        assert_eq!(JobState::from_name(state.name()), Some(*state));
        assert_eq!(state.index(), index);
    }
}
