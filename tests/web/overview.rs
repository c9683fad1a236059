//! What the overview says of how the queue moves.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper::alerts::Foreign;
use queuekeeper::insight::{Cause, CauseKind, Diagnosis, Forecast, Verdict};
use queuekeeper::mirror::failures::FailureGroup;
use queuekeeper::mirror::lists::BatchDetail;
use queuekeeper::mirror::{
    Batch, ByState, Flow, Freshness, History, Pace, PauseSituation, Point, Rates, StateFlow, Summary,
};
use queuekeeper::web::pages::{OpenBitErrors, Recent, Stopped};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::{BatchId, JobId};
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::record::MailNote;
use queuekeeper_queue::state::{BatchState, JobState, State as _};

use super::page::{page_of, text};
use crate::support::figures::{self, ago};

fn flow(left_1h: u64, last_left: i64) -> StateFlow {
    StateFlow {
        left_5m: Pace { count: left_1h / 12, over: Duration::from_mins(5) },
        left_1h: Pace { count: left_1h, over: Duration::from_hours(1) },
        last_left: Some(ago(last_left)),
        seen_left: Some(ago(last_left)),
        seen_passed: Some(ago(last_left)),
    }
}

/// A point that many minutes ago with as many jobs in Pending.
fn point(minutes: i64, pending: u64) -> Point {
    let (mut jobs, mut oldest) = (ByState::default(), ByState::default());
    *jobs.get_mut(Some(JobState::Pending)) = pending;
    *oldest.get_mut(Some(JobState::Pending)) = Some(Duration::from_mins(pending));
    Point {
        at: ago(minutes * 60),
        jobs,
        locked: ByState::default(),
        left_per_second: ByState::default(),
        completed_per_second: pending as f64 / 3600.0,
        failed_per_second: 0.0,
        oldest,
        faults: 0,
        batches_in_progress: 1,
    }
}

fn batch(number: u32, references: [u32; 4], jobs: &[(JobState, u32)]) -> BatchDetail {
    let mut states = ByState::default();
    for (state, count) in jobs {
        *states.get_mut(Some(*state)) = *count;
    }
    let batch = Batch {
        id: BatchId::new(number),
        state: Some(BatchState::Reporting),
        status_text: Arc::default(),
        entered: Some(ago(9_000)),
        status_version: 3,
        message: Arc::default(),
        lock: None,
        uuid: Arc::default(),
        collection: "merritt_demo_content".into(),
        submitter: "<i>uc3user".into(),
        filename: "robbins.checkm".into(),
        title: Arc::default(),
        has_rows: true,
        part_of: "".into(),
        parts: None,
        note: "".into(),
        notification: "".into(),
        rows: None,
        is_acquired: true,
        references: references.map(Some),
    };
    BatchDetail { batch, created: None, jobs: states }
}

fn cause(kind: CauseKind, sentence: &str, fix: Option<&'static str>) -> Cause {
    let (evidence, items) = ("Five jobs fill it.".to_owned(), Vec::new());
    Cause { kind, sentence: sentence.to_owned(), evidence, fix, since: None, items, more: 0 }
}

const HOUR: Duration = Duration::from_hours(1);

