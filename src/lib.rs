//! queuekeeper mirrors a Merritt-style ingest queue in ZooKeeper and serves it: exact figures to Prometheus, a page to
//! users, actions to operators, and the queue core as a library to daemons and tools.
//!
//! # Data flow
//!
//! ```text
//!  ZooKeeper ──watch──▶ mirror ──▶ insight ──▶ views ──▶ web, cli ──▶ users, programs
//!      ▲                  └──────▶ metrics ─────────────▶ web ──────▶ Prometheus
//!      └── transactions of the queue core ── actions ◀── web, cli, alerts
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | [`queuekeeper_queue`] | a crate of its own: the queue core: state machines, path grammar, tolerant records, transactions, locks, purge. The only place that knows what a queue is; it reads no clock and spawns no task |
//! | [`queuekeeper_zookeeper`] | a crate of its own: connections and sessions; our own znodes below `/queuekeeper`: leader election, decisions, the state of rules, the kill switch; a private server for demo and tests. It knows no jobs and no rules |
//! | [`queuekeeper_store`] | a crate of its own: content stores (directories, S3), digests, the audited decorator, OCFL objects. It knows no ZooKeeper and no SQL |
//! | [`queuekeeper_catalogue`] | a crate of its own: the SQL database of what is stored where, and of every change; the only place with SQL. It calls no store |
//! | [`queuekeeper_mail`] | a crate of its own: mails: addresses, form, delivery of those that wait in the catalogue |
//! | [`queuekeeper_ingest`] | a crate of its own: deposits, and the daemons that take them through the queue into the stores. It answers no HTTP |
//! | [`queuekeeper_mill`] | a crate of its own: copies in further stores, checks of content, repairs. It answers no HTTP, and runs without a queue |
//! | `words` | counts, lengths of time, instants and cut texts as sentences, pages and commands show them |
//! | [`mirror`] | the image of the tree in memory: one writer, many readers. It answers no HTTP and writes nothing to ZooKeeper |
//! | [`insight`] | why something is not moving (each cause of a diagnosis), and when a batch ends: functions over the mirror and an instant |
//! | [`metrics`] | the collectors over the mirror's figures, and the exposition. They read no znode |
//! | [`prometheus`] | a client of Prometheus: the past of the figures, for the charts of the pages |
//! | [`actions`] | what an operator may do: roles, previews, execution, the audit trail. They write to ZooKeeper by the queue core's transactions only |
//! | [`alerts`] | alerts that act: Alertmanager's calls, rules and their limits, decisions that are executed once. They change the queue by [`actions`] only |
//! | [`views`] | what pages, API and command line show: one typed answer for each question, so a field of the API or a column of CSV is here. They know no HTTP |
//! | [`web`] | thin handlers over views: `http` is the server with authentication and limits, then pages, `api` with routes alone, events and assets. They touch no ZooKeeper client and join no path |
//! | [`demo`] | a whole repository with made-up depositors, an operator, and faults |
//! | [`config`], [`cli`], [`server`] | parsing, exit codes, and wiring |
//!
//! # Invariants
//!
//! - A scrape or a page reads nothing from ZooKeeper, and costs the same for 10 jobs and for 200,000.
//! - Only the mirror's writer changes the image, and a reader never sees half of one.
//! - Only [`queuekeeper_queue::path`] builds or takes apart a path.
//! - A change to a job is one `multi`, which happens whole or not at all; larger things are many of them over a frozen
//!   list.
//! - What a znode holds is hostile: it may be anything, of any size, and it ends up in HTML, labels and logs.
//! - An action is executed completely, or reports why it was not; it is recorded before and after.
//! - Automatic actions are executed once, by the elected leader, within budgets that survive restarts, and stop while
//!   one znode exists.
//! - Staleness is never hidden: stale figures are marked, and left out of the metrics when they are too old.

pub mod actions;
pub mod alerts;
pub mod cli;
pub mod config;
pub mod demo;
pub mod insight;
pub mod metrics;
pub mod mirror;
pub mod prometheus;
pub mod server;
pub mod views;
pub mod web;
mod words;
