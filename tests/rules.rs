//! Alerts that act, against a real ZooKeeper: a decision is executed once, within its limits, whichever process is
//! called, restarted, cut off or killed.

#[path = "rules"]
mod rules {
    mod acts;
    mod api;
    mod changes;
    mod once;
    mod refused;
    mod storms;
    mod world;
}
