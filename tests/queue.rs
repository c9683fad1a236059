//! The queue core and the actions over it, against a real server: what each operation leaves behind, who wins, and what a
//! lost connection does.

#[path = "support"]
mod support {
    pub(crate) mod proxy;
    pub(crate) mod tree;
    pub(crate) mod wait;
    pub(crate) mod wire;
}

#[path = "queue"]
mod queue {
    mod cases;
    mod faults;
    mod locks;
    mod numbers;
    mod outcome;
    mod plans;
    mod purge;
    mod repairs;
    mod transitions;
    mod workers;
    pub(crate) mod world;
}

#[path = "actions"]
mod actions {
    mod cancelled;
    mod cuts;
    mod lost;
    mod races;
    mod served;
    mod shown;
    mod table;
    mod trips;
    mod unwritten;
}
