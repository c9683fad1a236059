//! Spaces: prefixes of a bucket, with an object beside them for each that was made, or buckets.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketLocationConstraint, CreateBucketConfiguration, EncodingType};
use tokio::time::Instant;

use crate::error::{ErrorKind, Operation};
use crate::name::SpaceName;
use crate::s3::Inner;
use crate::s3::list::{decode, without_continuation};
use crate::s3::location::Object;

/// How long a space that was seen is taken to exist, so that not each missing item costs a look for its space.
const KNOWN_FOR: Duration = Duration::from_mins(1);

/// How many of them are remembered.
const MOST_KNOWN: usize = 10_000;

impl Inner {
    pub(super) async fn spaces(&self) -> Result<Vec<SpaceName>, ErrorKind> {
        let mut spaces = BTreeSet::new();
        let Some(bucket) = self.location.shared_bucket() else {
            let mut token: Option<String> = None;
            loop {
                let send = || self.client.list_buckets().set_continuation_token(token.clone()).send();
                let page =
                    self.call(self.quick(Operation::Spaces), send).await.map_err(|failure| failure.kind(false))?;
                let names = page.buckets().iter().filter_map(|bucket| bucket.name());
                spaces.extend(names.filter_map(|name| self.location.space_of_bucket(name)));
                let next = page.continuation_token().map(str::to_owned).filter(|next| !next.is_empty());
                if next.is_none() {
                    return Ok(spaces.into_iter().collect());
                }
                if next == token {
                    return Err(without_continuation());
                }
                token = next;
            }
        };
        let (prefix, markers) = (self.location.prefix(), self.location.markers());
        for (prefix, delimiter) in [(prefix, Some("/")), (&*markers, None)] {
            let mut token: Option<String> = None;
            loop {
                let send = || {
                    let request = self.client.list_objects_v2().bucket(bucket).prefix(prefix);
                    let request = request.encoding_type(EncodingType::Url).set_continuation_token(token.clone());
                    request.set_delimiter(delimiter.map(str::to_owned)).send()
                };
                let page =
                    self.call(self.quick(Operation::Spaces), send).await.map_err(|failure| failure.kind(false))?;
                let is_encoded = page.encoding_type() == Some(&EncodingType::Url);
                let folders = page.common_prefixes().iter().filter_map(|folder| folder.prefix());
                let keys = page.contents().iter().filter_map(|object| object.key()).filter(|_| delimiter.is_none());
                for name in folders.chain(keys) {
                    let name = decode(name, is_encoded);
                    let name = name.strip_prefix(prefix.as_bytes()).and_then(|name| std::str::from_utf8(name).ok());
                    // A folder whose name no space can have belongs to something else.
                    spaces.extend(name.and_then(|name| name.strip_suffix('/').unwrap_or(name).parse().ok()));
                }
                if page.is_truncated() != Some(true) {
                    break;
                }
                let next = page.next_continuation_token().map(str::to_owned);
                if next.is_none() || next == token {
                    return Err(without_continuation());
                }
                token = next;
            }
        }
        Ok(spaces.into_iter().collect())
    }

    /// The object that says that a space of a shared bucket exists.
    fn marker(&self, bucket: &str, space: &SpaceName) -> Object {
        Object { bucket: bucket.to_owned(), key: format!("{}{space}", self.location.markers()) }
    }

    /// Whether a space has an item.
    async fn has_items(&self, operation: Operation, space: &SpaceName) -> Result<bool, ErrorKind> {
        let (bucket, prefix) = (self.location.bucket(space)?, self.location.space_prefix(space));
        let send = || self.client.list_objects_v2().bucket(&bucket).prefix(&prefix).max_keys(1).send();
        match self.call(self.quick(operation), send).await {
            Ok(page) => Ok(!page.contents().is_empty()),
            Err(failure) => Err(self.missing_bucket(failure, false)),
        }
    }

