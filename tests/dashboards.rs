//! The dashboards as Grafana would load them: well formed, as their source makes them, and full of data where a real
//! Prometheus scrapes the demo with our rules loaded.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "support"]
mod support {
    pub(crate) mod prometheus;
}

#[path = "dashboards"]
mod dashboards {
    mod board;
    mod data;
    mod exact;
    mod form;
    mod running;
}
