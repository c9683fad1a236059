//! What cannot work: one line that says which store, and what to change.

use std::time::Duration;

use queuekeeper_store::retry::RetryPolicy;
use queuekeeper_store::s3::{AccessKey, Addressing, Credentials, S3Config};
use queuekeeper_store::store::Store as _;
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::s3::{Effect, Fault, Point, S3Server, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::common::{BUCKET, config, item, store};

/// The line that the first look at the store fails with.
async fn line(config: S3Config) -> String {
    let store = store(config).await;
    let line = store.probe().await.unwrap_err().to_string();
    assert!(line.starts_with("store replica: probe s3://") && !line.contains('\n'), "{line}");
    assert!(!line.contains("a-secret-of-the-test-server") && !line.contains("wrong-secret"), "{line}");
    line
}

async fn server(settings: Settings) -> (S3Server, S3Config) {
    let server = S3Server::start(settings).await.unwrap();
    server.create_bucket(BUCKET);
    let mut config = config(&server);
    config.retry.attempts = 2;
    config.timeouts.answer = Duration::from_secs(2);
    (server, config)
}

#[tokio::test]
async fn wrong_credentials_buckets_and_clocks_say_what_to_change() {
    let (server, good) = server(Settings::default()).await;
    let mut config = good.clone();
    config.credentials = Credentials::Key(AccessKey::new("AKIAUNKNOWN", "wrong-secret"));
    assert!(line(config).await.contains("does not know the access key; check the credentials"));
    let mut config = good.clone();
    config.credentials = Credentials::Key(AccessKey::new(server.access_key(), "wrong-secret"));
    assert!(line(config).await.contains("check the secret of the access key"));
    let mut config = good.clone();
    config.location = "s3://no-such-bucket/copies".parse().unwrap();
    let missing = line(config).await;
    assert!(missing.contains("the bucket of s3://no-such-bucket/copies does not exist"), "{missing}");
    server.set_clock_skew(3_600_000);
    assert!(line(good).await.contains("this machine's clock differs from the service's; set it by NTP"));
}

#[tokio::test]
async fn tls_that_does_not_fit_says_what_to_change() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let certified = authority.certify("server");
    let settings = Settings { tls: Some((certified.cert_file, certified.key_file)), ..Settings::default() };
    let (server, good) = server(settings).await;
    let unknown = line(good.clone()).await;
    assert!(unknown.contains("is not trusted; set ca_file"), "{unknown}");
    let mut config = good.clone();
    config.endpoint = Some(server.endpoint().replace("https://", "http://"));
    let plain = line(config).await;
    assert!(plain.contains("https://"), "{plain}");
    let mut config = good;
    config.ca_pem = Some(std::fs::read(&authority.ca_file).unwrap());
    let trusting = store(config).await;
    assert!(trusting.probe().await.is_ok_and(|capabilities| capabilities.if_absent));

    let (server, mut config) = self::server(Settings::default()).await;
    config.endpoint = Some(server.endpoint().replace("http://", "https://"));
    let plain = line(config).await;
    assert!(plain.contains("does not use TLS; use http://"), "{plain}");
}

#[tokio::test]
async fn an_endpoint_that_is_no_s3_or_not_there_says_so() {
    let (server, good) = server(Settings::default()).await;
    let address = server.address();
    server.stop().await;
    let refused = line(good.clone()).await;
    assert!(refused.contains(&format!("http://{address} refuses connections")), "{refused}");
    let mut config = good.clone();
    config.endpoint = Some("http://no-such-host.invalid".to_owned());
    let unknown = line(config).await;
    assert!(unknown.contains("the host name of http://no-such-host.invalid is not found"), "{unknown}");

    for answer in [
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/html\r\ncontent-length: 57\r\nconnection: close\r\n\r\n\
         <html>The plain HTTP request was sent to HTTPS port</html>",
        "",
        "HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 20\r\nconnection: close\r\n\r\n<html>Oh no!</html>\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 20\r\nconnection: close\r\n\r\n<html>Welcome</html>",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = good.clone();
        config.endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
        let serving = async {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                drop(connection.read(&mut request).await);
                drop(connection.write_all(answer.as_bytes()).await);
            }
        };
        let page = tokio::select! {
            line = line(config) => line,
            () = serving => unreachable!("it serves for ever"),
        };
        let expected = match answer {
            "" => "if that is its port for https, use https://",
            answer if answer.contains("HTTPS port") => "is a port for https; use https://",
            _ => "so it is not an S3 service; correct endpoint",
        };
        assert!(page.contains(expected), "{page}");
    }
}

#[tokio::test]
async fn a_probe_of_a_store_that_is_away_does_not_repeat_its_request() {
    let (server, mut config) = server(Settings::default()).await;
    // One repetition would take an hour.
    let hour = Duration::from_hours(1);
    config.retry = RetryPolicy { attempts: 8, within: 8 * hour, first: hour, most: hour };
    server.inject(Fault::new(Effect::Stall(Point::Arrival, None)));
    // Only a silent server is waited for until the limit. The others may take longer on a busy machine, such as to look
    // a name up.
    let mut short = config.clone();
    short.timeouts.connect = Duration::from_secs(1);
    short.timeouts.answer = Duration::from_millis(500);
    let silent = line(short).await;
    assert!(silent.contains("no answer from"), "{silent}");
    server.stop().await;
    let refused = line(config.clone()).await;
    assert!(refused.contains("refuses connections"), "{refused}");
    config.endpoint = Some("http://no-such-host.invalid".to_owned());
    let unknown = line(config).await;
    assert!(unknown.contains("is not found; check endpoint and DNS"), "{unknown}");
}

#[tokio::test]
async fn buckets_may_be_hosts() {
    let (server, mut config) = server(Settings { domain: None, ..Settings::default() }).await;
    config.addressing = Addressing::VirtualHost;
    config.endpoint = Some(format!("http://localhost:{}", server.address().port()));
    let store = store(config).await;
    // Not every resolver knows hosts below localhost.
    match store.create_space(&item("a").space).await {
        Ok(made) => assert!(made && server.keys(BUCKET) == ["copies/.spaces/maps"]),
        Err(error) => assert!(error.to_string().contains("the host name of"), "{error}"),
    }
}
