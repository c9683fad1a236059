//! Decoders that no other crate calls, for the fuzzing.

use crate::batches::submission::BatchSpec;

/// Reads a submission: the id of its batch, and the name of its payload.
///
/// # Errors
/// One sentence on what is wrong with it.
pub fn submission(data: &[u8]) -> Result<(String, String), String> {
    BatchSpec::of(data).map(|spec| (spec.id, spec.file_name))
}
