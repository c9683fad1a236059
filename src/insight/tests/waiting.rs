//! Jobs that wait for working storage, for another attempt, or for those who see their files.

use super::*;

#[test]
fn a_job_in_provisioning_knows_how_full_storage_would_be_with_it() {
    let mut waiting = job(JobState::Provisioning);
    waiting.space_needed_bytes = 6 << 40;
    waiting.lock = Some(lock(4));
    assert_eq!(
        of_job(&waiting),
        [
            "stopped: It is waiting for working storage.",
            "waiting_for_space: With its 6.0 TiB, working storage would be 91 % full; the limit is 80 %. | 85 TiB of 100 TiB \
             used. The daemons look again every five minutes. Locked for 1.5 h by session 0x1000a3f, which also holds 4 \
             other locks.",
        ]
    );
    let unseen = lines(&diagnose_job(&waiting, None, now()));
    assert_eq!(
        unseen[..2],
        [
            "waiting: It is locked by a daemon.",
            "locked: It is locked by a daemon; this server cannot tell whether it is waiting for working storage. | Locked for 1.5 h \
             by session 0x1000a3f, which also holds 4 other locks.",
        ]
    );
    let roomy = Volume { free_bytes: 60 << 40, left_bytes: 40 << 40, ..volume() };
    assert_eq!(diagnose_job(&waiting, Some(&roomy), now()).verdict, Verdict::Moving);
}

#[test]
fn a_job_that_our_daemons_gave_back_knows_when_it_is_tried_again() {
    let mut waiting = job(JobState::Downloading);
    let retry = Retry {
        version: 3,
        since: before(12 * MINUTE),
        attempts: 2,
        not_before: now() + jiff::SignedDuration::from_secs(38),
        waits_since: None,
        why: "503 from host.example.org\u{202e}".to_owned(),
    };
    waiting.retry = Some(retry.clone());
    assert_eq!(
        of_job(&waiting),
        [
            "waiting: It is waiting for another attempt.",
            "waiting_for_retry: The last attempt failed: “503 from host.example.org\\u{202e}”. It is tried again in 38 s. | \
             2 attempts have failed in 12 min. If attempts still fail after --retry.within, the job fails.",
        ]
    );
    let busy = "all connections to host.example.org:443 are in use (6 at most)".to_owned();
    waiting.retry = Some(Retry { attempts: 0, why: busy, ..retry.clone() });
    assert_eq!(
        of_job(&waiting)[1],
        "waiting_for_retry: It has not been tried yet: “all connections to host.example.org:443 are in use (6 at most)”. It \
         is tried again in 38 s. | It has waited for 12 min."
    );
    let room = "waits for working storage: it needs 900 bytes in all".to_owned();
    let since = Some(before(3 * HOUR));
    waiting.retry = Some(Retry { since: before(1), attempts: 1, waits_since: since, why: room, ..retry.clone() });
    assert_eq!(
        of_job(&waiting),
        [
            "waiting: It is waiting until working storage is granted to it.",
            "waiting_for_grant: It has been waiting for 3.0 h for more working storage than it was granted. | “waits for \
             working storage: it needs 900 bytes in all”. There is no time limit for this wait; if all jobs with grants are waiting for more, the youngest of them fails.",
        ]
    );
    waiting.retry = Some(Retry { not_before: before(1), attempts: 1, ..retry });
    assert!(of_job(&waiting)[1].contains("The next attempt is due. | 1 attempt has failed in 12 min."));
    let mut last = job(JobState::Pending);
    (last.expansion, last.place) = (Some(1_200), None);
    assert_eq!(
        of_job(&last),
        [
            "waiting: It is waiting for the other jobs of its batch to be created.",
            "being_created: The jobs of its batch are being created, 1,200 so far. | It is the last of them, so it gets its queue entry after all the others.",
        ]
    );
}

#[test]
fn a_job_without_a_grant_knows_what_others_were_granted() {
    let mut waiting = job(JobState::Provisioning);
    let state = waiting.in_state.as_mut().unwrap();
    (state.workers, state.locked) = (1, 0);
    state.granted = Some(Granted { jobs: 2, bytes: 3 << 30, since: None });
    waiting.place.as_mut().unwrap().1 = QueuePosition::default();
    let granted = of_job(&waiting);
    assert_eq!(
        granted[..2],
        [
            "waiting: It is waiting until working storage is granted to it.",
            "waiting_for_grant: It waits until working storage is granted to it: 1.0 GiB. | 2 jobs have grants of 3.0 GiB \
             together. 85 TiB of 100 TiB used, limit 80 %.",
        ]
    );
    waiting.space_needed_bytes = 0;
    waiting.in_state.as_mut().unwrap().granted = None;
    assert!(of_job(&waiting)[1].contains("an unknown size, for which the daemon counts --space.unknown. | No job has"));
}

