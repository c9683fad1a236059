//! Origins and name servers that lead to where nothing may be fetched from.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::AtomicUsize;

use super::tests::{Fixture, QUICK, any, content};
use super::*;
use queuekeeper_testkit::origin::OriginFault;

/// A loopback address that no guard here allows.
const FORBIDDEN: &str = "127.0.0.2";

/// Gives one answer to each look-up, the last one for ever, and counts them.
fn name_server(answers: &[&[&str]]) -> (Lookup, Arc<AtomicUsize>) {
    let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
    let answers: Vec<Vec<IpAddr>> = answers.iter().map(parse).collect();
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let lookup = move |_| -> futures::future::BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let answer = answers[number.min(answers.len() - 1)].iter().map(|address| SocketAddr::new(*address, 0));
        let answer: Vec<_> = answer.collect();
        Box::pin(async move { Ok(answer) })
    };
    (Arc::new(lookup), count)
}

/// A fixture, and a server at [`FORBIDDEN`] with the port of its origin, which must get no connection.
async fn trapped() -> (Fixture, TcpListener) {
    let fixture = Fixture::start().await;
    let trap = TcpListener::bind((FORBIDDEN, fixture.origin.address().port())).unwrap();
    trap.set_nonblocking(true).unwrap();
    fixture.origin.serve("/f", content(100_000));
    (fixture, trap)
}

