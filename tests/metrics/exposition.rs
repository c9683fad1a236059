use prometheus_client::registry::Registry;
use queuekeeper::metrics::queue::View;
use queuekeeper::metrics::working_storage::Space;
use queuekeeper::metrics::{Format, expose, registry};
use queuekeeper::mirror::{ByState, CollectionFigures, Freshness, LargestCollections, Summary};
use queuekeeper_queue::fault::Limits;
use queuekeeper_queue::state::JobState;

use super::golden::assert_golden;
use crate::support::figures;
use queuekeeper_testkit::readers::{promtool_is_content, python_reads};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics.txt");

/// Collections with names as they are, and one that tries to break out of a label.
fn collections() -> LargestCollections {
    let pending = |count| {
        let mut jobs = ByState::default();
        *jobs.get_mut(Some(JobState::Pending)) = count;
        jobs
    };
    let named = [("merritt_demo", 7), ("ucla_digital", 5), ("a\"}\\ 1 # {é", 3), ("small", 2)];
    let largest = named.map(|(name, jobs)| CollectionFigures { collection: name.into(), jobs: pending(jobs) });
    LargestCollections { all: 5, largest: largest.into(), rest: pending(1) }
}

fn full() -> View {
    View {
        freshness: figures::live(),
        summary: Some(figures::full()),
        dropped: false,
        collections: Some(collections()),
        collections_limit: 3,
        fault_limits: Limits::default().by_fault(),
        storage: Some((0.8, Some(Space { size_bytes: 64 << 40, free_bytes: 6 << 40 }))),
    }
}

/// A queue without anything in it, seen for the first time.
fn bare() -> View {
    View {
        freshness: figures::live(),
        summary: Some(Summary::default()),
        dropped: false,
        collections: None,
        collections_limit: 0,
        fault_limits: Limits::default().by_fault(),
        storage: None,
    }
}

fn exposed(view: View, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(view));
    expose(&registry, format).unwrap()
}

fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

#[test]
fn the_text_is_the_golden_one() {
    let text = exposed(full(), Format::Text);
    assert_golden(&text, GOLDEN);
}

#[test]
fn promtool_and_python_read_both_forms_and_find_the_same_in_them() {
    let mut all = registry();
    all.register_collector(Box::new(full()));
    // Collected at two moments, the process itself has changed.
    let stays = |sample: &String| !sample.contains(" process_");
    let text = expose(&all, Format::Text).unwrap();
    let openmetrics = expose(&all, Format::OpenMetrics1).unwrap();
    promtool_is_content(&text);
    let from_text: Vec<_> = python_reads(&text, false).into_iter().filter(stays).collect();
    let from_openmetrics: Vec<_> = python_reads(&openmetrics, true).into_iter().filter(stays).collect();
    assert!(from_text.len() > 250, "{}", from_text.len());
    // An info is a gauge in text, and that is the only difference of this exposition.
    let as_text = |sample: String| sample.strip_prefix("info ").map_or(sample.clone(), |rest| format!("gauge {rest}"));
    assert_eq!(from_text, from_openmetrics.into_iter().map(as_text).collect::<Vec<_>>());
    let hostile = r#"gauge merritt_collection_jobs {"collection": "a\"}\\ 1 # {\u00e9", "state": "pending"} 3.0"#;
    assert!(from_text.iter().any(|sample| sample == hostile), "{from_text:#?}");
    for process in ["process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes"] {
        assert!(names(&text).contains(&process), "{process}");
    }
}

#[test]
fn an_empty_queue_has_every_label_set_at_zero_and_no_instants() {
    let text = exposed(bare(), Format::Text);
    promtool_is_content(&text);
    let zero = |series: &str| text.lines().any(|line| line == format!("{series} 0"));
    for state in ["pending", "storing", "held", "deleted", "other"] {
        assert!(zero(&format!(r#"merritt_jobs{{state="{state}"}}"#)), "{state}");
        assert!(zero(&format!(r#"merritt_jobs_by_age{{state="{state}",age="older"}}"#)), "{state}");
    }
    assert!(zero(r#"merritt_batches{state="update-reporting"}"#));
    assert!(zero(r#"merritt_access_requests{queue="access_large",state="other"}"#));
    assert!(zero(r#"merritt_queue_paused{queue="access_small"}"#));
    assert!(zero(r#"merritt_locks_by_age{kind="inventory",age="1d"}"#));
    let queue: Vec<_> = names(&text).into_iter().filter(|name| name.starts_with("merritt_")).collect();
    assert!(!queue.iter().any(|name| name.ends_with("_timestamp_seconds")), "{queue:?}");
    for absent in ["merritt_jobs_waiting_for_space", "merritt_working_storage_size_bytes", "merritt_collection_jobs"] {
        assert!(!queue.contains(&absent), "{absent}");
    }
}

#[test]
fn without_an_image_or_with_one_too_old_the_queue_is_left_out_and_our_own_state_is_not() {
    let unread = View { summary: None, freshness: Freshness::default(), ..full() };
    let dropped = View { dropped: true, freshness: figures::stale(), ..full() };
    for view in [unread, dropped] {
        let text = exposed(view, Format::Text);
        let names = names(&text);
        let queue: Vec<_> = names.iter().filter(|name| name.starts_with("merritt_")).collect();
        assert!(queue.iter().all(|name| name.starts_with("merritt_working_storage_")), "{queue:?}");
        assert_eq!(queue.len(), 4);
        assert!(text.contains("\nqueuekeeper_zookeeper_connected 0\n"), "{text}");
        assert!(text.contains("\nqueuekeeper_mirror_synced 0\n"), "{text}");
        assert!(names.contains(&"queuekeeper_mirror_znodes"));
    }
}

#[test]
fn a_volume_that_does_not_answer_leaves_only_its_threshold() {
    let text = exposed(View { storage: Some((0.8, None)), ..full() }, Format::Text);
    for there in ["merritt_working_storage_threshold_ratio 0.8", "merritt_working_storage_up 0"] {
        assert!(text.contains(&format!("\n{there}\n")), "{text}");
    }
    for absent in ["merritt_working_storage_size_bytes", "merritt_jobs_waiting_for_space"] {
        assert!(!names(&text).contains(&absent), "{absent}");
    }
}
