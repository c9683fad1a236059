//! The `Idempotency-Key` of a request.

use axum::http::HeaderMap;

use super::problem::Problem;

/// The header that makes an action or a deposit idempotent.
const KEY: &str = "idempotency-key";

/// The longest key, in bytes.
const LONGEST_KEY: usize = 200;

/// The key by which a request is recognized that is sent again.
///
/// # Errors
/// When there are several, or it is not one of visible characters.
pub(in crate::web) fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let wrong = || Problem::bad(format!("An Idempotency-Key has 1 to {LONGEST_KEY} visible characters."));
    let mut values = headers.get_all(KEY).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong())?;
            if text.is_empty() || text.len() > LONGEST_KEY { Err(wrong()) } else { Ok(Some(text)) }
        }
        (Some(_), Some(_)) => Err(wrong()),
    }
}
