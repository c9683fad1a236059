//! Alerts that act, against a real ZooKeeper: a decision is executed once, within its limits, whichever process is
//! called, restarted, cut off or killed.

#[path = "support"]
mod support {
    pub(crate) mod proxy;
    pub(crate) mod tree;
    pub(crate) mod wait;
}

#[path = "rules"]
mod rules {
    mod acts;
    mod api;
    mod once;
    mod refused;
    mod storms;
    mod world;
}
