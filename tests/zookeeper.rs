//! Connections, sessions and the private server, against real servers.

#[path = "support"]
mod support {
    pub(crate) mod certs;
    pub(crate) mod proxy;
    pub(crate) mod tree;
    pub(crate) mod wait;
}

#[path = "zookeeper"]
mod zookeeper {
    mod connect;
    mod server;
    mod session;
    mod tls;
}
