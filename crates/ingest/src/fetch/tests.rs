use std::path::PathBuf;

use queuekeeper_store::{Digest, Hashers};
use queuekeeper_testkit::origin::{Origin, OriginFault};
use queuekeeper_testkit::process::free_port;
use tempfile::TempDir;

use super::*;

mod hosts;
mod requests;

pub(super) const QUICK: Settings = Settings {
    connect: Duration::from_mins(1),
    silence: Duration::from_secs(30),
    retries: RetryPolicy {
        attempts: 4,
        within: Duration::from_mins(1),
        first: Duration::from_millis(2),
        most: Duration::from_millis(4),
    },
    hosts: HostLimits {
        connections: 6,
        wait: Duration::from_millis(100),
        failures: 100,
        first: Duration::from_hours(1),
        most: Duration::from_hours(1),
    },
};

pub(super) fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

fn digests_of(content: &[u8], algorithms: &[Algorithm]) -> Digests {
    let mut hashers = Hashers::new(algorithms.iter().copied());
    hashers.update(content);
    hashers.finish()
}

pub(super) struct Fixture {
    pub(super) origin: Origin,
    pub(super) fetcher: Fetcher,
    pub(super) file_root: Arc<FileRoot>,
    pub(super) written: Arc<AtomicU64>,
    directory: TempDir,
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with(QUICK, &["127.0.0.1"]).await
    }

    async fn with(settings: Settings, internal: &[&str]) -> Self {
        let origin = Origin::start().await;
        let internal = internal.iter().map(|host| host.parse().unwrap()).collect();
        let fetcher = Fetcher::new(Guard::new(None, internal), Credentials::default(), settings).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [root, temporary] = ["producer", "temporary"].map(|name| directory.path().join(name));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&temporary).unwrap();
        let file_root = Arc::new(FileRoot::open(&root, &temporary).unwrap());
        Self { origin, fetcher, file_root, written: Arc::default(), directory }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.directory.path().join("producer/a/b")
    }

    fn leftovers(&self) -> usize {
        std::fs::read_dir(self.directory.path().join("temporary")).unwrap().count()
    }

    pub(super) async fn fetch(&self, path: &str, expected: &Expected) -> Result<Fetched, FetchError> {
        let url = self.origin.url(path).parse().unwrap();
        self.fetcher.fetch(&url, expected, &self.file_root, "a/b", &self.written).await
    }

    /// The ranges that were requested.
    fn ranges(&self) -> Vec<Option<String>> {
        let range = |headers: &reqwest::header::HeaderMap| Some(headers.get("range")?.to_str().ok()?.to_owned());
        self.origin.take_requests().iter().map(|request| range(&request.headers)).collect()
    }
}

pub(super) fn any() -> Expected {
    Expected { size: None, most_bytes: 1 << 20, digests: Digests::default() }
}

fn exactly(content: &[u8]) -> Expected {
    Expected { size: Some(content.len() as u64), digests: digests_of(content, &[Algorithm::Md5]), ..any() }
}

