//! URLs as pages, logs, messages and znodes have them.

use url::Url;

use crate::name;

/// What stands for a query.
const QUERY: &str = "?..";

/// What a text may begin with that is certainly no secret.
const SCHEMES: [&str; 4] = ["https://", "http://", "file://", "ftp://"];

/// A URL without user, password and fragment, and with `?..` for its query.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut plain = url.clone();
    plain.set_query(None);
    plain.set_fragment(None);
    // A URL that cannot have them has none.
    let _ = plain.set_username("");
    let _ = plain.set_password(None);
    let query = if url.query().is_some() { QUERY } else { "" };
    format!("{}{query}", name::shown(plain.as_str()))
}

/// A text that may be a URL, valid or not, without what may be secret in one: what stands before an `@`, and all that
/// follows a question mark or number sign.
#[must_use]
pub fn conceal(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let (plain, rest) = text.split_at(end);
    let scheme = SCHEMES.into_iter().find(|scheme| plain.starts_with(scheme)).unwrap_or_default();
    let query = if rest.starts_with('?') { QUERY } else { "" };
    // A password may hold any of these characters by mistake.
    match plain.rfind('@') {
        _ if rest.contains('@') => name::shown(&format!("{scheme}..")),
        Some(at) => format!("{}{query}", name::shown(&format!("{scheme}..{}", &plain[at..]))),
        None => format!("{}{query}", name::shown(plain)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (text, expected) in [
            ("https://a.edu/b?c=d#e", "https://a.edu/b?.."),
            ("https://a.edu/b", "https://a.edu/b"),
            ("https://u:p@a.edu/b?", "https://a.edu/b?.."),
            ("file:///a", "file:///a"),
        ] {
            assert_eq!(shown(&Url::parse(text).unwrap()), expected);
        }
        for (text, expected) in [
            ("https://u:p/q@a edu/b?secret", "https://..@a edu/b?.."),
            ("u:p@a.edu", "..@a.edu"),
            ("https://u:p?w@a.edu/", "https://.."),
            ("no url\n#x", "no url\\n"),
        ] {
            assert_eq!(conceal(text), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_shows_its_secrets(before in "[a-z:/.]{0,20}", rest in "[a-z/:?#@]{0,4}", after in "[a-z/?#]{0,9}") {
            for text in [format!("{before}SECRET{rest}@{after}"), format!("{before}?SECRET{rest}{after}")] {
                let concealed = conceal(&text);
                prop_assert!(!concealed.contains("SECRET"), "{}: {}", text, concealed);
            }
        }
    }
}
