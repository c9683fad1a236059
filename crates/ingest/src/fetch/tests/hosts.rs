//! Hosts that are away.

use queuekeeper_testkit::wait::eventually;

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
            .ends_with("503 Service Unavailable, after 4 requests")
    );
    let error = fixture.fetch("/a", &any()).await.unwrap_err();
    assert!(
        error.to_string().contains("failed 6 requests in a row, the last one with: the origin answers 503"),
        "{error}"
    );
    assert!(error.is_temporary() && error.retry_after().is_some_and(|wait| wait.as_secs() > 3_000), "{error}");
    assert_eq!(fixture.origin.take_requests().len(), 4 + 1 + 6);
    assert_eq!(fixture.fetcher.hosts.away(), 1);

    let url = fixture.origin.url("/a").parse().unwrap();
    assert!(matches!(fixture.fetcher.size(&url).await.unwrap_err().cause(), FetchCause::Away { .. }));
    let sent = fixture.fetcher.send_to(Method::POST, &url, HeaderMap::new(), String::new()).await;
    assert!(matches!(sent.unwrap_err().cause(), FetchCause::Away { .. }));
    assert!(fixture.origin.take_requests().is_empty());

    let mut other = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    other.fetcher = other.fetcher.sharing(&fixture.fetcher.hosts);
    other.origin.serve("/a", "content");
    assert_eq!(other.fetch("/a", &any()).await.unwrap().attempts, 1);
    let shared = other.fetcher.size(&url).await.unwrap_err();
    assert!(matches!(shared.cause(), FetchCause::Away { .. }), "{shared}");
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
        assert!(matches!(error.cause(), FetchCause::Status { .. }), "{status}: {error}");
        while fixture.fetch("/a", &any()).await.is_err() {}
        std::fs::remove_file(fixture.file()).unwrap();
    }
    for status in [429, 502, 503, 504] {
        let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
        fixture.origin.serve("/a", "content");
        fixture.origin.fail("/a", [OriginFault::Status(status, None)]);
        let error = fixture.fetch("/a", &any()).await.unwrap_err();
        assert!(matches!(error.cause(), FetchCause::Away { failures: 1, .. }), "{status}: {error}");
    }
}

#[test]
fn a_host_that_was_away_is_tried_by_one_request_at_a_time() {
    let limits = HostLimits { failures: 1, first: Duration::ZERO, most: Duration::ZERO, ..QUICK.hosts };
    let (hosts, cause) = (Hosts::default(), FetchCause::Connection("refused".to_owned()));
    let enter = || hosts.enter("a:80".to_owned(), limits);
    enter().unwrap().failed(&cause);
    assert_eq!(hosts.away(), 0);
    let trial = enter().unwrap();
    assert_eq!(hosts.away(), 1);
    assert!(matches!(enter().unwrap_err(), FetchCause::Away { failures: 1, .. }));
    // Given up, it does not keep others from trying.
    drop(trial);
    let trial = enter().unwrap();
    let waiting = enter().unwrap_err();
    trial.failed(&cause);
    assert!(matches!(waiting, FetchCause::Away { wait, .. } if !wait.is_zero()));
    let trial = enter().unwrap();
    assert!(matches!(enter().unwrap_err(), FetchCause::Away { failures: 2, .. }));
    trial.answered();
    assert_eq!(hosts.away(), 0);
    let [first, second] = [enter().unwrap(), enter().unwrap()];
    first.answered();
    second.answered();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_gets_so_many_connections_and_only_the_jobs_that_have_one_go_on() {
    let hosts = HostLimits { connections: 2, wait: Duration::from_secs(1), ..QUICK.hosts };
    let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    fixture.origin.serve("/slow", content(100));
    fixture.origin.serve("/a", "content");
    fixture.origin.fail("/slow", std::iter::repeat_n(OriginFault::Stall(10), 2));
    let fetch = |job: &Fetcher, path: &str, name: &'static str| {
        let (job, file_root, url) =
            (job.clone(), Arc::clone(&fixture.file_root), fixture.origin.url(path).parse().unwrap());
        tokio::spawn(async move { job.fetch(&url, &any(), &file_root, name, &Arc::default()).await })
    };
    let [first, second, third] = [(); 3].map(|()| fixture.fetcher.for_job());
    let slow = [fetch(&first, "/slow", "0"), fetch(&second, "/slow", "1")];
    let mut requests = 0;
    eventually(Duration::from_mins(1), "both have a connection", async || {
        requests += fixture.origin.take_requests().len();
        requests == 2
    })
    .await;

    let error = fetch(&third, "/a", "2").await.unwrap().unwrap_err();
    assert!(matches!(error.cause(), FetchCause::Busy { connections: 2, .. }) && error.is_temporary(), "{error}");
    assert!(error.to_string().ends_with("are in use (at most 2)"), "{error}");
    // Sizes have connections of their own, and so has each other host.
    let url = fixture.origin.url("/a").parse().unwrap();
    assert_eq!(third.size(&url).await.unwrap(), Some(7));
    assert_eq!(fixture.origin.take_requests().len(), 1);
    let mut other = Fixture::start().await;
    other.fetcher = other.fetcher.sharing(&fixture.fetcher.hosts);
    other.origin.serve("/a", "content");
    other.fetch("/a", &any()).await.unwrap();

    // The connection of a job is its own, whoever waits.
    let waiting = fetch(&third, "/a", "2");
    let next = fetch(&first, "/a", "0");
    slow[0].abort();
    assert_eq!(next.await.unwrap().unwrap().size, 7);
    assert!(matches!(waiting.await.unwrap().unwrap_err().cause(), FetchCause::Busy { .. }));
    assert_eq!(fixture.origin.take_requests().len(), 1);
    // At its end another job gets it.
    drop(first);
    assert_eq!(fetch(&third, "/a", "2").await.unwrap().unwrap().size, 7);
    slow[1].abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_jobs_of_which_each_keeps_the_connection_that_the_other_needs_do_not_wait_for_each_other() {
    let hosts = HostLimits { connections: 1, wait: Duration::from_secs(2), ..QUICK.hosts };
    let fixture = Fixture::with(Settings { hosts, ..QUICK }, &["127.0.0.1"]).await;
    let other = Origin::start().await;
    for origin in [&fixture.origin, &other] {
        origin.serve("/a", "content");
    }
    let fetch = async |job: &Fetcher, origin: &Origin, name: &'static str| {
        job.fetch(&origin.url("/a").parse().unwrap(), &any(), &fixture.file_root, name, &Arc::default()).await.map(drop)
    };
    let [one, two] = [(); 2].map(|()| fixture.fetcher.for_job());
    fetch(&one, &fixture.origin, "0").await.unwrap();
    fetch(&two, &other, "1").await.unwrap();
    // The step of each ends with its second file.
    let end = async |job: Fetcher, origin: &Origin, name| fetch(&job, origin, name).await;
    let (one, two) = tokio::join!(end(one, &other, "2"), end(two, &fixture.origin, "3"));
    one.unwrap();
    two.unwrap();
}
