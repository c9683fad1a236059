//! The daemons on a real ZooKeeper, with a catalogue, a store and an origin of their own.

mod daemons {
    mod flow;
    mod world;
}
