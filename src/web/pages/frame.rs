//! What every page has around its content.

use std::borrow::Cow;

use jiff::Timestamp;

use super::View;
use crate::config::{DeploymentName, Deployments, RepositoryParts, Web};
use crate::metrics::build;
use crate::views::show::{Ago, Count, Moment, as_sentence, counted};
use queuekeeper_queue::state::JobState;

macro_rules! sections {
    ($( $section:ident $name:literal $href:literal, )+) => {
        /// The parts of the status page, as the navigation names them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Section { $( $section ),+ }

        impl Section {
            const ALL: [Self; [$(Self::$section),+].len()] = [$(Self::$section),+];

            fn name(self) -> &'static str {
                match self { $(Self::$section => $name),+ }
            }

            /// Where it is, relative to the root.
            pub(super) fn href(self) -> &'static str {
                match self { $(Self::$section => $href),+ }
            }
        }
    };
}

sections! {
    Overview "Overview" "",
    Submit "Submit" "submit",
    Charts "Charts" "charts",
    Jobs "Jobs" "jobs",
    Failures "Failures" "failures",
    Batches "Batches" "batches",
    Objects "Objects" "objects",
    Mill "Mill" "mill",
    Access "Access" "access",
    Locks "Locks" "locks",
    Daemons "Daemons" "daemons",
    Faults "Faults" "faults",
    Rules "Rules" "rules",
    Audit "Audit" "audit",
    Tree "Tree" "tree",
    Api "API" "api",
}

/// Header and footer of a page.
#[derive(Debug)]
pub(super) struct Frame {
    /// The way from the page up to the root: relative, because a proxy may serve us below any prefix.
    pub(super) root: String,
    pub(super) servers: String,
    pub(super) now: Moment,
    pub(super) fresh: Fresh,
    pub(super) banner: Option<Banner>,
    /// What has to be known of the server, however the queue is.
    pub(super) notice: Option<&'static str>,
    pub(super) nav: Vec<Link>,
    /// Where the metrics are, relative to the root.
    pub(super) metrics: String,
    pub(super) session: String,
    pub(super) jobs: String,
    pub(super) batches: String,
    pub(super) version: &'static str,
    /// Whether the reader may use the pages of deposits, and no others.
    pub(super) is_of_depositor: bool,
    /// Whether it is the page of all queues, which has neither search nor API.
    pub(super) is_of_all: bool,
    /// The ways to other queues; `None` where there is one.
    pub(super) switch: Option<Switch>,
}

/// The ways from a page of one queue to those of others.
#[derive(Debug)]
pub(super) struct Switch {
    /// The queue of the page.
    pub(super) this: String,
    /// Where the page of all is.
    pub(super) all: String,
    /// To each, in the order of all pages.
    pub(super) queues: Vec<Way>,
}

/// The way to a queue.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) name: String,
    pub(super) href: String,
}

/// A part of the page in the navigation.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: Cow<'static, str>,
    pub(super) href: String,
    /// How many things there want to be seen; empty for none.
    pub(super) count: String,
    pub(super) is_current: bool,
}

/// The freshness in the header.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// The banner of a page whose figures are stale or missing.
#[derive(Debug)]
pub(super) struct Banner {
    pub(super) title: String,
    pub(super) text: String,
}

