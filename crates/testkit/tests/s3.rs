//! The S3 test server, as the SDK of AWS sees it.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod s3 {
    mod common;
    mod conditions;
    mod content;
    mod faults;
    mod keys;
    mod listing;
    mod multipart;
    mod versions;
}
