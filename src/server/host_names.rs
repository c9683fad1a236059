//! The names of the hosts that sessions are connected from, by reverse DNS.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// How long a name is kept, and the knowledge that there is none.
const LIFETIME: Duration = Duration::from_mins(10);

/// How many addresses are kept.
const MAX_KEPT: usize = 1_000;

/// How many lookups may be in progress: each occupies a thread until the resolver gives up, which may take half a
/// minute.
const MAX_LOOKUPS: usize = 4;

/// How long a round of lookups is waited for. What takes longer is there in a later round.
const ROUND_LIMIT: Duration = Duration::from_secs(2);

/// The longest name of a host (RFC 1035), in bytes.
const MAX_NAME: usize = 253;

/// What is known of addresses: the name, if there is one, and when it was looked up.
type Known = HashMap<IpAddr, (Option<Box<str>>, Instant)>;

/// Names of hosts, looked up in the background and kept for a while.
#[derive(Clone, Debug)]
pub(super) struct HostNames {
    known: Arc<Mutex<Known>>,
    lookups: Arc<Semaphore>,
    lookup: fn(IpAddr) -> Option<String>,
}

impl HostNames {
    /// Names from the resolver of this host.
    pub(super) fn new() -> Self {
        Self::from(|address| dns_lookup::lookup_addr(&address).ok())
    }

    fn from(lookup: fn(IpAddr) -> Option<String>) -> Self {
        Self { known: Arc::default(), lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)), lookup }
    }

    /// Looks up the names of these addresses, those that are not known. The name of this host's loopback says nothing.
    pub(super) async fn look_up(&self, addresses: impl Iterator<Item = IpAddr>) {
        let now = Instant::now();
        self.known.lock().retain(|_, (_, at)| now.duration_since(*at) < LIFETIME);
        let unknown = addresses.filter(|address| !address.is_loopback());
        let mut unknown: Vec<_> = unknown.filter(|address| !self.known.lock().contains_key(address)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        unknown.truncate(MAX_KEPT.saturating_sub(self.known.lock().len()));
        let lookups = join_all(unknown.into_iter().map(|address| self.look_up_one(address)));
        // Those that are not finished by then are started again in the next round, or finish by themselves.
        let _ = timeout(ROUND_LIMIT, lookups).await;
    }

    async fn look_up_one(&self, address: IpAddr) {
        let Ok(permit) = Arc::clone(&self.lookups).acquire_owned().await else { return };
        let (known, lookup) = (Arc::clone(&self.known), self.lookup);
        let looked_up = tokio::task::spawn_blocking(move || {
            let name = lookup(address).and_then(|name| host_name(&name, address));
            known.lock().insert(address, (name, Instant::now()));
            drop(permit);
        });
        // It only fails when it panics, and then there is no name.
        let _ = looked_up.await;
    }

    /// The address, and the name of its host behind it, if it is known: `10.0.0.5:40834 (worker1.example.org)`.
    pub(super) fn named(&self, address: SocketAddr) -> String {
        match self.known.lock().get(&address.ip()) {
            Some((Some(name), _)) => format!("{address} ({name})"),
            Some((None, _)) | None => address.to_string(),
        }
    }
}

/// A name as it may be shown: the owner of the address chose it. A resolver that knows none returns the address.
fn host_name(name: &str, address: IpAddr) -> Option<Box<str>> {
    let name = name.trim_end_matches('.');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain);
    (is_name && name != address.to_string()).then(|| name.into())
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use queuekeeper_testkit::wait::eventually;

    use super::*;

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn a_host_is_named_beside_its_address_once_it_is_looked_up_and_is_not_looked_up_again() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        let names = HostNames::from(|address| {
            LOOKUPS.fetch_add(1, Ordering::Relaxed);
            match address.to_string().as_str() {
                "10.0.0.5" => Some("worker1.example.org.".to_owned()),
                "10.0.0.6" => Some("<script>".to_owned()),
                other => Some(other.to_owned()),
            }
        });
        let sockets = ["10.0.0.5:1", "10.0.0.5:2", "10.0.0.6:1", "10.0.0.7:1", "127.0.0.1:1", "[2001:db8::1]:1"];
        let sockets = sockets.map(socket);
        assert_eq!(names.named(sockets[0]), "10.0.0.5:1");
        let look_up = async || names.look_up(sockets.iter().map(SocketAddr::ip)).await;
        look_up().await;
        let begun = LOOKUPS.load(Ordering::Relaxed);
        assert!(begun <= 4, "one for each address that is not the loopback, and not {begun}");
        // What takes longer than a round is looked up again in the next.
        let are_known = async || {
            look_up().await;
            names.known.lock().len() == 4
        };
        eventually(Duration::from_mins(1), "all but the loopback are known", are_known).await;
        let are_over = async || names.lookups.available_permits() == MAX_LOOKUPS;
        eventually(Duration::from_mins(1), "all lookups are over", are_over).await;
        let lookups = LOOKUPS.load(Ordering::Relaxed);
        look_up().await;
        assert_eq!(LOOKUPS.load(Ordering::Relaxed), lookups, "what is known is not looked up");
        let named = sockets.map(|socket| names.named(socket));
        assert_eq!(
            named,
            [
                "10.0.0.5:1 (worker1.example.org)",
                "10.0.0.5:2 (worker1.example.org)",
                "10.0.0.6:1",
                "10.0.0.7:1",
                "127.0.0.1:1",
                "[2001:db8::1]:1"
            ]
        );
    }

    #[tokio::test]
    async fn a_resolver_that_does_not_answer_ends_no_round_late_and_occupies_few_threads() {
        static IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);
        static ANSWER: OnceLock<()> = OnceLock::new();
        let names = HostNames::from(|_| {
            IN_PROGRESS.fetch_add(1, Ordering::Relaxed);
            ANSWER.wait();
            None
        });
        let began = Instant::now();
        names.look_up((0..20).map(|last| IpAddr::from([10, 0, 0, last]))).await;
        assert!(began.elapsed() >= ROUND_LIMIT, "{:?}", began.elapsed());
        // Their threads begin when the machine lets them.
        let has_begun = async || IN_PROGRESS.load(Ordering::Relaxed) >= MAX_LOOKUPS;
        eventually(Duration::from_secs(30), "as many are in progress as may be", has_begun).await;
        assert_eq!(IN_PROGRESS.load(Ordering::Relaxed), MAX_LOOKUPS);
        assert_eq!(names.named(socket("10.0.0.1:1")), "10.0.0.1:1");
        ANSWER.set(()).unwrap();
    }

    #[tokio::test]
    async fn the_number_of_addresses_is_bounded() {
        let names = HostNames::from(|_| None);
        let addresses = (0..3_000_u32).map(|number| IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
        names.look_up(addresses).await;
        let kept = names.known.lock().len();
        assert!((1..=MAX_KEPT).contains(&kept), "{kept}");
    }
}