impl Frame {
    /// The frame of a page whose way up to the root is `root`; see [`root_from`]. Pages that only the footer leads to
    /// are of no section.
    pub(super) fn new(view: &View, root: String, section: impl Into<Option<Section>>) -> Self {
        let section = section.into();
        let summary = view.summary.as_ref();
        let count = |section: Section| match (section, summary) {
            (Section::Failures, Some(summary)) => summary.jobs.get(Some(JobState::Failed)).count,
            (Section::Faults, Some(summary)) => summary.faults.iter().map(|fault| fault.count).sum(),
            (_, _) => 0,
        };
        // A link to the root itself must not be empty: that would be this page.
        let link = |part: Section| Link {
            name: part.name().into(),
            href: format!("{root}{}", part.href()),
            count: some(count(part)),
            is_current: Some(part) == section,
        };
        let jobs: u64 = summary.map_or(0, |summary| summary.jobs.iter().map(|(_, jobs)| jobs.count).sum());
        let batches: u64 = summary.map_or(0, |summary| summary.batches.iter().map(|(_, batches)| batches.count).sum());
        Self {
            servers: view.servers.clone(),
            now: Moment::new(view.now, view.now),
            fresh: fresh(view),
            banner: banner(view),
            notice: view.notice,
            nav: Section::ALL.into_iter().filter(|part| is_there(*part, view.repository)).map(link).collect(),
            metrics: view.telemetry_path.trim_start_matches('/').to_owned(),
            session: view.freshness.session.clone().unwrap_or_default(),
            jobs: if summary.is_some() { counted(jobs, "job", "jobs") } else { String::new() },
            batches: counted(batches, "batch", "batches"),
            version: build::VERSION,
            is_of_depositor: false,
            is_of_all: false,
            switch: switch(view.deployments.as_ref(), &root, section.map_or("", Section::href)),
            root,
        }
    }
}

impl Frame {
    /// The frame of the page of all queues, which are given by name, with whether each needs attention.
    pub(super) fn of_all(web: &Web, queues: impl Iterator<Item = (String, bool)>, now: Timestamp) -> Self {
        let link = |(name, is_urgent): (String, bool)| Link {
            href: format!("./{name}/"),
            count: if is_urgent { "!".to_owned() } else { String::new() },
            is_current: false,
            name: name.into(),
        };
        let nav: Vec<_> = queues.map(link).collect();
        let urgent = nav.iter().filter(|link| !link.count.is_empty()).count() as u64;
        let fresh = match urgent {
            0 => Fresh { class: "good", text: "no queue needs attention".to_owned() },
            _ => Fresh { class: "bad", text: format!("{} attention", counted(urgent, "queue needs", "queues need")) },
        };
        Self {
            root: "./".to_owned(),
            servers: counted(nav.len() as u64, "queue", "queues"),
            now: Moment::new(now, now),
            fresh,
            banner: None,
            notice: web.loopback.as_ref().map(|loopback| loopback.notice),
            nav,
            metrics: web.telemetry_path.as_str().trim_start_matches('/').to_owned(),
            session: String::new(),
            jobs: String::new(),
            batches: String::new(),
            version: build::VERSION,
            is_of_depositor: false,
            is_of_all: true,
            switch: None,
        }
    }

    /// The same for a depositor: without what leads to other pages, and without what the queue is kept on.
    pub(super) fn for_depositor(mut self) -> Self {
        self.nav.retain(|link| link.is_current);
        if let Some(banner) = &mut self.banner {
            "This page may not show the latest changes.".clone_into(&mut banner.text);
        }
        (self.servers, self.jobs, self.batches, self.session) = Default::default();
        Self { is_of_depositor: true, ..self }
    }
}

/// Whether this server has a part of the status page.
fn is_there(part: Section, has: RepositoryParts) -> bool {
    match part {
        Section::Submit => has.deposits,
        Section::Objects => has.objects,
        Section::Mill => has.mill,
        _ => true,
    }
}

/// Whether a path relative to the root is that of a part of the status page, of this server or of another one.
pub(super) fn is_part(path: &str) -> bool {
    Section::ALL.into_iter().any(|section| section.href() == path)
}

fn fresh(view: &View) -> Fresh {
    let freshness = &view.freshness;
    let (class, text) = if view.summary.is_none() {
        ("bad", "no figures".to_owned())
    } else if freshness.is_synced() {
        ("good", "synced".to_owned())
    } else {
        ("bad", format!("{} old", Ago(freshness.stale_for(view.now))))
    };
    Fresh { class, text }
}

