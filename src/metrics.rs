//! The metrics: the registry, its collectors and the exposition.
//!
//! What is true of the queue is taken at each scrape from one view of the image ([`queue`]); what was seen happening
//! is counted by the module that saw it, which registers its own families in the same [`Registry`]. Here are those
//! that belong to no other module: the process ([`process`]), the build ([`build`]), working storage
//! ([`working_storage`]) and our own HTTP server ([`http`]).

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

pub mod build;
mod encode;
pub mod exposition;
pub mod http;
pub mod mill;
pub mod process;
pub mod queue;
pub mod working_storage;

pub use exposition::Format;

/// The label that names the queue of a series, where one server has several.
pub const DEPLOYMENT: &str = "deployment";

/// The registry of one of several queues: each series has the label `deployment` with its name.
#[must_use]
pub fn registry_of_deployment(name: &str) -> Registry {
    Registry::with_labels(std::iter::once((DEPLOYMENT.into(), name.to_owned().into())))
}

/// A registry with the families of every program: `queuekeeper_build_info`, `process_*` and `queuekeeper_tasks`.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    build::register(&mut registry);
    process::register(&mut registry);
    registry
}

/// Collects everything in a registry, once, and writes it in a format.
///
/// # Errors
/// When a collector fails to write; none of ours does by itself.
pub fn expose(registry: &Registry, format: Format) -> Result<String, std::fmt::Error> {
    expose_all(&[registry], format)
}

/// The same of several registries, as if they were one. The series of each have labels that the others' have not.
///
/// # Errors
/// As [`expose`].
pub fn expose_all(registries: &[&Registry], format: Format) -> Result<String, std::fmt::Error> {
    let encode = |registry: &&Registry| {
        // A usual exposition is some 115 KB, and growing to that by doubling would copy it twice over.
        let mut openmetrics = String::with_capacity(128 * 1024);
        text::encode(&mut openmetrics, registry).map(|()| openmetrics)
    };
    let mut expositions = registries.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
    let openmetrics = match expositions.pop() {
        Some(only) if expositions.is_empty() => only,
        last => {
            expositions.extend(last);
            exposition::merge(&expositions)
        }
    };
    match format {
        Format::OpenMetrics1 | Format::OpenMetrics0 => Ok(openmetrics),
        Format::Text => exposition::to_text(&openmetrics),
    }
}
