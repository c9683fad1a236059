//! The queue core, against a real server: what each operation leaves behind, who wins, and what a lost connection does.

#[path = "support"]
mod support {
    pub(crate) mod proxy;
    pub(crate) mod tree;
    pub(crate) mod wait;
}

#[path = "queue"]
mod queue {
    mod cases;
    mod faults;
    mod numbers;
    mod outcome;
    mod purge;
    mod transitions;
    mod workers;
    mod world;
}