fn recent() -> Recent {
    let mut states: ByState<JobState, StateFlow> = ByState::default();
    *states.get_mut(Some(JobState::Pending)) = flow(64, 30);
    *states.get_mut(Some(JobState::Provisioning)) = flow(0, 3_300);
    *states.get_mut(Some(JobState::Downloading)) = flow(12, 3_200);
    let hour = |count| Pace { count, over: Duration::from_hours(1) };
    let rates = |count| Some(Rates { recent: Pace::default(), longer: hour(count), latest: Pace::default() });
    let mut points = vec![None; 6];
    points.extend([Some(point(3, 8)), Some(point(2, 4)), None, Some(point(0, 6))]);
    let diagnosis = Diagnosis {
        verdict: Verdict::Stopped,
        headline: "Provisioning has not moved for 55 min.".to_owned(),
        causes: vec![
            cause(CauseKind::PoolFull, "Five jobs wait for space.", None),
            cause(CauseKind::WaitingForSpace, "Storage is at 91 %.", Some("Free working storage.")),
        ],
    };
    let pause = PauseSituation { since: Some(ago(7_200)), who: "ops@here".into(), why: "a full disk".into() };
    Recent {
        flow: Flow { states, completed_5m: hour(0), completed_1h: hour(212), failed_1h: hour(3) },
        history: History { from: Some(ago(600)), since: Some(ago(180)), step: Duration::from_mins(1), points },
        batches: vec![
            (batch(421, [1_391, 4, 6_120, 0], &[]), rates(1_391), Forecast::Ends(HOUR, HOUR)),
            (batch(418, [0, 37, 2_763, 0], &[]), rates(0), Forecast::NothingLeft),
            (batch(423, [71, 0, 47, 0], &[]), None, Forecast::Unknown),
            (batch(424, [5, 0, 0, 0], &[]), rates(0), Forecast::Still),
            (batch(425, [5, 0, 9, 0], &[(JobState::Held, 1), (JobState::Storing, 4)]), rates(60), Forecast::Held(1)),
            (batch(426, [5, 0, 9, 0], &[]), rates(60), Forecast::Stopped(JobState::Provisioning)),
            (batch(427, [5, 0, 9, 0], &[]), rates(60), Forecast::Paused),
        ],
        batches_in_progress: 9,
        fixes: vec![
            (Fault::LeakedLock, "Break the lock of job 9."),
            (Fault::OrphanEntry, "Delete the entry of job 8."),
        ],
        failed_without_jobs: (0, None),
        held_stores: Vec::new(),
        waiting_mail: None,
        stopped: vec![Stopped { state: JobState::Provisioning, since: Some(ago(3_300)), diagnosis }],
        failures: vec![FailureGroup {
            key: "00000000000000ff".parse().unwrap(),
            last_successful: Some(JobState::Provisioning),
            pattern: "404 for <b>#".to_owned(),
            message: Arc::default(),
            count: 37,
            resumed: 2,
            oldest: Some(ago(6_300)),
            newest: Some(ago(60)),
            jobs: vec![JobId::new(1)],
            batches: vec![(BatchId::new(418), 37)],
            batch_count: 1,
            collections: Vec::new(),
            collection_count: 1,
        }],
        failure_groups: 3,
        held: vec![("demo_<maps>".to_owned(), pause.clone())],
        pauses: vec![(QueueName::Ingest, pause)],
        automation: None,
        foreign: Default::default(),
        storage: None,
        storage_problem: None,
        bit_errors: OpenBitErrors::NotRead,
    }
}

#[test]
fn open_bit_errors_are_urgent_and_lead_to_where_they_are_decided_about() {
    let page = |bit_errors| page_of(figures::live(), Some(figures::full()), &Recent { bit_errors, ..recent() });
    let html = page(OpenBitErrors::Open(2, Some(ago(7_300))));
    let shown = text(&html);
    assert!(shown.contains("2 open bit errors oldest 2.0 h Copies in stores"), "{shown}");
    assert!(html.contains("href=\"./mill/errors\""), "{html}");
    let shown = text(&page(OpenBitErrors::Unknown("the <b>catalogue</b> is away".to_owned())));
    assert!(shown.contains("The number of open bit errors is unknown The &#60;b&#62;catalogue"), "{shown}");
    for none in [OpenBitErrors::NotRead, OpenBitErrors::Open(0, None)] {
        assert!(!text(&page(none)).contains("bit error"));
    }
}

#[test]
fn mail_that_cannot_be_sent_needs_attention_and_says_why() {
    let page = |since| {
        let mail = MailNote { waiting: 3, since: ago(since), why: "<b>refused".to_owned() };
        text(&page_of(figures::live(), Some(figures::full()), &Recent { waiting_mail: Some(mail), ..recent() }))
    };
    let shown = page(7_300);
    assert!(
        shown.contains("3 mails cannot be sent oldest 2.0 h The last attempt failed: &#60;b&#62;refused."),
        "{shown}"
    );
    assert!(!page(3_500).contains("cannot be sent"));
}