fn is_untouched(trap: &TcpListener) -> bool {
    trap.accept().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn what_a_name_server_answers_later_is_checked_anew_and_never_connected_to_unchecked() {
    let (fixture, trap) = trapped().await;
    let url: ContentUrl = format!("http://files.example.edu:{}/f", fixture.origin.address().port()).parse().unwrap();
    let fetch = async |answers: &[&[&str]]| {
        let (lookup, count) = name_server(answers);
        let guard = Guard::new(None, vec!["127.0.0.1".parse().unwrap()]);
        let fetcher = Fetcher::asking(lookup, guard, Credentials::default(), QUICK).unwrap();
        let _ = std::fs::remove_file(fixture.file());
        let fetched = fetcher.fetch(&url, &any(), &fixture.file_root, "a/b", &fixture.written).await;
        (fetched, count.load(Ordering::Relaxed))
    };
    // It is asked once for a connection, and the answer that was checked is the one that is used.
    let (fetched, count) = fetch(&[&["127.0.0.1"], &[FORBIDDEN]]).await;
    assert_eq!((fetched.unwrap().size, count), (100_000, 1));
    // The next attempt has a connection and a look-up of its own.
    fixture.origin.fail("/f", [OriginFault::Cut(40_000)]);
    let (fetched, count) = fetch(&[&["127.0.0.1"], &[FORBIDDEN]]).await;
    let error = fetched.unwrap_err();
    assert!(error.to_string().contains("files.example.edu has the loopback address 127.0.0.2"), "{error}");
    assert_eq!((error.is_temporary(), count), (false, 2));
    // Of several addresses only those that are allowed are tried.
    let (fetched, _) = fetch(&[&[FORBIDDEN, "10.0.0.1", "127.0.0.1", "169.254.169.254"]]).await;
    assert_eq!(fetched.unwrap().size, 100_000);
    for (address, class) in [
        ("127.0.0.2", "loopback"),
        ("::ffff:127.0.0.2", "loopback"),
        ("64:ff9b::7f00:2", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "special-purpose"),
        ("::", "special-purpose"),
        ("10.0.0.1", "private"),
        ("fc00::1", "private"),
        ("169.254.1.1", "link-local"),
        ("fe80::1", "link-local"),
        ("169.254.169.254", "metadata service"),
        ("fd00:ec2::254", "metadata service"),
    ] {
        let error = fetch(&[&[address]]).await.0.unwrap_err();
        assert!(error.to_string().contains(&format!("{class} address {address}")), "{error}");
        assert!(matches!(error.cause(), FetchCause::Refused(_)) && !error.is_temporary(), "{error}");
    }
    // A redirect leads to a name whose look-up is checked as well.
    let elsewhere = format!("http://metadata.example.edu:{}/", trap.local_addr().unwrap().port());
    fixture.origin.fail("/f", [OriginFault::Redirect(Some(elsewhere))]);
    let error = fetch(&[&["127.0.0.1"], &["169.254.169.254"]]).await.0.unwrap_err();
    assert!(error.to_string().contains("metadata.example.edu has the metadata service address"), "{error}");
    assert!(is_untouched(&trap));
}

#[tokio::test]
async fn no_spelling_of_an_address_is_fetched_from_at_first_or_after_a_redirect() {
    let (fixture, trap) = trapped().await;
    let port = trap.local_addr().unwrap().port();
    for host in [
        "127.0.0.2",
        "127.0.0.2.",
        "127.2",
        "2130706434",
        "0x7f000002",
        "0x7F.0.0.0x2",
        "0177.0.0.2",
        "017700000002",
        "%31%32%37.0.0.2",
        "[::ffff:127.0.0.2]",
        "[::ffff:7f00:2]",
        "[0:0:0:0:0:FFFF:7F00:0002]",
        "[::127.0.0.2]",
        "[64:ff9b::127.0.0.2]",
        "[64:ff9b:1::7f00:2]",
        "[2002:7f00:2::]",
        "[::1]",
        "0",
        "[::]",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[::ffff:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "169.254.1.1",
        "[fe80::1]",
        "167772161",
        "012.1",
        "0xac100001",
        "3232235521",
        "[fd12::1]",
    ] {
        let target = format!("http://{host}:{port}/f");
        for to in [&target, &format!("//{host}:{port}/f"), &format!("\\\\{host}:{port}\\f")] {
            fixture.origin.fail("/f", [OriginFault::Redirect(Some(to.clone()))]);
            let error = fixture.fetch("/f", &any()).await.expect_err(to);
            assert!(matches!(error.cause(), FetchCause::Refused(_)) && !error.is_temporary(), "{to}: {error}");
            assert_eq!(fixture.origin.take_requests().len(), 1, "{to}");
        }
        let error =
            fixture.fetcher.fetch(&target.parse().unwrap(), &any(), &fixture.file_root, "a/b", &fixture.written).await;
        assert!(matches!(error.expect_err(host).cause(), FetchCause::Refused(_)), "{host}");
        let size = fixture.fetcher.size(&target.parse().unwrap()).await;
        assert!(matches!(size.expect_err(host).cause(), FetchCause::Refused(_)), "{host}");
    }
    assert!(is_untouched(&trap));
}

#[tokio::test]
async fn a_redirect_leads_to_no_longer_url_than_a_deposit_may_have() {
    let (fixture, _trap) = trapped().await;
    let start = fixture.origin.url("/g?");
    let target = |bytes: usize| format!("{start}{}", "x".repeat(bytes - start.len()));
    let path = |url: &str| url[fixture.origin.url("").len()..].to_owned();
    let longest = target(crate::url::MOST_BYTES);
    fixture.origin.serve(&path(&longest), content(10));
    fixture.origin.fail("/f", [OriginFault::Redirect(Some(longest.clone()))]);
    assert_eq!(fixture.fetch("/f", &any()).await.unwrap().size, 10);
    std::fs::remove_file(fixture.file()).unwrap();
    let _ = fixture.origin.take_requests();
    // Also where what it says is shorter, but not what it leads to.
    let relative = path(&target(crate::url::MOST_BYTES + 1));
    for to in [format!("{longest}x"), relative] {
        fixture.origin.fail("/f", [OriginFault::Redirect(Some(to))]);
        let error = fixture.fetch("/f", &any()).await.unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("a URL that is longer than 16384 bytes") && shown.len() < 300, "{shown}");
        assert!(!error.is_temporary());
        assert_eq!(fixture.origin.take_requests().len(), 1);
    }
}
