//! Child processes and their ports.

use std::process::Child;

use queuekeeper_zookeeper::child::FreePort;

/// A child process, killed by its id when dropped.
#[derive(Debug)]
pub struct Program(pub Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of the loopback interface that nobody else is given as long as this process lives.
#[must_use]
pub fn free_port() -> u16 {
    let port = FreePort::find().unwrap();
    let number = port.number();
    std::mem::forget(port);
    number
}
