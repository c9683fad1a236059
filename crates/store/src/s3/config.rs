//! What is configured of an S3 store.

use std::time::Duration;

use crate::name::StoreName;
use crate::retry::RetryPolicy;
use crate::s3::credentials::Credentials;
use crate::s3::location::Location;

/// The largest item that S3 copies with one request, in bytes (API reference, `CopyObject`).
const LARGEST_COPY: u64 = 5 << 30;

/// An S3 store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Config {
    /// Its name in the configuration.
    pub name: StoreName,
    /// Its buckets.
    pub location: Location,
    /// The URL of the service; AWS's of the region where there is none.
    pub endpoint: Option<String>,
    /// The region. Where there is none: that of the environment for AWS, `us-east-1` for other services.
    pub region: Option<String>,
    /// Whose requests they are.
    pub credentials: Credentials,
    /// Certificates in PEM that are trusted besides the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// How a bucket is named in a request.
    pub addressing: Addressing,
    /// The storage class of what is written, in S3's words; the bucket's own where there is none.
    pub storage_class: Option<String>,
    /// The largest item that the service copies with one request, in bytes; larger ones are copied in parts.
    pub largest_copy: u64,
    /// Whether checksums are sent for S3 to keep, where a probe showed that it does.
    pub checksums: bool,
    /// How long each part of a request may take.
    pub timeouts: Timeouts,
    /// How often a request is repeated.
    pub retry: RetryPolicy,
    /// How many requests are under way at once at most.
    pub concurrency: usize,
}

/// How a bucket is named in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// In the path, as most services besides AWS's take it.
    Path,
    /// In the host name.
    VirtualHost,
    /// In the host name at AWS, in the path at an endpoint that is configured.
    #[default]
    Auto,
}

/// How long each part of a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// From the last byte sent to the first one of the answer.
    pub answer: Duration,
    /// The same where the service works on the content before it answers: a copy, the end of an upload in parts.
    pub work: Duration,
    /// Between two pieces of a body.
    pub progress: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_mins(1),
            work: Duration::from_mins(15),
            progress: Duration::from_secs(30),
        }
    }
}

impl S3Config {
    /// A store at this location, with everything else as it usually is.
    #[must_use]
    pub fn new(name: StoreName, location: Location) -> Self {
        Self {
            name,
            location,
            endpoint: None,
            region: None,
            credentials: Credentials::default(),
            ca_pem: None,
            addressing: Addressing::default(),
            storage_class: None,
            largest_copy: LARGEST_COPY,
            checksums: true,
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            concurrency: 32,
        }
    }
}
