//! What the verdict says in each state of the queue.

use super::*;
use crate::insight::Diagnosis;
use crate::metrics::working_storage::Space;
use crate::mirror::{Freshness, PauseSituation};
use crate::views::overview::{Stopped, states};

fn now() -> Timestamp {
    "2026-03-02T18:17:05Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_secs(seconds)
}

/// So many jobs in states, of which so many are locked; the others have waited for three minutes.
fn sentence_of(jobs: &[(JobState, u64, u64)], recent: &Recent, freshness: &Freshness) -> (VerdictKind, String) {
    sentence_after(180, jobs, recent, freshness)
}

fn sentence_after(
    waits: i64,
    jobs: &[(JobState, u64, u64)],
    recent: &Recent,
    freshness: &Freshness,
) -> (VerdictKind, String) {
    let mut summary = Summary::default();
    for (state, count, locked) in jobs {
        let figures = summary.jobs.get_mut(Some(*state));
        (figures.count, figures.locked, figures.oldest_unlocked) =
            (*count, *locked, (count > locked).then(|| ago(waits)));
    }
    let status = Status::new(freshness, "zk1:2181".to_owned(), now());
    let verdict = verdict(&status, &summary, &states::all(&summary, recent), recent, now());
    let (before, after) = (&*verdict.around.0, &*verdict.around.1);
    let time = verdict.sentence.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).unwrap();
    let untimed =
        [FOR, WAITS].iter().fold(verdict.sentence.clone(), |text, what| text.replace(&format!("{what}{time}"), ""));
    assert_eq!(verdict.title, untimed);
    (verdict.kind, verdict.sentence)
}

fn synced() -> Freshness {
    Freshness { session: Some("0x1".to_owned()), last_walk: Some(ago(999)), ..Freshness::default() }
}

fn completing(count: u64) -> Recent {
    let mut recent = Recent::default();
    recent.flow.completed_5m = Pace { count, over: Duration::from_mins(5) };
    recent.flow.completed_1h = Pace { count: count * 12, over: Duration::from_hours(1) };
    recent
}

fn stopped(state: JobState, kind: CauseKind, sentence: &str) -> Stopped {
    let cause = Cause {
        kind,
        sentence: sentence.to_owned(),
        evidence: String::new(),
        fix: None,
        since: None,
        items: Vec::new(),
        more: 0,
    };
    let diagnosis =
        Diagnosis { verdict: crate::insight::Verdict::Stopped, headline: String::new(), causes: vec![cause] };
    Stopped { state, since: Some(ago(52)), diagnosis }
}

