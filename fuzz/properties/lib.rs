//! What must hold of every decoder, whatever it is given. Each module is one decoder and has one `check`, which panics
//! where something does not hold.
//!
//! The fuzz targets call them with what libFuzzer makes up, and the project's tests with what stands in `corpus`.

pub mod access_request;
pub mod action;
pub mod address;
pub mod archive;
pub mod audit;
pub mod auth_file;
pub mod board;
pub mod config_file;
pub mod configuration;
pub mod connect_string;
pub mod content_url;
pub mod cursor;
pub mod dump;
pub mod duration;
pub mod host;
pub mod java_profile;
pub mod manifest;
pub mod network;
pub mod own_znodes;
pub mod pages;
pub mod path;
pub mod profile;
pub mod query;
pub mod record;
pub mod served;
pub mod shown;
pub mod tree;
pub mod web_config_file;
pub mod webhook;
mod znodes;

/// A decoder, and what must hold of it.
pub type Target = (&'static str, fn(&[u8]));

/// All of them, by the names of their folders in `corpus`.
pub const TARGETS: [Target; 26] = [
    ("access_request", access_request::check),
    ("action", action::check),
    ("address", address::check),
    ("archive", archive::check),
    ("audit", audit::check),
    ("auth_file", auth_file::check),
    ("config_file", config_file::check),
    ("configuration", configuration::check),
    ("connect_string", connect_string::check),
    ("content_url", content_url::check),
    ("cursor", cursor::check),
    ("dump", dump::check),
    ("duration", duration::check),
    ("host", host::check),
    ("java_profile", java_profile::check),
    ("manifest", manifest::check),
    ("network", network::check),
    ("own_znodes", own_znodes::check),
    ("path", path::check),
    ("profile", profile::check),
    ("query", query::check),
    ("record", record::check),
    ("served", served::check),
    ("tree", tree::check),
    ("web_config_file", web_config_file::check),
    ("webhook", webhook::check),
];
