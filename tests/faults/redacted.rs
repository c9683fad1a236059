//! A redacted dump shows the same faults as the queue that it was taken of.

use futures::stream;
use jiff::Timestamp;
use queuekeeper::mirror::ByState;
use queuekeeper_queue::Queue;
use queuekeeper_queue::dump::{DumpOptions, Redaction};
use queuekeeper_queue::load::{self, LoadLimits, LoadOptions};
use queuekeeper_queue::state::State;

use super::cases::{TEN_MINUTES, change};
use super::table::{CASES, Do};
use super::world::{LIMIT, Mirror, World, without_daemons};
use queuekeeper_testkit::wait::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_redacted_dump_has_the_same_states_and_the_same_faults() {
    let world = World::new("redacted").await;
    let real = Mirror::start(&world, without_daemons()).await;
    let now = Timestamp::now();
    for (number, (faults, make, repair, item, _)) in CASES.iter().enumerate() {
        // Ephemeral locks are marked in a dump, and cannot be loaded.
        if make.iter().any(|change| matches!(change, Do::MakeEphemeral(_))) {
            continue;
        }
        let labels: Vec<_> = faults.iter().map(|fault| fault.label()).collect();
        change(&world, make).await;
        eventually(LIMIT, &format!("{make:?} is {labels:?}"), async || real.labels_after(TEN_MINUTES).await == labels)
            .await;

        let redaction = Some(Redaction::new(&[u8::try_from(number).unwrap(); 32]));
        let options = DumpOptions { id: "id".into(), now, redaction };
        let mut dump = Vec::new();
        Queue::new(world.client.clone()).dump(&mut dump, &options, |_| {}).await.unwrap();
        let copy = World::empty(&format!("redacted-{number}")).await;
        let limits = LoadLimits::new(LoadLimits::LARGEST_NUMBER, "/redacted", &[]);
        let sha256 = load::check(&*dump, limits).unwrap().sha256;
        let options = LoadOptions { now, resume: false, limits, sha256 };
        Queue::new(copy.client.clone()).load(stream::iter([Ok(dump)]), &options, |_| {}).await.unwrap();

        let shown = Mirror::start(&copy, without_daemons()).await;
        assert_eq!(shown.labels_after(TEN_MINUTES).await, labels, "{make:?} of {item}");
        assert_eq!(figures(&shown), figures(&real), "{make:?} of {item}");
        change(&world, repair).await;
        eventually(LIMIT, &format!("{make:?} is repaired"), async || real.after(TEN_MINUTES).await.is_empty()).await;
    }
}

fn figures(mirror: &Mirror) -> (Vec<u64>, [u64; 4], u64, u64) {
    fn counts<S: State, T>(by_state: &ByState<S, T>, count: impl Fn(&T) -> u64) -> Vec<u64> {
        by_state.iter().map(|(_, figures)| count(figures)).collect()
    }
    let summary = mirror.store.summary(Timestamp::now(), None).expect("the mirror is synced");
    let mut states = counts(&summary.jobs, |jobs| jobs.count);
    for items in [counts(&summary.batches, |items| items.count), counts(&summary.access_small, |items| items.count)] {
        states.extend(items);
    }
    states.extend(counts(&summary.jobs, |jobs| jobs.space_needed_bytes));
    (states, summary.by_retries, summary.collections_held, summary.znodes)
}
