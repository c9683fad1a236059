//! The command line as users run it: the program as a process, with pipes, and with a real ZooKeeper.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "cli"]
mod cli {
    mod access;
    mod acting;
    mod again;
    mod api;
    mod bulk;
    mod catalogue;
    mod chroot;
    mod client;
    mod configured;
    mod copies;
    mod dashboards;
    mod deposit_check;
    mod deposits;
    mod downloads;
    mod drill;
    mod holds;
    mod hostile;
    mod ingest;
    mod killed;
    mod looking;
    mod mill;
    mod mill_checks;
    mod mill_compare;
    mod mill_errors;
    mod mill_evidence;
    mod mill_pages;
    mod mill_reports;
    mod mill_verify;
    mod packed;
    mod pages;
    mod parts;
    mod profiles;
    mod program;
    mod prompts;
    mod reader;
    mod repair_stopped;
    mod repairs;
    mod repository;
    mod rules;
    mod services;
    mod standalone;
    mod start;
    mod status;
    mod stopped;
    mod stores;
    mod watch;
    mod withdrawals;
    mod words;
    mod world;
}
