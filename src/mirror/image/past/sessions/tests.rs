//! A session is kept as long as a record names it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_session_is_forgotten_with_the_last_record_that_names_it(
        steps in proptest::collection::vec((0i64..5, 0u8..3), 0..80),
    ) {
        let mut sessions = Sessions::default();
        let mut plain: BTreeMap<i64, (u16, u32)> = BTreeMap::new();
        for (session, what) in steps {
            match (what, plain.get_mut(&session)) {
                (0, None) if session != 0 => {
                    plain.insert(session, (sessions.take(session), 1));
                }
                (0, Some((at, uses))) => {
                    prop_assert_eq!(sessions.take(session), *at);
                    *uses += 1;
                }
                (1, Some((at, uses))) => {
                    sessions.keep(*at);
                    *uses += 1;
                }
                (2, Some((at, uses))) => {
                    sessions.release(*at);
                    *uses -= 1;
                    if *uses == 0 {
                        plain.remove(&session);
                    }
                }
                // Persistent locks are of no session, and take no place.
                _ => {
                    prop_assert_eq!(sessions.take(0), NO_SESSION);
                    sessions.keep(NO_SESSION);
                    sessions.release(NO_SESSION);
                }
            }
            prop_assert_eq!(sessions.by_session.len(), plain.len());
            prop_assert!(plain.iter().all(|(session, (at, _))| sessions.get(*at) == Some(*session)));
            prop_assert_eq!(sessions.get(NO_SESSION), None);
        }
        let pinned = sessions.pinned();
        let mut heir = pinned.clone();
        heir.unpin(&sessions);
        prop_assert!(heir.by_session.is_empty(), "no record names them");
        let mut heir = pinned;
        let kept = plain.iter().next().map(|(session, (at, _))| (*session, *at));
        kept.inspect(|(_, at)| heir.keep(*at));
        heir.unpin(&sessions);
        prop_assert!(heir.by_session.keys().copied().eq(kept.map(|(session, _)| session)));
    }
}

#[test]
fn where_there_is_no_room_for_a_session_none_is_named() {
    let mut sessions = Sessions::default();
    let places: Vec<_> = (1..=i64::from(NO_SESSION)).map(|session| sessions.take(session)).collect();
    assert!(places.iter().all(|at| *at < NO_SESSION) && places.is_sorted());
    assert_eq!(sessions.take(-1), NO_SESSION);
    assert_eq!(sessions.take(7), places[6], "it has its place");
    sessions.release(places[3]);
    assert_eq!((sessions.take(-1), sessions.take(-2)), (places[3], NO_SESSION));
}
