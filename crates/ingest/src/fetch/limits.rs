//! What holds for each host.

use std::time::Duration;

/// What a host gets, and when it counts as away.
#[derive(Clone, Copy, Debug)]
pub struct HostLimits {
    /// How many connections for content it gets at a time, and as many to ask for sizes
    /// (`--download.connections-per-host`).
    pub connections: usize,
    /// How long a job that has none waits for one, before it gives its worker back.
    pub wait: Duration,
    /// After how many failed requests in a row.
    pub failures: u32,
    /// For how long it gets no request then; after each that fails, twice as long.
    pub first: Duration,
    /// The longest of these times.
    pub most: Duration,
}

impl HostLimits {
    /// The default number of connections for content.
    pub const CONNECTIONS: u16 = 6;
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            connections: Self::CONNECTIONS.into(),
            wait: Duration::from_secs(2),
            failures: 10,
            first: Duration::from_secs(30),
            most: Duration::from_mins(10),
        }
    }
}
