//! A server and a client for it.

use std::net::Ipv4Addr;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    BehaviorVersion, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{TlsContext, TrustStore};
use aws_smithy_http_client::{Builder, tls};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns};
use queuekeeper_testkit::s3::{S3Server, Settings};

pub(super) const BUCKET: &str = "bucket";

/// A configuration for a server, without retries.
pub(super) fn config(server: &S3Server) -> aws_sdk_s3::config::Builder {
    let provider = tls::Provider::Rustls(CryptoMode::AwsLc);
    aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(Builder::new().tls_provider(provider).build_https())
        .credentials_provider(Credentials::new(server.access_key(), server.secret_key(), None, None, "test"))
        .region(Region::new("us-east-1"))
        .endpoint_url(server.endpoint())
        .force_path_style(true)
        .retry_config(RetryConfig::disabled())
        // By themselves they give up after seconds.
        .timeout_config(TimeoutConfig::builder().connect_timeout(Duration::from_mins(1)).build())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
}

/// A server with one bucket.
pub(super) async fn start() -> (S3Server, Client) {
    start_with(Settings::default()).await
}

pub(super) async fn start_with(settings: Settings) -> (S3Server, Client) {
    let server = S3Server::start(settings).await.unwrap();
    server.create_bucket(BUCKET);
    let client = Client::from_conf(config(&server).build());
    (server, client)
}

/// Writes an object; the answer is its entity tag.
pub(super) async fn put(client: &Client, key: &str, content: &'static [u8]) -> String {
    let put = client.put_object().bucket(BUCKET).key(key).body(ByteStream::from_static(content));
    put.send().await.unwrap().e_tag.unwrap()
}

/// Reads an object.
pub(super) async fn get(client: &Client, key: &str) -> Vec<u8> {
    let answer = client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
    answer.body.collect().await.unwrap().to_vec()
}

/// The status and code of a refusal.
pub(super) fn refusal<T: std::fmt::Debug, E: ProvideErrorMetadata + std::fmt::Debug>(
    result: Result<T, SdkError<E>>,
) -> (u16, String) {
    let error = result.unwrap_err();
    let status = error.raw_response().map_or(0, |response| response.status().as_u16());
    (status, error.code().unwrap_or_default().to_owned())
}

/// A refusal that is expected.
pub(super) fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Finds every name on the loopback interface.
#[derive(Clone, Debug)]
struct Loopback;

impl ResolveDns for Loopback {
    fn resolve_dns<'a>(&'a self, _name: &'a str) -> DnsFuture<'a> {
        DnsFuture::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()]))
    }
}

/// A client that finds every name on the loopback interface, and trusts the authority of a PEM file, where there is
/// one.
pub(super) fn resolving_to_loopback(ca: Option<Vec<u8>>) -> SharedHttpClient {
    let trust = ca.map_or_else(TrustStore::default, |pem| TrustStore::empty().with_pem_certificate(pem));
    let context = TlsContext::builder().with_trust_store(trust).build().unwrap();
    let provider = tls::Provider::Rustls(CryptoMode::AwsLc);
    Builder::new().tls_provider(provider).tls_context(context).build_with_resolver(Loopback)
}