#[test]
fn the_queue_as_a_whole_is_in_one_sentence() {
    use JobState::{Completed, Downloading, Failed, Held, Pending, Provisioning};
    let waiting = [(Pending, 400, 1), (Downloading, 5, 2), (Completed, 9, 0)];
    let of = |jobs: &[_], recent: &Recent| sentence_of(jobs, recent, &synced());
    let is = |expected: (VerdictKind, &str), found: (VerdictKind, String)| {
        assert_eq!((expected.0, expected.1), (found.0, &*found.1));
    };
    is((VerdictKind::Flowing, "Flowing: 4,500 jobs/h, oldest wait 3 min"), of(&waiting, &completing(377)));
    is(
        (VerdictKind::Flowing, "Flowing: 405 jobs under way, none completed recently, oldest wait 3 min"),
        of(&waiting, &completing(0)),
    );
    is(
        (VerdictKind::Slow, "Slow: 405 jobs under way, none completed recently, oldest wait 20 min"),
        sentence_after(1_200, &waiting, &completing(0), &synced()),
    );
    // At one in 0.8 s, fifteen seconds without one may be chance, and sixteen are not.
    let stopped_for = |seconds| {
        let mut recent = completing(377);
        recent.flow.states.get_mut(Some(JobState::Notify)).seen_left = Some(ago(seconds));
        of(&waiting, &recent)
    };
    is((VerdictKind::Flowing, "Flowing: 4,500 jobs/h, oldest wait 3 min"), stopped_for(15));
    is((VerdictKind::Slow, "Slow: 405 jobs under way, none completed recently, oldest wait 3 min"), stopped_for(16));
    // A large object takes its time.
    is(
        (VerdictKind::Flowing, "Flowing: 1 job under way, none completed recently"),
        sentence_after(86_400, &[(Downloading, 1, 1)], &completing(0), &synced()),
    );
    let mut begun = Recent::default();
    begun.flow.completed_1h = Pace { count: 1, over: Duration::from_secs(12) };
    is((VerdictKind::Flowing, "Flowing: 1 job completed in 12 s, oldest wait 3 min"), of(&waiting, &begun));
    is((VerdictKind::Unknown, "405 jobs under way, oldest wait 3 min"), of(&waiting, &Recent::default()));
    // Many that completed just now do not show that more do: the last ones may have before a stall.
    let mut looked = Recent::default();
    looked.flow.states.get_mut(Some(JobState::Notify)).last_left = Some(ago(25));
    is(
        (VerdictKind::Unknown, "405 jobs under way, oldest wait 3 min; the last one completed 25 s ago"),
        of(&waiting, &looked),
    );
    assert_eq!(VerdictKind::Unknown.health(), Health::Warn);
    is(
        (VerdictKind::Idle, "Idle: no job is waiting or in progress"),
        of(&[(Completed, 9, 0), (Failed, 2, 0), (Held, 1, 0)], &completing(0)),
    );

    let mut full = completing(375);
    full.stopped.push(stopped(Provisioning, CauseKind::PoolFull, "5 jobs fill it."));
    let space = |free_bytes| Some((0.8, Space { size_bytes: 100, free_bytes }));
    full.storage = space(14);
    is(
        (VerdictKind::Stalled, "Stalled in Provisioning for 52 s: working storage is full (86 %, limit 80 %)"),
        of(&waiting, &full),
    );
    full.storage = space(28);
    is(
        (
            VerdictKind::Stalled,
            "Stalled in Provisioning for 52 s: its jobs need more working storage than is left (72 %, limit 80 %)",
        ),
        of(&waiting, &full),
    );
    // The state farthest on the way is named: those before it may wait for it.
    full.stopped.push(stopped(Downloading, CauseKind::HeadBlocked, "The entry 05-jid0000000001 blocks Downloading."));
    is(
        (
            VerdictKind::Stalled,
            "Stalled in Downloading for 52 s: the entry 05-jid0000000001 blocks Downloading (and 1 earlier state)",
        ),
        of(&waiting, &full),
    );

    let no_daemon = |state| stopped(state, CauseKind::Fault(Fault::NoDaemon), "No daemon takes jobs from it.");
    let mut idle = completing(0);
    idle.stopped.extend([no_daemon(Pending), no_daemon(Downloading)]);
    let unlocked = [(Pending, 400, 0), (Downloading, 5, 0)];
    is((VerdictKind::NoDaemon, "No daemon has taken a job for 52 s: 405 jobs wait"), of(&unlocked, &idle));
    assert_eq!(of(&waiting, &idle).0, VerdictKind::Stalled, "one is being worked on");

    idle.pauses.push((QueueName::Ingest, PauseSituation { since: Some(ago(300)), ..PauseSituation::default() }));
    is((VerdictKind::Paused, "Paused for 5 min: only the inventory daemon takes jobs"), of(&waiting, &idle));

    let stale = Freshness { stale_since: Some(ago(40)), ..synced() };
    is(
        (VerdictKind::Stale, "Not up to date for 40 s: figures are from 2026-03-02 18:16:25 UTC"),
        sentence_of(&waiting, &idle, &stale),
    );
    is(
        (VerdictKind::Disconnected, "Not connected to ZooKeeper for 40 s: figures are from 2026-03-02 18:16:25 UTC"),
        sentence_of(&waiting, &idle, &Freshness { session: None, ..stale.clone() }),
    );
}
