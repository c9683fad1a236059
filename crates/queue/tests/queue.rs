//! The queue against a real server: what each operation leaves behind, who wins, and what a lost connection does.

#[path = "queue"]
mod queue {
    mod cases;
    mod creation;
    mod faults;
    mod giving_back;
    mod lists;
    mod locks;
    mod numbers;
    mod outcome;
    mod plans;
    mod polls;
    mod purge;
    mod repairs;
    mod sizes;
    mod steps;
    mod transitions;
    mod withdrawal;
    mod withdrawal_races;
    mod workers;
}
