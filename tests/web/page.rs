use askama::Template;
use queuekeeper::metrics::working_storage::Space;
use queuekeeper::mirror::{Freshness, PauseSituation, Summary};
use queuekeeper::web::pages::{Overview, Recent, View};
use queuekeeper_queue::path::QueueName;
use queuekeeper_queue::state::JobState;

use crate::support::figures;

fn page(freshness: Freshness, summary: Option<Summary>) -> String {
    page_of(freshness, summary, &Recent::default())
}

pub(crate) fn page_of(freshness: Freshness, summary: Option<Summary>, recent: &Recent) -> String {
    let space = Space { size_bytes: 64 << 40, free_bytes: 6 << 40 };
    let view = View {
        now: figures::now(),
        servers: "zk1:2181,zk2:2181/merritt".to_owned(),
        telemetry_path: "/metrics".to_owned(),
        deployments: None,
        notice: None,
        repository: queuekeeper::config::RepositoryParts::default(),
        freshness,
        summary,
    };
    Overview::new(&view, &Recent { storage: Some((0.8, space)), ..recent.clone() }).render().unwrap()
}

/// The text of a page as a reader without styles has it: tags become spaces, and spaces are single.
pub(crate) fn text(html: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in html.chars() {
        match character {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            other if !is_tag => text.push(other),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_full_queue_is_reported_with_its_ages_and_what_needs_attention() {
    let pause = PauseSituation { since: Some(figures::ago(7_200)), ..PauseSituation::default() };
    let recent = Recent { pauses: vec![(QueueName::Ingest, pause)], ..Recent::default() };
    let html = page_of(figures::live(), Some(figures::full()), &recent);
    let text = text(&html);
    for reported in [
        "synced , 2026-11-21 10:00:00 UTC",
        "Pending 1,204 oldest 38 min",
        "Provisioning 311 5 waiting oldest 3.2 h",
        "Failed 41 oldest 27 h",
        "Other 4 oldest 3 days",
        "The ingest queue is paused for 2.0 h",
        "41 jobs failed oldest 27 h They need an operator.",
        "5 jobs wait for space oldest 3.2 h Working storage is 91 % full, and the limit is 80 %.",
        "large access queue paused 25 h",
        "Objects being stored 4 6 min",
        "small Pending 4 2.9 MiB 45 s",
        "Queue entry in a state other than its job&#39;s: 12 items oldest 2.5 h A daemon that takes it is refused",
        "Leaked lock: 1 item for 2 days",
        "Unreadable 3",
        "Session 0x1000b12",
    ] {
        assert!(text.contains(reported), "{reported:?} is not in: {text}");
    }
    assert!(!html.contains("class=\"banner\""), "a live image has no banner");
    assert!(html.contains(r#"<time datetime="2026-11-21T08:00:00Z" title="2026-11-21 08:00:00 UTC">"#), "{html}");
    assert!(html.contains(r#"title="3,000,000 bytes""#), "{html}");
}

#[test]
fn claims_beyond_all_numbers_do_not_keep_the_page_from_being_written() {
    let mut summary = figures::full();
    for state in [JobState::Pending, JobState::Provisioning] {
        summary.jobs.get_mut(Some(state)).space_needed_bytes = u64::MAX;
    }
    let text = text(&page(figures::live(), Some(summary)));
    assert!(text.contains("16 EiB"), "{text}");
}

#[test]
fn what_a_znode_holds_stays_text_and_nothing_needs_an_exception_from_the_policy() {
    let mut freshness = figures::stale();
    freshness.problem = Some("<script>alert(1)</script>".to_owned());
    let html = page(freshness, Some(figures::full()));
    assert!(html.contains("&#60;b&#62;&#34;&#38;"), "{html}");
    // Every script is a file of our own.
    let mut html = html;
    for script in ["charts", "theme", "live", "keys"] {
        let (before, script) = html.split_once(&format!("<script src=\"./static/{script}-")).unwrap();
        html = format!("{before}{}", script.split_once("></script>").unwrap().1);
    }
    for forbidden in ["<script", "<b>\"&", "style=", "<style", " on", "javascript:", "http://", "href=\"/", "src=\"/"] {
        let found = html.match_indices(forbidden).find(|(at, _)| {
            // ` on` begins an event handler only as an attribute.
            forbidden != " on" || html[*at..].split_whitespace().next().is_some_and(|word| word.contains('='))
        });
        assert!(found.is_none(), "{forbidden} is in: {html}");
    }
}

#[test]
fn a_stale_image_and_a_missing_one_say_so_first() {
    let stale = text(&page(figures::stale(), Some(figures::full())));
    let banner = stale.find("These figures are 1 min old The connection to ZooKeeper is lost.").unwrap();
    assert!(banner < stale.find("Pending 1,204").unwrap(), "{stale}");
    assert!(stale.contains("This page shows the queue as of 2026-11-21 09:58:48 UTC."), "{stale}");

    let missing = text(&page(Freshness::default(), None));
    assert!(missing.contains("The queue has not been read yet Not connected to ZooKeeper."), "{missing}");
    assert!(missing.contains("no figures") && !missing.contains("Provisioning"), "{missing}");

    // Read it was, but there is no root: no figures there were, none are old, and none are live.
    for stale_since in [None, Some(figures::ago(4))] {
        let freshness = Freshness { problem: Some("there is no znode /x".to_owned()), stale_since, ..figures::live() };
        let rootless = text(&page(freshness, None));
        assert!(rootless.contains("The queue cannot be read There is no znode /x."), "{rootless}");
        assert!(rootless.contains("no figures") && !rootless.contains("synced ,"), "{rootless}");
        assert!(!rootless.contains(" old"), "{rootless}");
    }
}
