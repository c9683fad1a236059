//! Asking for archived content to be restored.

use std::fmt::Display;

use aws_sdk_s3::types::{GlacierJobParameters, RestoreRequest as S3Request, Tier};

use crate::archive::{RestoreRequest, RestoreTier};
use crate::error::{ErrorKind, Operation};
use crate::s3::Inner;
use crate::store::Item;

impl Inner {
    pub(super) async fn restore(&self, item: &Item, request: RestoreRequest) -> Result<(), ErrorKind> {
        let at = self.object_to_read(item)?;
        let tier = match request.tier {
            RestoreTier::Bulk => Tier::Bulk,
            RestoreTier::Standard => Tier::Standard,
            RestoreTier::Expedited => Tier::Expedited,
        };
        let unsupported = |why: &dyn Display| ErrorKind::Unsupported(why.to_string());
        let days = i32::try_from(request.days).map_err(|error| unsupported(&error))?;
        let tier = GlacierJobParameters::builder().tier(tier).build().map_err(|error| unsupported(&error))?;
        let wanted = S3Request::builder().days(days).glacier_job_parameters(tier).build();
        let send = || {
            let request = self.client.restore_object().bucket(&at.bucket).key(&at.key);
            request.restore_request(wanted.clone()).send()
        };
        match self.call(self.quick(Operation::Restore), send).await {
            Ok(_) => Ok(()),
            // It is under way (API reference, RestoreObject: 409).
            Err(failure) if failure.code == "RestoreAlreadyInProgress" => Ok(()),
            // It is not archived, or not any more.
            Err(failure) if failure.code == "InvalidObjectState" => {
                Err(ErrorKind::Unreadable("the service restores nothing of its storage class".to_owned()))
            }
            Err(failure) if failure.is_not_found() => Err(ErrorKind::NotFound),
            Err(failure) => Err(self.missing_bucket(failure, false)),
        }
    }
}
