//! Where requests go, with which credentials, and the size of a file.

use super::*;

#[tokio::test]
async fn addresses_are_checked_where_names_are_looked_up() {
    let refused = Fixture::with(QUICK, &[]).await;
    refused.origin.serve("/f", content(10));
    let port = refused.origin.address().port();
    let url: ContentUrl = format!("http://localhost:{port}/f").parse().unwrap();
    let fetch = async |fixture: &Fixture| {
        fixture.fetcher.fetch(&url, &any(), &fixture.file_root, "a/b", &fixture.written).await
    };
    let error = fetch(&refused).await.unwrap_err();
    assert!(matches!(error.cause(), FetchCause::Refused(_)) && !error.is_temporary(), "{error}");
    assert_eq!(refused.origin.take_requests(), []);
    let allowed = Fixture::with(QUICK, &["localhost"]).await;
    assert_eq!(fetch(&allowed).await.unwrap().size, 10);
}

#[tokio::test]
async fn a_size_is_found_without_the_content() {
    let fixture = Fixture::start().await;
    fixture.origin.serve("/f", content(100_000));
    let url: ContentUrl = fixture.origin.url("/f").parse().unwrap();
    let size = async || fixture.fetcher.size(&url).await.unwrap();
    assert_eq!(size().await, Some(100_000));
    fixture.origin.fail("/f", [OriginFault::Status(405, None)]);
    assert_eq!(size().await, Some(100_000));
    fixture.origin.fail("/f", [OriginFault::Status(403, None), OriginFault::IgnoreRange]);
    assert_eq!(size().await, Some(100_000));
    fixture.origin.fail("/f", [OriginFault::Status(403, None), OriginFault::Chunked(0)]);
    assert_eq!(size().await, Some(100_000));
    fixture.origin.serve("/f", Vec::new());
    fixture.origin.fail("/f", [OriginFault::Status(403, None)]);
    assert_eq!(size().await, Some(0));
    fixture.origin.fail("/f", [OriginFault::Status(503, Some("7"))]);
    let error = fixture.fetcher.size(&url).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn credentials_go_to_their_host_alone() {
    let (fixture, other) = (Fixture::start().await, Origin::start().await);
    fixture.origin.serve("/f", content(10));
    other.serve("/f", content(10));
    let text = format!("{}: {{username: merritt, password: secret}}\n", fixture.origin.address());
    let credentials = Credentials::parse(std::path::Path::new("c"), text.as_bytes()).unwrap();
    let guard = Guard::new(None, vec!["127.0.0.1".parse().unwrap()]);
    let fetcher = Fetcher::new(guard, credentials, QUICK).unwrap();
    let url = fixture.origin.url("/f").parse().unwrap();
    fetcher.fetch(&url, &any(), &fixture.file_root, "a", &fixture.written).await.unwrap();
    fixture.origin.fail("/f", [OriginFault::Redirect(Some(other.url("/f")))]);
    fetcher.fetch(&url, &any(), &fixture.file_root, "a", &fixture.written).await.unwrap();
    let sent = |origin: &Origin| {
        let requests = origin.take_requests();
        requests.iter().map(|request| request.headers.contains_key("authorization")).collect::<Vec<_>>()
    };
    assert_eq!((sent(&fixture.origin), sent(&other)), (vec![true, true], vec![false]));
}
