//! Connections to ZooKeeper.