#[tokio::test]
async fn a_file_is_fetched_with_its_digests_and_found_again() {
    let fixture = Fixture::start().await;
    let content = content(100_000);
    fixture.origin.serve("/f?key=secret", content.clone());
    let fetched = fixture.fetch("/f?key=secret", &exactly(&content)).await.unwrap();
    let all = digests_of(&content, &[Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512]);
    assert_eq!((fetched.size, &fetched.digests, fetched.attempts), (100_000, &all, 1));
    assert_eq!(fetched.media_type.as_deref(), Some("text/plain"));
    assert_eq!(fixture.written.load(Ordering::Relaxed), 100_000);
    assert!(std::fs::read(fixture.file()).unwrap() == content);
    let again = fixture.fetch("/f?key=secret", &exactly(&content)).await.unwrap();
    assert_eq!((again.digests, again.attempts), (all, 0));
    assert_eq!(fixture.ranges().len(), 1);
    // What is there is not believed.
    std::fs::write(fixture.file(), vec![0; 100_000]).unwrap();
    assert_eq!(fixture.fetch("/f?key=secret", &exactly(&content)).await.unwrap().attempts, 1);
    assert!(std::fs::read(fixture.file()).unwrap() == content);
    assert_eq!(fixture.leftovers(), 0);

    // One of some megabytes is digested by two threads.
    for size in [0, (1 << 20) - 1, 1 << 20, 5_000_000] {
        let content = self::content(size);
        fixture.origin.serve("/g", content.clone());
        fixture.origin.fail("/g", [OriginFault::Cut(2_000_000)]);
        let expected = Expected { most_bytes: 1 << 30, ..any() };
        let digests = fixture.fetch("/g", &expected).await.unwrap().digests;
        assert_eq!(digests, digests_of(&content, &[Algorithm::Sha256, Algorithm::Sha512]), "{size}");
        let _ = fixture.origin.take_requests();
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_is_gone_on_with_where_it_broke_off() {
    let fixture = Fixture::start().await;
    let content = content(100_000);
    fixture.origin.serve("/f", content.clone());
    fixture.origin.fail("/f", [OriginFault::Cut(40_000), OriginFault::Status(503, Some("0")), OriginFault::Cut(10)]);
    // The entity tag proves both parts to be of one content.
    let fetched = fixture.fetch("/f", &any()).await.unwrap();
    assert_eq!((fetched.size, fetched.attempts), (100_000, 4));
    assert!(std::fs::read(fixture.file()).unwrap() == content);
    let ranges = fixture.ranges();
    assert!(ranges[0].is_none() && ranges[1..].iter().all(Option::is_some), "{ranges:?}");

    // Without it, nor a digest, all is fetched again.
    fixture.origin.serve_without_tag("/g", content.clone());
    fixture.origin.fail("/g", [OriginFault::Cut(40_000)]);
    fixture.fetch("/g", &any()).await.unwrap();
    assert_eq!(fixture.ranges(), [None, None]);
    // With a digest it is not.
    fixture.origin.fail("/g", [OriginFault::Cut(40_000), OriginFault::IgnoreRange]);
    std::fs::remove_file(fixture.file()).unwrap();
    fixture.fetch("/g", &exactly(&content)).await.unwrap();
    assert_eq!(fixture.ranges().len(), 2);
    assert!(std::fs::read(fixture.file()).unwrap() == content);
}

#[tokio::test]
async fn an_attempt_goes_on_with_what_the_one_before_left_if_a_digest_proves_it_right() {
    use std::io::Write as _;
    let fixture = Fixture::start().await;
    let content = content(100_000);
    fixture.origin.serve("/f", content.clone());
    let leave = |bytes: &[u8]| fixture.file_root.begin("a/b").unwrap().file().write_all(bytes).unwrap();
    leave(&content[..30_000]);
    assert_eq!(fixture.fetch("/f", &exactly(&content)).await.unwrap().attempts, 1);
    assert_eq!(fixture.ranges(), [Some("bytes=30000-".to_owned())]);
    // Wrong, complete, and too long leftovers.
    for left in [vec![7; 30_000], content.clone(), vec![7; 100_000], vec![7; 200_000]] {
        std::fs::remove_file(fixture.file()).unwrap();
        leave(&left);
        assert_eq!(fixture.fetch("/f", &exactly(&content)).await.unwrap().size, 100_000);
        assert!(std::fs::read(fixture.file()).unwrap() == content);
    }
    // Without a digest it may be anything.
    std::fs::remove_file(fixture.file()).unwrap();
    leave(&vec![7; 30_000]);
    fixture.fetch("/f", &any()).await.unwrap();
    assert!(std::fs::read(fixture.file()).unwrap() == content);
    assert_eq!(fixture.leftovers(), 0);
}

#[tokio::test]
async fn content_that_changes_between_attempts_is_never_mixed() {
    let fixture = Fixture::start().await;
    let (old, new) = (vec![1; 50_000], vec![2; 60_000]);
    for expected in [any(), exactly(&new)] {
        fixture.origin.serve("/f", old.clone());
        let faults = [OriginFault::Cut(20_000), OriginFault::Replace(new.clone().into())];
        fixture.origin.fail("/f", faults);
        let expected = Expected { size: None, ..expected };
        fixture.fetch("/f", &expected).await.unwrap();
        assert!(std::fs::read(fixture.file()).unwrap() == new);
        std::fs::remove_file(fixture.file()).unwrap();
    }
    // Where only the digest differs.
    fixture.origin.serve_without_tag("/g", old);
    fixture.origin.fail("/g", [OriginFault::Cut(20_000), OriginFault::Replace(new.clone().into())]);
    fixture.fetch("/g", &Expected { size: None, ..exactly(&new) }).await.unwrap();
    assert!(std::fs::read(fixture.file()).unwrap() == new);
}

#[tokio::test]
async fn what_is_wrong_for_good_fails_at_once_and_leaves_nothing() {
    let fixture = Fixture::start().await;
    let content = content(100_000);
    fixture.origin.serve("/f", content.clone());
    let itself = || OriginFault::Redirect(Some("/f".to_owned()));
    let to = |url: &str| OriginFault::Redirect(Some(url.to_owned()));
    let right = exactly(&content);
    let other = Expected { digests: digests_of(b"other", &[Algorithm::Sha1]), ..any() };
    let cases: Vec<(Vec<OriginFault>, Expected, &str, usize)> = vec![
        (vec![OriginFault::Status(404, None)], any(), "the origin answers 404 Not Found", 1),
        (vec![OriginFault::Status(403, None)], any(), "403 Forbidden", 1),
        (vec![], Expected { size: Some(99_999), ..any() }, "expected 99999 bytes, found 100000", 1),
        (vec![OriginFault::Chunked(0)], Expected { size: Some(99_990), ..any() }, "expected 99990 bytes", 1),
        (vec![OriginFault::Chunked(2_000)], right.clone(), "more than 101000 bytes", 1),
        (vec![OriginFault::Chunked(900)], right.clone(), "expected 100000 bytes, found 100900", 1),
        (vec![], Expected { most_bytes: 50_000, ..any() }, "more than 50000 bytes", 1),
        (vec![OriginFault::Chunked(0)], Expected { most_bytes: 50_000, ..any() }, "more than 50000 bytes", 1),
        (vec![], other, "expected the sha1 digest", 1),
        (vec![OriginFault::LengthOffBy(-10)], right.clone(), "expected 100000 bytes, found 99990", 1),
        (vec![OriginFault::Encoded], any(), "compressed", 1),
        (vec![itself(), itself(), itself(), itself(), itself(), itself()], any(), "more than 5 times", 6),
        (vec![OriginFault::Redirect(None)], any(), "without a location", 1),
        (vec![to("http://[")], any(), "an invalid URL", 1),
        (vec![to("http://169.254.169.254/latest")], any(), "has the metadata service address 169.254.169.254", 1),
        (vec![to("http://[::ffff:10.0.0.1]/")], any(), "private address", 1),
        (vec![to("file:///etc/passwd")], any(), "the scheme file is not supported", 1),
        // It is not the deposit's URL that has one.
        (
            vec![to("http://user:secret@127.0.0.1/")],
            any(),
            "/f: redirected to 127.0.0.1: the URL has a user name or password",
            1,
        ),
        (vec![to("http://127.0.0.2:1/")], any(), "/f: redirected to 127.0.0.2:1: host 127.0.0.2 has the loopback", 1),
        (vec![to("/gone?key=secret")], any(), "REDIRECTED: the origin answers 404 Not Found", 2),
    ];
    let redirected = format!("/f: redirected to {}", fixture.origin.address());
    for (faults, expected, message, requests) in cases {
        let message = &message.replace("REDIRECTED", &redirected);
        fixture.origin.fail("/f", faults);
        let error = fixture.fetch("/f", &expected).await.expect_err(message);
        let shown = error.to_string();
        assert!(
            shown.contains(message) && !error.is_temporary() && !shown.contains("secret"),
            "{shown}, not {message}"
        );
        assert_eq!(fixture.ranges().len(), requests, "{message}");
        assert!(!fixture.file().exists() && fixture.leftovers() == 0, "{message}");
    }
    fixture.origin.fail("/f", [itself(), itself(), itself(), itself(), itself()]);
    assert_eq!(fixture.fetch("/f", &right).await.unwrap().attempts, 1);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_then_left_to_the_daemon() {
    let fixture = Fixture::start().await;
    fixture.origin.serve("/f?q=secret", content(100));
    let four = |fault: OriginFault| vec![fault; 4];
    for (faults, message) in [
        (four(OriginFault::Status(503, None)), "the origin answers 503 Service Unavailable, after 4 requests"),
        (four(OriginFault::Status(429, None)), "429"),
        (four(OriginFault::Cut(0)), "after 4 requests"),
    ] {
        fixture.origin.fail("/f?q=secret", faults);
        let error = fixture.fetch("/f?q=secret", &any()).await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(message) && error.is_temporary() && !shown.contains("secret"), "{shown}, not {message}");
        assert!(shown.contains("/f?..: "), "{shown}");
    }
    // An origin that announces more than it has says so in the end.
    fixture.origin.fail("/f?q=secret", [OriginFault::LengthOffBy(10)]);
    assert_eq!(fixture.fetch("/f?q=secret", &any()).await.unwrap().attempts, 2);
    std::fs::remove_file(fixture.file()).unwrap();
    // A wish that would keep a worker waiting is for the daemon at once, however little that is of the attempts' time.
    for (text, seconds) in [("3600", 3_600), ("30", 30), ("6", 6)] {
        let _before = fixture.origin.take_requests();
        fixture.origin.fail("/f?q=secret", [OriginFault::Status(429, Some(text))]);
        let error = fixture.fetch("/f?q=secret", &any()).await.unwrap_err();
        assert_eq!((error.retry_after(), error.is_temporary()), (Some(Duration::from_secs(seconds)), true));
        assert_eq!(fixture.origin.take_requests().len(), 1, "{text}");
    }

    let url = format!("http://127.0.0.1:{}/?q=secret", free_port()).parse().unwrap();
    let error = fixture.fetcher.fetch(&url, &any(), &fixture.file_root, "x", &fixture.written).await.unwrap_err();
    assert!(error.is_temporary() && !error.to_string().contains("secret"), "{error}");

    let hasty = Fixture::with(Settings { silence: Duration::from_secs(1), ..QUICK }, &["127.0.0.1"]).await;
    hasty.origin.serve("/f", content(100_000));
    hasty.origin.fail("/f", [OriginFault::Stall(50_000)]);
    // A machine that is busy may be as silent as the origin.
    assert!(hasty.fetch("/f", &any()).await.unwrap().attempts >= 2);
    fixture.origin.serve("/slow", content(100_000));
    fixture.origin.fail("/slow", [OriginFault::Slow(Duration::from_millis(2))]);
    assert_eq!(fixture.fetch("/slow", &any()).await.unwrap().attempts, 1);
}

/// Answers each request with these bytes, and closes the connection.
async fn serve_raw(answer: &'static [u8]) -> (ContentUrl, tokio::task::JoinHandle<()>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/f", listener.local_addr().unwrap()).parse().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        }
    });
    (url, task)
}

