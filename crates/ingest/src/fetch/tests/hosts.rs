//! Hosts that are away.

use super::*;

#[tokio::test]
async fn a_host_that_fails_again_and_again_is_left_alone_and_others_are_not() {
    let hosts = HostLimits { failures: 6, ..QUICK.hosts };
    let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    fixture.origin.serve("/a", "content");
    let unavailable = || OriginFault::Status(503, None);
    // An answer in between, even that there is no such file, and it counts from the beginning.
    fixture.origin.fail("/a", [unavailable(), unavailable(), unavailable(), unavailable()]);
    assert!(fixture.fetch("/a", &any()).await.unwrap_err().is_temporary());
    assert!(!fixture.fetch("/missing", &any()).await.unwrap_err().is_temporary());
    fixture.origin.fail("/a", std::iter::repeat_with(unavailable).take(6));
    assert!(
        fixture
            .fetch("/a", &any())
            .await
            .unwrap_err()
            .to_string()
            .ends_with("503 Service Unavailable, after 4 attempts")
    );
    let error = fixture.fetch("/a", &any()).await.unwrap_err();
    assert!(
        error.to_string().contains("failed 6 requests in a row, the last one as: the origin answers 503"),
        "{error}"
    );
    assert!(error.is_temporary() && error.retry_after().is_some_and(|wait| wait.as_secs() > 3_000), "{error}");
    assert_eq!(fixture.origin.take_requests().len(), 4 + 1 + 6);
    assert_eq!(fixture.fetcher.hosts.away(), 1);

    let url = fixture.origin.url("/a").parse().unwrap();
    assert!(matches!(fixture.fetcher.size(&url).await.unwrap_err().cause(), Cause::Away { .. }));
    let sent = fixture.fetcher.send_to(Method::POST, &url, HeaderMap::new(), String::new()).await;
    assert!(matches!(sent.unwrap_err().cause(), Cause::Away { .. }));
    assert!(fixture.origin.take_requests().is_empty());

    let mut other = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    other.fetcher = other.fetcher.sharing(&fixture.fetcher.hosts);
    other.origin.serve("/a", "content");
    assert_eq!(other.fetch("/a", &any()).await.unwrap().attempts, 1);
    let shared = other.fetcher.size(&url).await.unwrap_err();
    assert!(matches!(shared.cause(), Cause::Away { .. }), "{shared}");
}

#[tokio::test]
async fn what_may_be_of_one_file_or_of_the_method_does_not_count_against_a_host() {
    let hosts = HostLimits { failures: 1, ..QUICK.hosts };
    let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    fixture.origin.serve("/a", "content");
    let url = fixture.origin.url("/a").parse().unwrap();
    // Of a program that knows no `HEAD`.
    fixture.origin.fail("/a", [OriginFault::Status(503, None)]);
    assert!(fixture.fetcher.size(&url).await.is_err());
    for status in [500, 501, 404, 403] {
        fixture.origin.fail("/a", std::iter::repeat_n(OriginFault::Status(status, None), 4));
        let error = fixture.fetch("/a", &any()).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Status { .. }), "{status}: {error}");
        while fixture.fetch("/a", &any()).await.is_err() {}
        std::fs::remove_file(fixture.file()).unwrap();
    }
    for status in [429, 502, 503, 504] {
        let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
        fixture.origin.serve("/a", "content");
        fixture.origin.fail("/a", [OriginFault::Status(status, None)]);
        let error = fixture.fetch("/a", &any()).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::Away { failures: 1, .. }), "{status}: {error}");
    }
}

#[test]
fn a_host_that_was_away_is_tried_by_one_request_at_a_time() {
    let limits = HostLimits { failures: 1, first: Duration::ZERO, most: Duration::ZERO };
    let (hosts, cause) = (Hosts::default(), Cause::Connection("refused".to_owned()));
    let enter = || hosts.enter("a:80".to_owned(), limits);
    enter().unwrap().failed(&cause);
    assert_eq!(hosts.away(), 0);
    let trial = enter().unwrap();
    assert_eq!(hosts.away(), 1);
    assert!(matches!(enter().unwrap_err(), Cause::Away { failures: 1, .. }));
    // Given up, it does not keep others from trying.
    drop(trial);
    let trial = enter().unwrap();
    let waiting = enter().unwrap_err();
    trial.failed(&cause);
    assert!(matches!(waiting, Cause::Away { wait, .. } if !wait.is_zero()));
    let trial = enter().unwrap();
    assert!(matches!(enter().unwrap_err(), Cause::Away { failures: 2, .. }));
    trial.answered();
    assert_eq!(hosts.away(), 0);
    let [first, second] = [enter().unwrap(), enter().unwrap()];
    first.answered();
    second.answered();
}
