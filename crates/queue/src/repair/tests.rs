//! Whether a fault is there to be repaired, and under which lock.

use super::*;
use crate::fault::Since;
use crate::testing::{request, stat};

fn options(limits: &Limits, now_ms: i64, even_if_locked: bool) -> RepairOptions<'_> {
    RepairOptions { limits, now: instant(now_ms), even_if_locked }
}

/// Whether the fault counts at 5 s, of findings that count from these instants on.
fn first_of(faults: &[Fault], findings: &[(Fault, i64)]) -> Result<Fault, String> {
    let limits = Limits::default();
    let evaluate = |_: &Limits, sink: &mut dyn FnMut(FaultFinding<'_>)| {
        for (fault, not_before_ms) in findings {
            let (fault, not_before_ms) = (*fault, *not_before_ms);
            let nodes = &Vec::new;
            sink(FaultFinding {
                fault,
                how: "",
                fix: None,
                since: Since::Seen(None),
                lasting_ms: 0,
                not_before_ms,
                mark: 0,
                nodes,
            });
        }
    };
    let found = options(&limits, 5_000, false).first_of(faults, &Path::Jobs, evaluate);
    found.map_err(|error| error.to_string())
}

#[test]
fn a_fault_is_repaired_when_it_is_there_and_old_enough() {
    use Fault::{LeakedLock, StrayEntry, UnfinishedCreation, UnloadableJob};
    let shown = [StrayEntry, LeakedLock].map(|fault| (fault, i64::MIN));
    assert_eq!(first_of(&[LeakedLock], &shown), Ok(LeakedLock));
    assert_eq!(first_of(&[LeakedLock], &[(LeakedLock, 5_000)]), Ok(LeakedLock));
    let young = "/jobs: it does not count as leaked_lock before 1970-01-01T00:00:05.001Z";
    assert_eq!(first_of(&[LeakedLock], &[(LeakedLock, 5_001)]).unwrap_err(), young);
    // Of several, the first that counts.
    for findings in [[(LeakedLock, 9_000), (LeakedLock, 4_000)], [(LeakedLock, 4_000), (LeakedLock, 9_000)]] {
        assert_eq!(first_of(&[LeakedLock], &findings), Ok(LeakedLock));
    }
    let gone = "/jobs does not have the fault unloadable_job now, so there is nothing to repair";
    let broken = [UnloadableJob, UnfinishedCreation];
    assert_eq!(first_of(&broken, &shown).unwrap_err(), gone);
    assert_eq!(first_of(&broken, &[(UnfinishedCreation, 0)]), Ok(UnfinishedCreation));
    assert_eq!(first_of(&broken, &[(UnfinishedCreation, 0), (UnloadableJob, i64::MIN)]), Ok(UnloadableJob));
    assert_eq!(first_of(&broken, &[(UnloadableJob, 0), (UnfinishedCreation, 0)]), Ok(UnloadableJob));
    let limits = Limits::default();
    let nothing = |_: &Limits, _: &mut dyn FnMut(FaultFinding<'_>)| {};
    assert!(options(&limits, 0, false).confirm(LeakedLock, &Path::Jobs, nothing).is_err());
}

#[test]
fn what_is_written_is_written_under_a_lock_of_its_own_or_alone_where_that_is_requested() {
    let limits = Limits::default();
    let path = Path::parse("/jobs/jid0000000001/lock");
    let changes = || {
        let mut changes = Transaction::new();
        changes.delete(Path::Jobs, None);
        changes
    };
    let under = |lock: Option<&Lock>, even_if_locked| {
        let transaction = options(&limits, 0, even_if_locked).under_lock(path.clone(), lock.cloned(), changes());
        transaction.map(|transaction| transaction.to_string())
    };
    let own = format!("create {path} (ephemeral)\ndelete /jobs\ndelete {path}\n");
    assert_eq!([under(None, false), under(None, true)], [Ok(own.clone()), Ok(own)]);
    let lock = Lock::from_stat(path.clone(), &stat());
    assert_eq!(under(Some(&lock), true), Ok("delete /jobs\n".to_owned()));
    let kind = ConflictKind::Locked { session: None, since: lock.since };
    assert_eq!(under(Some(&lock), false), Err(Error::conflict(path.clone(), kind)));
}

#[test]
fn a_repair_names_the_data_that_it_does_not_keep() {
    let repair = Repair::new(Fault::StrayEntry, Path::Jobs, "Removes it.", Transaction::new());
    assert_eq!((repair.summary.as_str(), repair.loses.len()), ("Removes it.", 0));
    assert_eq!(repair.losing([(Path::Jobs, vec![1])]).loses, [(Path::Jobs, vec![1])]);
}

#[test]
fn a_request_is_made_loadable_where_its_status_names_its_state() {
    use crate::path::RequestNode::{Status, Token};
    let now = Timestamp::UNIX_EPOCH;
    for (nodes, is_repairable) in [
        (&[(Token, "{}"), (Status, r#"{"status":"Failed"}"#)][..], true),
        (&[(Token, "{}"), (Status, r#"{"status":"failed"}"#)], true),
        (&[(Status, r#"{"status":"failed"}"#)], true),
        (&[(Token, "[]"), (Status, r#"{"status":"Failed"}"#)], false),
        (&[(Token, "{}"), (Status, "{}")], false),
        (&[(Token, "{}")], false),
    ] {
        assert_eq!(request::is_repairable(&request(nodes), now), is_repairable, "{nodes:?}");
    }
}
