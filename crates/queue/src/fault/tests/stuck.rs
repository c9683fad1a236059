//! Why no job leaves Provisioning.

use std::collections::BTreeSet;

use super::*;
use Provisioning as P;

#[test]
fn jobs_stay_in_provisioning_for_want_of_space_a_grant_or_a_daemon() {
    for (locked, space, is_served, cause) in [
        (&[][..], None, false, P::NoDaemon),
        (&[], Some(10), false, P::NoDaemon),
        (&[], None, true, P::WaitingForGrant),
        (&[], Some(10), true, P::WaitingForGrant),
        (&[1], None, false, P::Locked),
        (&[1], None, true, P::Locked),
        (&[9, 10], Some(10), true, P::LockedWithSpace),
        (&[9, 11], Some(10), false, P::WaitingForSpace),
        // Nothing may be written where the threshold is exceeded already.
        (&[0], Some(-1), true, P::WaitingForSpace),
        (&[u64::MAX], Some(i64::MAX - 1), false, P::WaitingForSpace),
    ] {
        let found = Provisioning::cause(locked.iter().copied(), space, is_served);
        assert_eq!(found, cause, "{locked:?} within {space:?}, {is_served}");
    }
}

#[test]
fn each_cause_is_shown_and_fixed_in_its_own_words() {
    let all = [P::WaitingForSpace, P::LockedWithSpace, P::Locked, P::WaitingForGrant, P::NoDaemon];
    for words in [all.map(Provisioning::how), all.map(Provisioning::fix)] {
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), all.len(), "{words:?}");
        assert!(words.iter().all(|words| words.ends_with('.')), "{words:?}");
    }
    assert!(P::WaitingForSpace.how().contains("wait for working storage"));
    assert!(P::WaitingForSpace.fix().starts_with("Free or enlarge working storage"));
}
