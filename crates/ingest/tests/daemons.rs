//! The daemons on a real ZooKeeper, with a catalogue, a store and an origin of their own.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod daemons {
    mod access;
    mod access_waits;
    mod again;
    mod arrivals;
    mod away;
    mod before;
    mod cleanup;
    mod contents;
    mod crashes;
    mod described;
    mod exchanged;
    mod expansion;
    mod expiring;
    mod ezid;
    mod fail_files;
    mod flow;
    mod given_up;
    mod grown;
    mod holds;
    mod java;
    #[cfg(target_arch = "x86_64")]
    mod killed;
    mod kinds;
    mod locks;
    mod mail;
    mod mail_away;
    mod parts;
    mod pauses;
    mod rebuild;
    mod remote;
    mod restored;
    mod settings;
    mod space;
    mod trouble;
    mod withdrawal;
    mod world;
}
