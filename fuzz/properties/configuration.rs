//! What batches and jobs are to become: submissions and configurations.

use queuekeeper_ingest::fuzzing::submission;
use queuekeeper_ingest::name;
use queuekeeper_ingest::spec::JobSpec;

use super::shown;

/// Reads the bytes as either of them.
///
/// # Panics
/// When an id or a file's name leads elsewhere, the same bytes have two ids, or an error is not one line.
pub fn check(data: &[u8]) {
    match JobSpec::parse(data) {
        Ok(spec) => {
            for id in [&spec.batch, &spec.job] {
                folder(id);
            }
            assert_eq!(name::check(&spec.file_name), Ok(()), "a package may be called {:?}", spec.file_name);
            let again = JobSpec::parse(data).expect("it was read before");
            assert_eq!((again.uuid, again.batch_uuid), (spec.uuid, spec.batch_uuid), "an id has one UUID");
            let mut ids = spec.local_ids.clone();
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), spec.local_ids.len(), "no local id is there twice");
        }
        Err(error) => shown::error(error, 4_096),
    }
    match submission(data) {
        Ok((id, file_name)) => {
            folder(&id);
            assert_eq!(name::check(&file_name), Ok(()), "a payload may be called {file_name:?}");
        }
        Err(error) => shown::error(error, 4_096),
    }
}

/// Checks that a folder of this name stays where it is made.
fn folder(id: &str) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    assert!(!id.is_empty() && id.len() <= 128 && id.bytes().all(is_plain), "{id:?} is a folder's name");
}
