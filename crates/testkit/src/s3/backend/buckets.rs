//! Buckets: made, found, deleted, listed; whether they keep versions.

use s3s::dto::{
    Bucket, BucketLocationConstraint, BucketVersioningStatus, CreateBucketInput, CreateBucketOutput, DeleteBucketInput,
    DeleteBucketOutput, GetBucketLocationInput, GetBucketLocationOutput, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput, HeadBucketInput,
    HeadBucketOutput, ListBucketsInput, ListBucketsOutput, PutBucketVersioningInput, PutBucketVersioningOutput,
    Timestamp,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::{Backend, exchange_of};
use crate::s3::bucket::{Bucket as Stored, Versioning};
use crate::s3::state::State;

impl Backend {
    pub(super) async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let exchange = exchange_of(&request);
        let name = request.input.bucket;
        let location = format!("/{name}");
        let change = |state: &mut State, now| {
            if state.buckets.contains_key(&name) {
                return Err(s3_error!(BucketAlreadyOwnedByYou, "The bucket exists, and you own it."));
            }
            state.buckets.insert(name, Stored::new(now));
            Ok(())
        };
        self.commit(&exchange, change).await?;
        Ok(S3Response::new(CreateBucketOutput { location: Some(location) }))
    }

    pub(super) async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        let exchange = exchange_of(&request);
        let name = request.input.bucket;
        let change = move |state: &mut State, _| {
            if !state.bucket(&name)?.entries.is_empty() {
                return Err(s3_error!(BucketNotEmpty, "The bucket you tried to delete is not empty"));
            }
            state.buckets.remove(&name);
            Ok(())
        };
        self.commit(&exchange, change).await?;
        Ok(S3Response::new(DeleteBucketOutput::default()))
    }

    pub(super) fn head_bucket(&self, request: &S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.shared.state.lock().bucket(&request.input.bucket)?;
        let bucket_region = Some(self.shared.settings.region.clone());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() }))
    }

    pub(super) fn get_bucket_location(
        &self,
        request: &S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.shared.state.lock().bucket(&request.input.bucket)?;
        // The first region of all has no name here (API reference, GetBucketLocation).
        let region = Some(self.shared.settings.region.clone()).filter(|region| region != "us-east-1");
        let location_constraint = region.map(BucketLocationConstraint::from);
        Ok(S3Response::new(GetBucketLocationOutput { location_constraint }))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it has the form of the other operations")]
    pub(super) fn list_buckets(
        &self,
        request: &S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let ListBucketsInput { prefix, continuation_token: after, max_buckets, .. } = request.input.clone();
        let most = max_buckets.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let state = self.shared.state.lock();
        let all = state.buckets.iter().filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
        let all = all.filter(|(name, _)| name.starts_with(prefix.as_deref().unwrap_or_default()));
        let mut buckets: Vec<_> = all
            .map(|(name, bucket)| Bucket {
                name: Some(name.clone()),
                creation_date: Some(Timestamp::from(bucket.created)),
                ..Bucket::default()
            })
            .take(most.saturating_add(1))
            .collect();
        let is_truncated = buckets.len() > most;
        buckets.truncate(most);
        let last = buckets.last().and_then(|bucket| bucket.name.clone());
        Ok(S3Response::new(ListBucketsOutput {
            buckets: Some(buckets),
            continuation_token: last.filter(|_| is_truncated),
            prefix,
            ..ListBucketsOutput::default()
        }))
    }

    pub(super) fn get_bucket_versioning(
        &self,
        request: &S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        let state = self.shared.state.lock();
        let status = match state.bucket(&request.input.bucket)?.versioning {
            Versioning::Never => None,
            Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
            Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
        };
        let status = status.map(BucketVersioningStatus::from_static);
        Ok(S3Response::new(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() }))
    }

    pub(super) async fn put_bucket_versioning(
        &self,
        request: S3Request<PutBucketVersioningInput>,
    ) -> S3Result<S3Response<PutBucketVersioningOutput>> {
        let exchange = exchange_of(&request);
        let PutBucketVersioningInput { bucket, versioning_configuration, .. } = request.input;
        let versioning = match versioning_configuration.status.as_ref().map(BucketVersioningStatus::as_str) {
            Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
            Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
            _ => return Err(s3_error!(MalformedXML, "a status is missing")),
        };
        let change = move |state: &mut State, _| {
            state.bucket_mut(&bucket)?.versioning = versioning;
            Ok(())
        };
        self.commit(&exchange, change).await?;
        Ok(S3Response::new(PutBucketVersioningOutput::default()))
    }

    /// No bucket has one.
    pub(super) fn get_object_lock_configuration(
        &self,
        request: &S3Request<GetObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
        self.shared.state.lock().bucket(&request.input.bucket)?;
        Err(s3_error!(ObjectLockConfigurationNotFoundError, "Object Lock configuration does not exist for this bucket"))
    }
}
