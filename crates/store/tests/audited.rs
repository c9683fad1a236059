//! Changes through the audited store, stopped anywhere, and what the audit log says of them.

#[path = "support"]
mod support {
    pub(crate) mod memory;
    pub(crate) mod sink;
    pub(crate) mod steps;
}

#[path = "audited"]
mod audited {
    mod bucket;
    mod conditions;
    mod crash;
    mod faults;
    mod lease;
    mod outage;
    mod refused;
    mod setup;
}
