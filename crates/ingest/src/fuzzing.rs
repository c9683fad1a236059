//! Decoders that no other crate calls, for the fuzzing.

use crate::batches::submission::BatchSpec;
use crate::profile::properties;

/// Reads a submission: the id of its batch, and the name of its payload.
///
/// # Errors
/// One sentence on what is wrong with it.
pub fn submission(data: &[u8]) -> Result<(String, String), String> {
    BatchSpec::of(data).map(|spec| (spec.id, spec.file_name))
}

/// A property: the line of its key, the key and its value.
pub type Property = (u64, String, String);

/// Reads a file of properties.
///
/// # Errors
/// The line that is wrong, and what is wrong in it.
pub fn properties(text: &str) -> Result<Vec<Property>, (u64, &'static str)> {
    let read = properties::read(text)?;
    Ok(read.into_iter().map(|property| (property.line, property.key, property.value)).collect())
}
