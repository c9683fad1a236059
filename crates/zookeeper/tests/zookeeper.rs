//! Connections, sessions and the private server, against real servers.

#[path = "zookeeper"]
mod zookeeper {
    mod connect;
    mod server;
    mod session;
    mod tls;
}
