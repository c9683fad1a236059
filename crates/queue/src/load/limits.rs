//! What a dump may hold to be loaded somewhere.

use zookeeper_client::{Acl, Acls};

use crate::handle::overhead_of;

/// What ZooKeeper takes as a request, by default (`jute.maxbuffer`).
pub(super) const SERVER_LIMIT_BYTES: usize = 0xf_ffff;

/// Header, lengths of path and value, and flags of a single creation, in bytes.
const CREATION_BYTES: usize = 20;

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

#[cfg(test)]
mod tests {
    use zookeeper_client::{AuthId, Permission};

    use super::*;

    #[test]
    fn a_request_grows_with_chroot_and_acl_and_a_number_is_one_that_a_counter_reaches() {
        let open = LoadLimits::new(7, "", &[]);
        assert_eq!((open.largest_number(), open.request_bytes("/ab", b"1234567")), (7, 3 + 7 + 20 + 4 + 23));
        let acl = Acl::new(Permission::ALL, AuthId::new("digest", "user:hash"));
        let closed = LoadLimits::new(u32::MAX, "/merritt", &[acl]);
        assert_eq!(closed.request_bytes("/", b""), 1 + 20 + 4 + (12 + 6 + 9) + 8);
        assert_eq!(closed.largest_number(), 0x7fff_fffe);
    }
}