impl Banner {
    /// That of the pages of a queue; `None` while its figures are current.
    pub(super) fn of(view: &View) -> Option<Self> {
        banner(view)
    }
}

fn banner(view: &View) -> Option<Banner> {
    let freshness = &view.freshness;
    if freshness.is_synced() && view.summary.is_some() {
        return None;
    }
    let connected = freshness.is_connected();
    let cause = freshness.problem.as_deref().unwrap_or(if connected {
        "Connected to ZooKeeper; the tree is being read."
    } else {
        "Not connected to ZooKeeper."
    });
    let (title, rest) = match (&view.summary, freshness.stale_since) {
        (Some(_), Some(since)) => {
            let Moment { ago, exact, .. } = Moment::new(since, view.now);
            (format!("These figures are {ago} old"), format!("This page shows the queue as of {exact}."))
        }
        // What was read before is gone where the root of the tree is.
        (_, _) if freshness.last_walk.is_some() => {
            ("The queue cannot be read".to_owned(), "Nothing can be shown until it is readable.".to_owned())
        }
        (_, _) => {
            let rest = "Nothing can be shown until it has been read.".to_owned();
            ("The queue has not been read yet".to_owned(), rest)
        }
    };
    let retry = if connected {
        ""
    } else if cause.ends_with('?') || cause.contains("--zookeeper.") {
        // It says what there is to check.
        " Retrying."
    } else {
        " Retrying; check that its servers are running and reachable from this host, and check --zookeeper."
    };
    Some(Banner { title, text: format!("{}{retry} {rest}", as_sentence(cause)) })
}

/// The names of the parts of the status page that a server has, or of all queues, and the ways there, for a page that
/// knows nothing of a queue.
pub(super) fn ways(root: &str, web: &Web) -> Vec<(String, String)> {
    if let Some(Deployments { all, this: None }) = &web.deployments {
        return all.iter().map(|name| (name.to_string(), format!("{root}{name}/"))).collect();
    }
    let parts = Section::ALL.into_iter().filter(|part| is_there(*part, web.repository));
    parts.map(|part| (part.name().to_owned(), format!("{root}{}", part.href()))).collect()
}

/// The way to the pages of all queues, and to the same part of the pages of each queue, where there are several.
/// What is on a page of one queue is on none of another: of a job, the way is to the jobs.
pub(super) fn switch(deployments: Option<&Deployments>, root: &str, part: &str) -> Option<Switch> {
    let deployments = deployments.filter(|deployments| deployments.all.len() > 1)?;
    let way = |name: &DeploymentName| Way { name: name.to_string(), href: format!("{root}../{name}/{part}") };
    let this = deployments.this.as_ref()?.to_string();
    Some(Switch { this, all: format!("{root}../"), queues: deployments.all.iter().map(way).collect() })
}

/// A count that wants to be seen; empty for none.
fn some(count: u64) -> String {
    if count > 0 { Count(count).to_string() } else { String::new() }
}

/// The way from a path up to the root. Below a route prefix, `path` is what comes after it.
pub(super) fn root_from(path: &str) -> String {
    match path.bytes().filter(|byte| *byte == b'/').count() {
        0 | 1 => "./".to_owned(),
        slashes => "../".repeat(slashes - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_from_an_error_are_those_that_the_server_has() {
        let names = |repository| {
            let web = Web { repository, ..Web::default() };
            ways("./", &web).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(RepositoryParts::ALL).len(), Section::ALL.len());
        let of_queue = names(RepositoryParts::default());
        assert!(of_queue.contains(&"Jobs".to_owned()) && !of_queue.contains(&"Mill".to_owned()), "{of_queue:?}");
        assert!(is_part("mill") && !is_part("queuekeeper"));
    }

    #[test]
    fn a_page_leads_to_the_root_from_any_depth() {
        for (path, root) in [("/", "./"), ("/nothing", "./"), ("/a/b", "../"), ("/a/b/", "../../"), ("*", "./")] {
            assert_eq!(root_from(path), root, "{path}");
        }
    }
}
