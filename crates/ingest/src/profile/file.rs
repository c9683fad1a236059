//! Reading the YAML of profiles and credentials.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::ProfileError;
use crate::name::shown;

/// Parses YAML; an error has the line, and one line of text.
pub(super) fn yaml<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ProfileError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ProfileError::new(path, 0, "it is not UTF-8"))?;
    let options = serde_saphyr::options! { with_snippet: false };
    let parsed: Result<Option<T>, _> = serde_saphyr::from_str_with_options(text, options);
    let parsed = parsed.map_err(|error| {
        let (line, why) = crate::yaml::problem(text, &error);
        ProfileError::new(path, line, shown(&why))
    })?;
    parsed.ok_or_else(|| ProfileError::new(path, 0, "it is empty"))
}