#[tokio::test]
async fn what_ends_with_the_connection_is_taken_only_where_its_size_is_known() {
    let fixture = Fixture::start().await;
    let (url, server) = serve_raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ncontent").await;
    let fetch = async |expected: &Expected| {
        fixture.fetcher.fetch(&url, expected, &fixture.file_root, "a/b", &fixture.written).await
    };
    let error = fetch(&any()).await.unwrap_err();
    assert!(error.to_string().contains("declare its size") && !error.is_temporary(), "{error}");
    assert_eq!(fetch(&Expected { size: Some(7), ..any() }).await.unwrap().size, 7);
    let error = fetch(&exactly(b"content that was cut")).await.unwrap_err();
    assert!(
        error.to_string().contains("broke off after 7 bytes: 20 were announced") && error.is_temporary(),
        "{error}"
    );
    server.abort();
    // No HTTP at all.
    let (url, server) = serve_raw(b"220 mail.example.edu ESMTP\r\n").await;
    let error = fixture.fetcher.fetch(&url, &any(), &fixture.file_root, "x", &fixture.written).await.unwrap_err();
    assert!(matches!(error.cause(), FetchCause::Connection(_)), "{error}");
    server.abort();
}

#[tokio::test]
async fn a_given_up_attempt_does_not_write_into_the_next_one() {
    let fixture = Fixture::start().await;
    let content = content(500_000);
    fixture.origin.serve("/f", content.clone());
    fixture.origin.fail("/f", [OriginFault::Slow(Duration::from_millis(1))]);
    let given_up = tokio::time::timeout(Duration::from_millis(20), fixture.fetch("/f", &exactly(&content))).await;
    assert!(given_up.is_err());
    fixture.fetch("/f", &exactly(&content)).await.unwrap();
    assert!(std::fs::read(fixture.file()).unwrap() == content);
    let digest = Digest::from_hex(Algorithm::Crc32, "00000000").unwrap();
    let wrong = Expected { digests: Digests::from_iter([digest]), ..any() };
    assert!(fixture.fetch("/f", &wrong).await.unwrap_err().to_string().contains("crc32"));
}