#[test]
fn a_state_without_workers_says_so_where_the_daemons_are_ours() {
    let mut first = job(JobState::Pending);
    first.place.as_mut().unwrap().1 = QueuePosition::default();
    let state = first.in_state.as_mut().unwrap();
    (state.locked, state.is_ours, state.unserved) = (0, true, Some(before(40)));
    let sentence = "no_workers: No process of queuekeeper has workers for Pending. | None of its 100 jobs is locked. No daemon has \
                    been seen for 40 s.";
    assert_eq!(
        of_job(&first)[..2],
        ["stopped: It is waiting for a daemon, but no process has workers for Pending.", sentence]
    );
    let next = "next_in_line: It is first in its state, and no process of queuekeeper has workers for Pending.";
    assert!(of_job(&first)[2].starts_with(next), "{:?}", of_job(&first));
    let of_state = |state: &StateSituation| lines(&diagnose_state(state, Some(&volume()), now()));
    let state = first.in_state.unwrap();
    assert_eq!(of_state(&state), ["stopped: No job has left Pending for 30 s.", sentence]);
    let young = StateSituation { oldest: Some(before(20)), ..state.clone() };
    assert_eq!(of_state(&young)[1], sentence, "since when no daemon was seen is no question of its jobs");
    let is_silent = |change: fn(&mut StateSituation)| {
        let mut state = state.clone();
        change(&mut state);
        !of_state(&state).iter().any(|line| line.starts_with("no_workers"))
    };
    assert!(is_silent(|state| state.is_ours = false), "daemons of other programs are seen while they hold a lock");
    assert!(is_silent(|state| state.workers = 1));
    assert!(is_silent(|state| state.unserved = Some(before(14))), "a process may just be restarted");
    assert!(is_silent(|state| state.oldest = Some(before(14))), "its first job has just come");
    assert!(is_silent(|state| state.pause = Some(PauseSituation::default())), "the pause is why");
}

#[test]
fn a_job_whose_files_no_process_sees_says_on_which_volume_they_are() {
    let mut waiting = job(JobState::Processing);
    waiting.unseen_volume = Some("a-uuid".into());
    assert_eq!(
        of_job(&waiting),
        [
            "stopped: No running daemon has access to the volume of its files.",
            "volume_unseen: Its files are on volume “a-uuid”, to which no running process that takes jobs from Processing has access. | \
             Processes on another volume do not take the job. The UUID of a volume is in the file .queuekeeper-volume in its top directory.",
        ]
    );
}

#[test]
fn a_state_whose_jobs_get_no_grants_says_so() {
    let mut waiting = state(JobState::Provisioning);
    (waiting.workers, waiting.jobs, waiting.locked, waiting.space_needed_bytes) = (1, 7, 0, 3 << 30);
    waiting.granted = Some(Granted { jobs: 2, bytes: 5 << 30, since: None });
    let of_state = |state: &StateSituation| lines(&diagnose_state(state, Some(&volume()), now()));
    assert_eq!(
        of_state(&waiting),
        [
            "stopped: No job has left Provisioning for 30 s.",
            "waiting_for_grant: 7 jobs wait until working storage is granted to them; known needs are 3.0 GiB. | 2 jobs have \
             grants of 5.0 GiB together. 85 TiB of 100 TiB used, limit 80 %.",
        ]
    );
    let as_free = of_state(&waiting);
    (waiting.locked, waiting.looked_at) = (7, 7);
    assert_eq!(of_state(&waiting), as_free, "a daemon that only looks at a job is of no account");
    waiting.looked_at = 0;
    waiting.locked = 0;
    let does_not_wait = |change: fn(&mut StateSituation)| {
        let mut state = waiting.clone();
        change(&mut state);
        !of_state(&state).iter().any(|line| line.starts_with("waiting_for_grant"))
    };
    assert!(does_not_wait(|state| state.flow.last_left = Some(before(1))), "one left a moment ago");
    assert!(does_not_wait(|state| state.workers = 0), "daemons in Java grant nothing");
    assert!(does_not_wait(|state| state.locked = 7), "none is left behind");
    assert!(does_not_wait(|state| state.granted = Some(Granted::default())), "nothing is in the way");
    assert!(does_not_wait(|state| state.pause = Some(PauseSituation::default())), "the pause is why");
}
