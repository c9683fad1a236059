//! The shipped rules for Prometheus and configuration of Alertmanager, tested with their own tools.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails by panicking, as the test itself does")]

#[path = "alerts"]
mod alerts {
    mod rules;
    mod sent;
}
