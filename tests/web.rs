//! The server as its clients meet it: the router on a port of its own, and the whole program as a process.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "support"]
mod support {
    pub(crate) mod figures;
}

#[path = "web"]
mod web {
    mod actions;
    mod alerts;
    mod by_operator;
    mod command_line;
    mod config_file;
    mod crawl;
    mod cross_site;
    mod dashboards;
    mod deployments;
    mod detail;
    mod events;
    mod harness;
    mod hosts;
    mod jobs;
    mod least;
    mod least_acl;
    mod least_grants;
    mod odd;
    mod overview;
    mod page;
    mod passwords;
    mod prefix;
    mod reverse_proxy;
    mod roles;
    mod roles_of_mill;
    mod search;
    mod secrets;
    mod server;
    mod signals;
    mod site;
    mod slow;
    mod sorting;
    mod store_events;
    mod timeline;
    mod tls;
    mod web_file;
    mod who;
    mod words;
    mod world;
}
