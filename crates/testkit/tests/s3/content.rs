use aws_sdk_s3::Client;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumMode, ChecksumType, StorageClass};
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::s3::{S3Server, Settings};
use tempfile::TempDir;

use super::common::{BUCKET, code, config, get, put, refusal, resolving_to_loopback, start, start_with};

fn put_123456789(client: &Client) -> PutObjectFluentBuilder {
    client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(b"123456789"))
}

// The check values of the catalogue of CRCs, and what `md5sum`, `sha1sum`, `sha256sum` say of the same nine bytes.
const CRC32: &str = "y/Q5Jg==";
const CRC32C: &str = "4waSgw==";
const CRC64NVME: &str = "rosUhgp5mIg=";
const SHA1: &str = "98O8HYCOBHMq32eZZczDTKeuNEE=";
const SHA256: &str = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=";
const MD5: &str = "JfnnlDI7RTiF9RgfG2JNCw==";
const MD5_HEX: &str = "\"25f9e794323b453885f5181f1b624d0b\"";

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_that_is_sent_is_kept_and_returned_on_request() {
    let (_server, client) = start().await;
    let puts = [
        put_123456789(&client).checksum_crc32(CRC32),
        put_123456789(&client).checksum_crc32_c(CRC32C),
        put_123456789(&client).checksum_crc64_nvme(CRC64NVME),
        put_123456789(&client).checksum_sha1(SHA1),
        put_123456789(&client).checksum_sha256(SHA256),
        put_123456789(&client).content_md5(MD5),
    ];
    let mut kept = Vec::new();
    for put in puts {
        put.send().await.unwrap();
        let head = client.head_object().bucket(BUCKET).key("a");
        let silent = head.clone().send().await.unwrap();
        assert_eq!((silent.checksum_type(), silent.checksum_sha256()), (None, None));
        let head = head.checksum_mode(ChecksumMode::Enabled).send().await.unwrap();
        assert_eq!(head.e_tag(), Some(MD5_HEX));
        let sums = [
            head.checksum_crc32(),
            head.checksum_crc32_c(),
            head.checksum_crc64_nvme(),
            head.checksum_sha1(),
            head.checksum_sha256(),
        ];
        let sums: Vec<_> = sums.into_iter().flatten().map(str::to_owned).collect();
        assert_eq!(head.checksum_type(), (!sums.is_empty()).then_some(&ChecksumType::FullObject));
        kept.extend(sums);
    }
    assert_eq!(kept, [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_has_another_checksum_is_refused() {
    let (server, client) = start().await;
    let wrong = put_123456789(&client).checksum_crc32(CRC32C).send().await;
    assert_eq!(refusal(wrong), code(400, "BadDigest"));
    let wrong = put_123456789(&client).content_md5("1B2M2Y8AsgTpgAmY7PhCfg==").send().await;
    assert_eq!(refusal(wrong), code(400, "BadDigest"));
    let wrong = put_123456789(&client).content_md5("no digest").send().await;
    assert_eq!(refusal(wrong), code(400, "InvalidDigest"));
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checksum_that_comes_after_the_body_is_kept() {
    let server = S3Server::start(Settings::default()).await.unwrap();
    server.create_bucket(BUCKET);
    // As the SDK does by itself: CRC-32 in a trailer of a body in chunks.
    let supported = aws_sdk_s3::config::RequestChecksumCalculation::WhenSupported;
    let client = Client::from_conf(config(&server).request_checksum_calculation(supported).build());
    let body = vec![7; 3_000_000];
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("body");
    std::fs::write(&file, &body).unwrap();
    let stream = ByteStream::from_path(&file).await.unwrap();
    client.put_object().bucket(BUCKET).key("a").body(stream).send().await.unwrap();
    assert_eq!(server.content(BUCKET, "a").unwrap(), body);
    let head = client.head_object().bucket(BUCKET).key("a").checksum_mode(ChecksumMode::Enabled).send().await.unwrap();
    assert!(head.checksum_crc32().is_some());
    assert_eq!(head.content_encoding(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_has_a_crc64_where_that_is_the_default() {
    let (_server, client) = start_with(Settings { has_default_checksum: true, ..Settings::default() }).await;
    put_123456789(&client).send().await.unwrap();
    let head = client.head_object().bucket(BUCKET).key("a").checksum_mode(ChecksumMode::Enabled).send().await.unwrap();
    assert_eq!(head.checksum_crc64_nvme(), Some(CRC64NVME));
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_kept_with_the_content() {
    let (_server, client) = start().await;
    let put = put_123456789(&client).content_type("text/plain").content_encoding("gzip").metadata("owner", "me");
    put.storage_class(StorageClass::GlacierIr).send().await.unwrap();
    client.copy_object().bucket(BUCKET).key("b").copy_source(format!("{BUCKET}/a")).send().await.unwrap();
    for (key, class) in [("a", Some(&StorageClass::GlacierIr)), ("b", None)] {
        let head = client.head_object().bucket(BUCKET).key(key).send().await.unwrap();
        assert_eq!((head.content_type(), head.content_encoding()), (Some("text/plain"), Some("gzip")));
        assert_eq!((head.content_length(), head.storage_class()), (Some(9), class));
        assert_eq!(head.metadata().unwrap()["owner"], "me");
        assert!(head.last_modified().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_refused() {
    let (server, _client) = start().await;
    let list = async |access_key: &str, secret_key: &str| {
        let credentials = aws_sdk_s3::config::Credentials::new(access_key, secret_key, None, None, "test");
        let client = Client::from_conf(config(&server).credentials_provider(credentials).build());
        refusal(client.list_objects_v2().bucket(BUCKET).send().await)
    };
    assert_eq!(list("unknown", server.secret_key()).await, code(403, "InvalidAccessKeyId"));
    assert_eq!(list(server.access_key(), "wrong").await, code(403, "SignatureDoesNotMatch"));
    assert_eq!(server.count(queuekeeper_testkit::s3::REJECTED), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_serves_hosts_that_are_buckets() {
    let directory = TempDir::new().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let certified = authority.certify("server");
    let tls = Some((certified.cert_file, certified.key_file));
    let server = S3Server::start(Settings { tls, ..Settings::default() }).await.unwrap();
    server.plant(BUCKET, ["a"], b"content");
    let ca = std::fs::read(authority.ca_file).unwrap();
    let trusting = config(&server).http_client(resolving_to_loopback(Some(ca)));
    let host = trusting.clone().endpoint_url(server.virtual_endpoint()).force_path_style(false).build();
    for config in [trusting.build(), host] {
        assert_eq!(get(&Client::from_conf(config), "a").await, b"content");
    }
    let distrusting = Client::from_conf(config(&server).build());
    assert_eq!(refusal(distrusting.head_bucket().bucket(BUCKET).send().await).0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_leaves_no_connection_and_no_file() {
    let directory = TempDir::new().unwrap();
    let settings = Settings { directory: Some(directory.path().to_owned()), ..Settings::default() };
    let (server, client) = start_with(settings).await;
    put(&client, "a", b"1").await;
    put(&client, "a", b"2").await;
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    server.stop().await;
    assert_eq!(refusal(client.head_bucket().bucket(BUCKET).send().await).0, 0);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
