//! queuekeeper mirrors a Merritt-style ingest queue in ZooKeeper and serves it: exact figures to Prometheus, a page to
//! people, actions to operators, and the whole queue core to whoever writes a daemon or a tool.
//!
//! # The way of a change
//!
//! ```text
//!  ZooKeeper ──watch──▶ mirror ──▶ insight ──▶ views ──▶ web, cli ──▶ people, programs
//!      ▲                  └──────▶ metrics ─────────────▶ web ──────▶ Prometheus
//!      └── transactions of the queue core ── actions ◀── web, cli, alerts
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | [`queuekeeper_queue`] | a crate of its own: the queue core: state machines, path grammar, tolerant records, transactions, locks, purge. The only place that knows what a queue is; it reads no clock and spawns no task |
//! | [`queuekeeper_zookeeper`] | a crate of its own: connections and sessions; our own znodes below `/queuekeeper`: who leads, what was decided, what rules remember, the kill switch; a private server for demo and tests. It does not know what any of it means |
//! | [`mirror`] | the image of the tree in memory: one writer, many readers. It answers no HTTP and writes nothing to ZooKeeper |
//! | [`insight`] | why something is not moving, and when a batch ends: functions over the mirror and an instant |
//! | [`metrics`] | the collectors over the mirror's figures, and the exposition. They read no znode |
//! | [`actions`] | what an operator may do: who may, what it would write, executed whole, written down. They write to ZooKeeper by the queue core's transactions only |
//! | [`alerts`] | alerts that act: Alertmanager's calls, rules and what bounds them, decisions executed once. They change the queue by [`actions`] only |
//! | [`views`] | what pages, API and command line show: one typed answer for each question. They know no HTTP |
//! | [`web`] | thin handlers over views: `http` is what stands before them, then pages, API, events and assets. They touch no ZooKeeper client and join no path |
//! | [`demo`] | a queue that is made up, with simulated daemons that work on it through the queue core |
//! | [`config`], [`cli`], [`server`] | parsing, exit codes, and wiring |
//!
//! # Invariants
//!
//! - A scrape or a page costs ZooKeeper nothing, and the same for 10 jobs and for 200,000.
//! - Only the mirror's writer changes the image, and a reader never sees half of one.
//! - Only [`queuekeeper_queue::path`] builds or takes apart a path.
//! - A change to a job is one `multi`, which happens whole or not at all; larger things are many of them over a frozen
//!   list.
//! - What a znode holds is hostile: it may be anything, of any size, and it ends up in HTML, labels and logs.
//! - What is requested happens whole or says why not, and is written down before and after.
//! - What acts by itself does so once, by whoever leads, within budgets that outlive it, and stops for one znode.
//! - Staleness is never hidden: what may be behind says so, and is left out of the metrics when it is too old.

pub mod actions;
pub mod alerts;
pub mod cli;
pub mod config;
pub mod demo;
pub mod insight;
pub mod metrics;
pub mod mirror;
pub mod server;
pub mod views;
pub mod web;
