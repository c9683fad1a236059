//! Finds the bucket in a host name.

use s3s::S3Result;
use s3s::host::{S3Host, VirtualHost};

/// The domains below which a bucket is a host.
pub(super) struct Domains {
    domains: Vec<String>,
}

impl Domains {
    /// `localhost` and `s3.localhost` (two labels, as wildcards in certificates need), and another one.
    pub(super) fn new(another: Option<&str>) -> Self {
        // The longer ones first: `s3.localhost` is no bucket `s3`.
        let known = ["s3.localhost", "localhost"].map(str::to_owned);
        Self { domains: another.map(str::to_ascii_lowercase).into_iter().chain(known).collect() }
    }
}

impl S3Host for Domains {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
        for domain in &self.domains {
            match name.strip_suffix(domain.as_str()) {
                Some("") => break,
                Some(bucket) if bucket.ends_with('.') => {
                    return Ok(VirtualHost::new(domain.as_str()).with_bucket(&bucket[..bucket.len() - 1]));
                }
                _ => {}
            }
        }
        Ok(VirtualHost::new(host))
    }
}