    pub(super) async fn exists(&self, operation: Operation, space: &SpaceName) -> Result<bool, ErrorKind> {
        let bucket = self.location.bucket(space)?;
        if let Some(bucket) = self.location.shared_bucket() {
            let marker = self.marker(bucket, space);
            return Ok(self.head_object(operation, &marker).await?.is_some() || self.has_items(operation, space).await?);
        }
        match self.call(self.quick(operation), || self.client.head_bucket().bucket(&bucket).send()).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_not_found() || failure.is_bucket_missing() => Ok(false),
            Err(failure) => Err(failure.kind(false)),
        }
    }

    /// Fails where a space is missing. One that was seen a short time ago is taken to exist.
    pub(super) async fn require_space(&self, operation: Operation, space: &SpaceName) -> Result<(), ErrorKind> {
        if self.known.lock().get(space).is_some_and(|seen| seen.elapsed() < KNOWN_FOR) {
            return Ok(());
        }
        if !self.exists(operation, space).await? {
            return Err(ErrorKind::NoSpace);
        }
        self.remember(space);
        Ok(())
    }

    fn remember(&self, space: &SpaceName) {
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(space.clone(), Instant::now());
    }

    pub(super) async fn create_space(&self, space: &SpaceName) -> Result<bool, ErrorKind> {
        let operation = Operation::CreateSpace;
        let name = self.location.bucket(space)?;
        if self.exists(operation, space).await? {
            return Ok(false);
        }
        let made = if let Some(bucket) = self.location.shared_bucket() {
            let marker = &self.marker(bucket, space);
            let put = |if_none_match: Option<&'static str>| {
                let send = move || {
                    let request = self.client.put_object().bucket(&marker.bucket).key(&marker.key);
                    let request = request.set_if_none_match(if_none_match.map(str::to_owned));
                    request.body(ByteStream::from_static(b"")).send()
                };
                self.call(self.quick(operation), send)
            };
            let made = match put(Some("*")).await {
                // A service that knows no conditions.
                Err(failure) if failure.status == Some(501) => put(None).await,
                made => made,
            };
            match made {
                Ok(_) => true,
                // Another one made it meanwhile, or a request of ours did whose answer was lost.
                Err(failure) if failure.is_precondition() => failure.may_be_done,
                Err(failure) => return Err(failure.kind(true)),
            }
        } else {
            // Other services take a region here that is not the one that requests are signed for.
            let region = self.region.as_deref().filter(|region| self.is_aws && *region != "us-east-1");
            let constraint = region.map(|region| {
                CreateBucketConfiguration::builder().location_constraint(BucketLocationConstraint::from(region)).build()
            });
            let send =
                || self.client.create_bucket().bucket(&name).set_create_bucket_configuration(constraint.clone()).send();
            match self.call(self.working(operation), send).await {
                Ok(_) => true,
                Err(failure) if failure.code == "BucketAlreadyOwnedByYou" => failure.may_be_done,
                Err(failure) if failure.code == "BucketAlreadyExists" => {
                    return Err(ErrorKind::Refused(format!(
                        "the bucket {name} belongs to another account; correct url"
                    )));
                }
                Err(failure) => return Err(failure.kind(true)),
            }
        };
        self.remember(space);
        Ok(made)
    }

    pub(super) async fn delete_space(&self, space: &SpaceName) -> Result<bool, ErrorKind> {
        let operation = Operation::DeleteSpace;
        let name = self.location.bucket(space)?;
        self.known.lock().remove(space);
        if !self.exists(operation, space).await? {
            return Ok(false);
        }
        if self.has_items(operation, space).await? {
            return Err(ErrorKind::NotEmpty);
        }
        let deleted = if let Some(bucket) = self.location.shared_bucket() {
            let marker = self.marker(bucket, space);
            let send = || self.client.delete_object().bucket(&marker.bucket).key(&marker.key).send();
            self.call(self.quick(operation), send).await.map(drop)
        } else {
            let send = || self.client.delete_bucket().bucket(&name).send();
            self.call(self.working(operation), send).await.map(drop)
        };
        match deleted {
            Ok(()) => Ok(true),
            Err(failure) if failure.is_bucket_missing() => Ok(true),
            Err(failure) => Err(failure.kind(true)),
        }
    }
}
