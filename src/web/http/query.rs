//! Query strings, written; and what is left of parameters that forms send one by one.

use std::fmt::Write as _;

use super::problem::Problem;
use crate::views::ViewError;
pub(in crate::web) use crate::views::error::quoted;
pub(in crate::web) use crate::views::query::Pairs;

/// A parameter as forms send it: an empty value counts as none.
pub(in crate::web) fn given(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

/// A value that a parameter does not take.
pub(in crate::web) fn refuse(name: &str, value: &str) -> Problem {
    ViewError::value(name, value).into()
}

/// One parameter.
pub(in crate::web) fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

/// Parameters as a query string, without the question mark.
pub(in crate::web) fn query_of(pairs: &[(String, String)]) -> String {
    address("", pairs).trim_start_matches('?').to_owned()
}

/// A path with parameters.
pub(in crate::web) fn address<'a>(path: &str, pairs: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let mut address = path.to_owned();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => address.push(byte.into()),
                b' ' => address.push('+'),
                other => {
                    // Writing to a string does not fail.
                    let _ = write!(address, "%{other:02X}");
                }
            }
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_value_is_an_address_stays_one() {
        let pairs = [pair("text", "a&b=ü"), pair("state", "failed")];
        assert_eq!(address("jobs", &pairs), "jobs?text=a%26b%3D%C3%BC&state=failed");
        assert_eq!(query_of(&pairs), "text=a%26b%3D%C3%BC&state=failed");
        assert_eq!(address("jobs", &[]), "jobs");
    }
}
