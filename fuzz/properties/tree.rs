//! Whole trees: what the mirror makes of them, and what is shown.

use std::collections::BTreeSet;

use jiff::Timestamp;
use queuekeeper::mirror::MirrorStore;
use queuekeeper::mirror::find::{Direction, JobOrder, JobQuery};
use queuekeeper::mirror::fuzzing::Mirrored;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::JobId;

use super::board::Board;
use super::pages::PAGES;
use super::znodes::znodes;

/// Reads the bytes as the lines of a dump, and shows that tree.
///
/// # Panics
/// When a walk and events do not come to the same, a list does not add up, or the server fails.
pub fn check(data: &[u8]) {
    thread_local! {
        static BOARD: Board = Board::new(b"");
        static HEARD: Mirrored = Mirrored::default();
    }
    let znodes = znodes(data);
    let now: Timestamp = "2026-03-02T18:17:05Z".parse().expect("this is an instant");
    BOARD.with(|board| {
        board.mirrored.walk(&znodes);
        HEARD.with(|heard| {
            heard.hear(&znodes);
            let (walked, heard) = (said(&board.mirrored.store(), now), said(&heard.store(), now));
            let differing = walked.symmetric_difference(&heard).take(5).collect::<Vec<_>>();
            assert!(differing.is_empty(), "a walk and events come to another thing: {differing:#?}");
        });
        let store = board.mirrored.store();
        add_up(&store, now);
        show(board, &store);
    });
}

/// All that an image says.
fn said(store: &MirrorStore, now: Timestamp) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    let mut say = |what: &str, thing: &dyn std::fmt::Debug| {
        said.insert(format!("{what} {thing:?}"));
    };
    for space in [None, Some(1_000_000)] {
        say("summary", &store.summary(now, space));
    }
    let (jobs, _) = store.jobs(0..usize::MAX).unwrap_or_default();
    for job in &jobs {
        say("job", job);
    }
    store.batches().iter().flatten().for_each(|batch| say("batch", batch));
    store.requests().iter().flatten().for_each(|request| say("request", request));
    store.locks().iter().flatten().for_each(|lock| say("lock", lock));
    store.strays().iter().flatten().for_each(|path| say("stray", path));
    store.unexpected(usize::MAX).iter().flatten().for_each(|path| say("unexpected", path));
    store.collections().iter().flatten().for_each(|collection| say("collection", collection));
    for fault in Fault::ALL {
        for found in store.faults(fault, 1_000, now, None).into_iter().flatten() {
            say("fault", &(fault, &found.item, &found.nodes));
        }
    }
    said
}

/// Follows the lists of jobs in every order, and counts.
fn add_up(store: &MirrorStore, now: Timestamp) {
    let jobs: BTreeSet<JobId> =
        store.jobs(0..usize::MAX).map(|(jobs, _)| jobs).unwrap_or_default().iter().map(|job| job.id).collect();
    let summary = store.summary(now, None).expect("there is an image");
    let counted: u64 = summary.jobs.iter().map(|(_, figures)| figures.count).sum();
    assert_eq!(counted, jobs.len() as u64, "each job is in one state");
    let size = jobs.len().div_ceil(3).clamp(1, 500);
    for (sort, direction) in JobOrder::ALL.into_iter().flat_map(|sort| Direction::ALL.map(|way| (sort, way))) {
        let mut query = JobQuery { sort, direction, limit: size, ..JobQuery::default() };
        let mut seen = BTreeSet::new();
        loop {
            let page = store.find_jobs(&query, now).expect("there is an image");
            assert_eq!((page.total, page.before), (jobs.len(), seen.len()), "{sort:?} {direction:?}");
            for job in &page.items {
                assert!(seen.insert(job.id), "{} comes twice by {sort:?}", job.id);
            }
            let Some(next) = page.next else { break };
            query.cursor = Some(next.parse().expect("a cursor is read as it is written"));
        }
        assert_eq!(seen, jobs, "all come, by {sort:?}");
    }
}

/// Looks at every page, and at those of some items.
fn show(board: &Board, store: &MirrorStore) {
    let (jobs, _) = store.jobs(0..3).unwrap_or_default();
    let jobs = jobs.iter().flat_map(|job| {
        [format!("/jobs/{}", job.id), format!("/api/v1/jobs/{}", job.id), format!("/api/v1/jobs/{}/diagnosis", job.id)]
    });
    let batches = store.batches().unwrap_or_default();
    let batches = batches.iter().take(3).map(|batch| format!("/batches/{}", batch.id));
    let pages = PAGES.map(str::to_owned).into_iter().chain(jobs).chain(batches);
    for page in pages {
        let answer = board.get(&page).expect("this is an address");
        assert!(answer.status.is_success(), "{page}: {} {}", answer.status, answer.body);
        if page == "/metrics" {
            exposed(&answer.body);
        }
    }
}

/// Checks the exposition: each line is a comment or a sample, whose labels are bounded, and none comes twice.
fn exposed(text: &str) {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?} is no sample"));
        assert!(value.parse::<f64>().is_ok(), "{line:?} has no value");
        assert!(name.len() < 1_000, "{line:?} has long labels");
        assert!(names.insert(name), "{name} comes twice");
    }
}
