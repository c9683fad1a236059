//! Actions against a real server: what each of them leaves behind, who wins, and what a lost connection does.

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
