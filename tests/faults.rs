//! The faults of a queue, each made on a real tree; and none on a tree that healthy daemons work on.

#[path = "faults"]
mod faults {
    mod cases;
    mod healthy;
    mod redacted;
    mod table;
    mod why;
    mod world;
}
