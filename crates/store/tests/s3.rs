//! The S3 store against a server that fails on purpose.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod s3 {
    mod archive;
    mod common;
    mod copies;
    mod errors;
    mod keys;
    mod lists;
    mod lost;
    mod privileges;
    mod puts;
    mod reads;
    mod spaces;
}
