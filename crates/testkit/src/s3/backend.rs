//! What the protocol library calls: each operation in one of the files below this one.

mod buckets;
mod copy;
mod delete;
mod list;
mod multipart;
mod parts;
mod read;
mod restore;
mod versions;
mod write;

use std::sync::Arc;
use std::time::SystemTime;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CopyObjectInput, CopyObjectOutput, CreateBucketInput, CreateBucketOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, DeleteBucketInput, DeleteBucketOutput, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, GetBucketLocationInput, GetBucketLocationOutput, GetBucketVersioningInput,
    GetBucketVersioningOutput, GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectInput,
    GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput, GetObjectOutput, HeadBucketInput,
    HeadBucketOutput, HeadObjectInput, HeadObjectOutput, ListBucketsInput, ListBucketsOutput,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListObjectVersionsInput, ListObjectVersionsOutput,
    ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput,
    PutBucketVersioningInput, PutBucketVersioningOutput, PutObjectInput, PutObjectOutput, RestoreObjectInput,
    RestoreObjectOutput, UploadPartCopyInput, UploadPartCopyOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use tokio::sync::oneshot;

use super::exchange::Exchange;
use super::fault::Point;
use super::state::{Shared, State};

/// The operations.
pub(super) struct Backend {
    pub(super) shared: Arc<Shared>,
}

/// The exchange that a request belongs to.
pub(super) fn exchange_of<T>(request: &S3Request<T>) -> Arc<Exchange> {
    request.extensions.get::<Arc<Exchange>>().cloned().expect("each request comes with one")
}

impl Backend {
    /// Makes a change, at once and whole, where the faults of its request let it.
    pub(super) async fn commit<T: Send + 'static>(
        &self,
        exchange: &Exchange,
        change: impl FnOnce(&mut State, SystemTime) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        exchange.pause(Point::Commit).await;
        let Some(((limit, is_answered), armed)) = exchange.late() else {
            return change(&mut self.shared.state.lock(), self.shared.clock.now());
        };
        let (done, landed) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            let hold = armed.hold(limit);
            tokio::select! {
                () = shared.end.cancelled() => return,
                () = hold => {}
            }
            let result = change(&mut shared.state.lock(), shared.clock.now());
            // The client may have left long ago.
            let _ = done.send(result);
        });
        if is_answered {
            return landed.await.unwrap_or_else(|_| Err(s3_error!(ServiceUnavailable, "the server ends")));
        }
        exchange.cut();
        Err(s3_error!(InternalError, "the connection is cut on purpose"))
    }
}

macro_rules! operations {
    (
        writes { $($write:ident: $write_input:ty => $write_output:ty;)* }
        reads { $($read:ident: $read_input:ty => $read_output:ty;)* }
    ) => {
        #[async_trait::async_trait]
        impl S3 for Backend {
            $(
                async fn $write(&self, request: S3Request<$write_input>) -> S3Result<S3Response<$write_output>> {
                    Self::$write(self, request).await
                }
            )*
            $(
                async fn $read(&self, request: S3Request<$read_input>) -> S3Result<S3Response<$read_output>> {
                    Self::$read(self, &request)
                }
            )*
        }
    };
}
// Methods of the type itself go before those of the trait: each line calls the one of the same name in a file below.
operations! {
    writes {
    abort_multipart_upload: AbortMultipartUploadInput => AbortMultipartUploadOutput;
    complete_multipart_upload: CompleteMultipartUploadInput => CompleteMultipartUploadOutput;
    copy_object: CopyObjectInput => CopyObjectOutput;
    create_bucket: CreateBucketInput => CreateBucketOutput;
    create_multipart_upload: CreateMultipartUploadInput => CreateMultipartUploadOutput;
    delete_bucket: DeleteBucketInput => DeleteBucketOutput;
    delete_object: DeleteObjectInput => DeleteObjectOutput;
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput;
    put_bucket_versioning: PutBucketVersioningInput => PutBucketVersioningOutput;
    put_object: PutObjectInput => PutObjectOutput;
    restore_object: RestoreObjectInput => RestoreObjectOutput;
    upload_part: UploadPartInput => UploadPartOutput;
    upload_part_copy: UploadPartCopyInput => UploadPartCopyOutput;
    }
    reads {
    get_bucket_location: GetBucketLocationInput => GetBucketLocationOutput;
    get_bucket_versioning: GetBucketVersioningInput => GetBucketVersioningOutput;
    get_object: GetObjectInput => GetObjectOutput;
    get_object_attributes: GetObjectAttributesInput => GetObjectAttributesOutput;
    get_object_lock_configuration: GetObjectLockConfigurationInput => GetObjectLockConfigurationOutput;
    head_bucket: HeadBucketInput => HeadBucketOutput;
    head_object: HeadObjectInput => HeadObjectOutput;
    list_buckets: ListBucketsInput => ListBucketsOutput;
    list_multipart_uploads: ListMultipartUploadsInput => ListMultipartUploadsOutput;
    list_object_versions: ListObjectVersionsInput => ListObjectVersionsOutput;
    list_objects: ListObjectsInput => ListObjectsOutput;
    list_objects_v2: ListObjectsV2Input => ListObjectsV2Output;
    list_parts: ListPartsInput => ListPartsOutput;
    }
}