#[test]
fn it_tells_how_the_states_move_and_why_one_does_not() {
    let html = page_of(figures::live(), Some(figures::full()), &recent());
    let text = text(&html);
    for reported in [
        "Pending 1,204 oldest 38 min 60 an hour",
        "oldest 3.2 h none for 55 min",
        "Downloading 0 empty for 53 min",
        "Completed 8,930 + 212 last hour",
        "Provisioning has not moved for 55 min since 2026-11-21 09:05:00 UTC",
        "Five jobs wait for space. Storage is at 91 %. Free working storage.",
        "37 jobs failed in Downloading for one reason oldest 1.7 h “404 for &#60;b&#62;#” in batch bid0000000418. 2 were \
         resumed before, and failed again.",
        "4 more jobs failed for other reasons They have 2 different messages.",
        "1,533 under way",
        "access 5 small, 1 large",
    ] {
        assert!(text.contains(reported), "{reported:?} is not in: {text}");
    }
    // The pause is decisive; the window's title and icon say so while the page is behind others.
    assert!(text.contains("Paused for 2.0 h : only the inventory daemon takes jobs"), "{text}");
    assert!(html.contains("<title>Paused: only the inventory daemon takes jobs · queuekeeper</title>"), "{html}");
    assert!(html.contains(r#"type="image/svg+xml" href="./icon/bad-"#), "{html}");
    assert!(html.contains(r#"<li class="step stuck" data-key="provisioning"><a href="./jobs?state=provisioning">"#));
    assert!(html.contains(r#"href="./jobs?group=00000000000000ff""#), "{html}");
    // The state that waits for space says so itself, and what is urgent stands before what is not.
    assert!(!text.contains("jobs wait for space oldest"), "{text}");
    let places =
        ["queue is paused", "Provisioning has not moved", "Queue entry in", "37 jobs failed", "collections are held"];
    assert!(places.iter().map(|place| text.find(place).unwrap()).is_sorted(), "{text}");
}

#[test]
fn it_draws_what_was_seen_with_its_gaps_and_says_it_in_words() {
    let html = page_of(figures::live(), Some(figures::full()), &recent());
    assert_eq!(html.matches("<path class=\"line s0\"").count(), 3);
    // Ten points: the first that is known is the seventh, and a gap begins the line anew.
    assert!(html.contains(r#"<path class="line s0" d="M6.5 14.0L7.5 57.0M9.5 35.5h1"/>"#), "{html}");
    assert!(html.contains(r#"data-values=",,,,,,8,4,,6""#), "{html}");
    for said in [
        "Throughput, completed: lowest 4 an hour, highest 8 an hour, latest 6 an hour",
        "Age, longest time in a state: lowest 4 min, highest 8 min, latest 6 min",
    ] {
        assert!(html.contains(&format!("aria-label=\"{said}\"")), "{html}");
    }
    for large in ["charts/throughput?range=15m", "charts/jobs?range=15m", "charts/age?range=15m"] {
        assert!(html.contains(&format!("href=\"./{large}\"")), "{html}");
    }
    let reported = text(&page_of(figures::live(), Some(figures::full()), &Recent::default()));
    assert!(reported.contains("No data yet") && reported.contains("No batch is in progress."), "{reported}");
    assert!(reported.contains("Last ten minutes 0 s of data so far"), "{reported}");
    assert!(!reported.contains("an hour"), "nothing is known of rates: {reported}");
}

#[test]
fn a_batch_in_progress_says_how_far_it_is_and_when_it_ends() {
    let mut summary = figures::full();
    summary.paused = [None; 3];
    let html = page_of(figures::live(), Some(summary), &recent());
    let text = text(&html);
    for reported in [
        "bid0000000421 robbins.checkm merritt_demo_content · &#60;i&#62;uc3user 6,120 completed, 4 failed, 1,391 to do",
        "6,124 / 7,515 4 failed in about 1.0 h",
        "2,800 / 2,800 37 failed report due",
        "47 / 118 not enough data yet",
        "0 / 5 none finished recently",
        "9 / 14 1 job is Held",
        "9 / 14 Provisioning is stopped",
        "9 / 14 ingest queue paused",
        "2 batches more",
    ] {
        assert!(text.contains(reported), "{reported:?} is not in: {text}");
    }
    assert!(html.contains(r#"<span title="at 2026-11-21 11:00:00 UTC">in about 1.0 h</span>"#), "{html}");
}

#[test]
fn a_fault_of_one_item_has_the_fix_of_that_item() {
    let text = text(&page_of(figures::live(), Some(figures::full()), &recent()));
    assert!(text.contains("Break the lock of job 9.") && !text.contains(Fault::LeakedLock.fix()), "{text}");
    let of_all = Fault::OrphanEntry.fix().replace('\'', "&#39;");
    assert!(text.contains(&of_all) && !text.contains("Delete the entry of job 8."), "of many the fix of all: {text}");
}

#[test]
fn what_others_put_among_our_znodes_is_named_with_what_helps() {
    let found = |path: &str, stops| Foreign {
        path: path.to_owned(),
        what: "is not a decision".to_owned(),
        effect: "It is ignored.",
        stops,
        fix: format!("Delete {path}."),
    };
    let mut foreign: Vec<_> = (0..12).map(|number| found(&format!("/queuekeeper/pending/x{number}"), false)).collect();
    foreign[0] = found("/queuekeeper/pending/<b>", true);
    let recent = Recent { foreign: (foreign, 30), ..recent() };
    let text = text(&page_of(figures::live(), Some(figures::full()), &recent));
    for reported in [
        "/queuekeeper/pending/&#60;b&#62; is not a decision It is ignored. Delete /queuekeeper/pending/&#60;b&#62;.",
        "/queuekeeper/pending/x9 is not a decision",
        "32 more unexpected znodes below /queuekeeper",
    ] {
        assert!(text.contains(reported), "{reported:?} is not in: {text}");
    }
}

/// A state that no daemon takes jobs from.
fn without_daemon(state: JobState) -> Stopped {
    let kind = CauseKind::Fault(Fault::NoDaemon);
    let sentence = format!("No daemon has taken a job from {} for 8 min.", state.name());
    let causes = vec![cause(kind, &sentence, Some(Fault::NoDaemon.fix()))];
    let diagnosis = Diagnosis { verdict: Verdict::Stopped, headline: "It has not moved.".to_owned(), causes };
    Stopped { state, since: Some(ago(480)), diagnosis }
}

#[test]
fn that_no_daemon_takes_jobs_comes_first_and_says_whether_others_are_worked_on() {
    let stopped = vec![without_daemon(JobState::Pending), without_daemon(JobState::Storing)];
    let recent = Recent { stopped, ..recent() };
    let mut idle = figures::full();
    idle.jobs.get_mut(Some(JobState::Pending)).locked = 0;
    let busy = idle.clone();
    for state in JobState::ALL.iter().copied().map(Some).chain([None]) {
        idle.jobs.get_mut(state).locked = 0;
    }
    for (summary, title) in [
        (busy.clone(), "No daemon takes jobs from Pending and Storing oldest 8 min"),
        (idle, "No daemon takes jobs from Pending and Storing; no job is being worked on oldest 8 min"),
    ] {
        let html = page_of(figures::live(), Some(summary), &recent);
        let text = text(&html);
        // The queue is paused, too, and jobs have failed: what stops all of it stands before both.
        let (_, attention) = text.split_once("Needs attention").unwrap();
        assert!(attention.trim_start().starts_with(title), "{attention}");
        for reported in [
            "No daemon has taken a job from Pending for 8 min.",
            "The same holds for the other state.",
            Fault::NoDaemon.fix(),
        ] {
            assert!(attention.contains(reported), "{reported:?} is not in: {attention}");
        }
        assert_eq!(text.matches("No daemon takes jobs").count(), 1, "one line for all states: {text}");
    }
    let one = Recent { stopped: vec![without_daemon(JobState::Storing)], ..recent };
    let text = text(&page_of(figures::live(), Some(busy), &one));
    assert!(text.contains("No daemon takes jobs from Storing for 8 min"), "{text}");
}

#[test]
fn what_a_pause_and_a_hold_explain_is_not_said_again_of_a_state() {
    let cause_of = |kind| cause(kind, "It waits.", Some("Release it."));
    let kinds = [CauseKind::QueuePaused, CauseKind::HeldBacklog, CauseKind::HeadBlocked];
    for (kinds, is_said) in [(&kinds[..1], false), (&kinds[..2], false), (&kinds[..], true), (&kinds[1..], true)] {
        let causes = kinds.iter().copied().map(cause_of).collect();
        let headline = "Pending does not move.".to_owned();
        let diagnosis = Diagnosis { verdict: Verdict::Stopped, headline, causes };
        let stopped = vec![Stopped { state: JobState::Pending, since: Some(ago(300)), diagnosis }];
        let text = text(&page_of(figures::live(), Some(figures::full()), &Recent { stopped, ..recent() }));
        assert_eq!(text.contains("Pending does not move since"), is_said, "{kinds:?}: {text}");
        let once = usize::from(is_said);
        assert_eq!(text.matches("It waits. Five jobs fill it. Release it.").count(), once, "{kinds:?}: {text}");
    }
}

#[test]
fn what_is_not_seen_any_more_does_not_age() {
    let html = page_of(figures::stale(), Some(figures::full()), &recent());
    let text = text(&html);
    // 72 s less than while it is followed.
    for reported in [
        "Pending 1,204 oldest 36 min 60 an hour",
        "oldest 3.1 h none for 53 min",
        "37 jobs failed in Downloading for one reason oldest 1.7 h",
    ] {
        assert!(text.contains(reported), "{reported:?} is not in: {text}");
    }
    // The script that counts the seconds on an open page goes by the same instant.
    let as_of = format!(" data-as-of=\"{}\"", ago(72).strftime("%Y-%m-%dT%H:%M:%SZ"));
    let counted = [format!("<section id=\"pipeline\" class=\"panel\" aria-label=\"Jobs by state\"{as_of}>")];
    assert!(counted.iter().all(|tag| html.contains(tag)), "{html}");
    let articles = html.split("<article ").skip(1);
    assert!(articles.clone().count() > 3);
    assert!(articles.into_iter().all(|article| article.contains(&as_of)), "{html}");
    // The banner says why, and what to do: the list below it does not say it once more.
    assert!(!text.contains("There is no connection to ZooKeeper"), "{text}");
    let nothing = page_of(figures::stale(), Some(Summary::default()), &Recent::default());
    assert!(nothing.contains("Nothing else needed attention when the queue was last read."), "{nothing}");
    assert!(!page_of(figures::live(), Some(figures::full()), &recent()).contains("data-as-of"));
}

#[test]
fn a_quiet_queue_says_that_nothing_needs_attention() {
    let text = text(&page_of(figures::live(), Some(Summary::default()), &Recent::default()));
    let quiet = "The queue needs no attention: no state is stuck, no job has failed, no fault was found.";
    assert!(text.contains(quiet), "{text}");
    assert!(text.contains("none") && text.contains("queues not paused"), "{text}");
}

#[test]
fn nothing_is_said_to_be_quiet_that_is_not_followed_or_not_measured() {
    let (stale, recent) = (figures::stale(), Recent::default());
    let reading = Freshness { session: figures::live().session, problem: None, ..stale.clone() };
    let problem = Some("/stroage: No such file or directory (os error 2)".to_owned());
    for (freshness, recent, reported) in [
        (
            stale,
            recent.clone(),
            "These figures are 1 min old The connection to ZooKeeper is lost. Retrying; check that its servers are running",
        ),
        (reading, recent.clone(), "These figures are 1 min old Connected to ZooKeeper; the tree is being read."),
        (
            figures::live(),
            Recent { storage_problem: problem, ..recent },
            "Working storage cannot be measured /stroage: No such file or directory (os error 2). Whether",
        ),
    ] {
        let text = text(&page_of(freshness, Some(Summary::default()), &recent));
        assert!(text.contains(reported) && !text.contains("needs no attention"), "{reported:?} is not in: {text}");
    }
}
