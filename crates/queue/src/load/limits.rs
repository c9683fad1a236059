//! What a dump may hold to be loaded somewhere.

use zookeeper_client::{Acl, Acls};

use crate::handle::overhead_of;

/// What ZooKeeper takes as a request, by default (`jute.maxbuffer`).
pub(super) const SERVER_LIMIT_BYTES: usize = 0xf_ffff;

/// Header, lengths and flags of a single creation, in bytes.
pub(super) const CREATION_BYTES: usize = 24;

/// What a dump may hold to be loaded somewhere.
#[derive(Clone, Copy, Debug)]
pub struct LoadLimits {
    largest_number: u32,
    /// What chroot and ACL add to each operation.
    overhead_bytes: usize,
}

impl LoadLimits {
    /// Ten million: above what a queue reaches in years, and its counters are led there within minutes.
    pub const LARGEST_NUMBER: u32 = 10_000_000;

    /// The limits of a chroot and of an ACL for new znodes, which is the open one where it is empty. No job, batch or
    /// request may have a larger number: what it takes to advance the counters grows with it.
    #[must_use]
    pub fn new(largest_number: u32, chroot: &str, acl: &[Acl]) -> Self {
        let acl = if acl.is_empty() { Acls::anyone_all() } else { Acls::new(acl) };
        Self {
            // ZooKeeper's counter is an int.
            largest_number: largest_number.min(i32::MAX.unsigned_abs() - 1),
            overhead_bytes: overhead_of(acl.iter(), chroot),
        }
    }

    pub(super) fn largest_number(&self) -> u32 {
        self.largest_number
    }

    /// How large the request is that makes a znode, by the lengths of its path and of its value, in bytes.
    pub(super) fn request_bytes(&self, path: &str, data: &[u8]) -> usize {
        path.len() + data.len() + self.overhead_bytes + CREATION_BYTES
    }
}
