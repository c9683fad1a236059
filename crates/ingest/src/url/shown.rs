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

/// A sentence, perhaps of another program, in which [`conceal`] was done to each word that may be a URL with a user or
/// a query.
#[must_use]
pub fn conceal_in(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(|word| conceal_word(word).unwrap_or_else(|| word.to_owned()))
        .collect()
}

/// `None` for a word in which nothing may be secret.
fn conceal_word(word: &str) -> Option<String> {
    const AROUND: [char; 14] = ['"', '\'', '(', ')', '<', '>', '[', ']', ',', '.', ';', ':', '!', '?'];
    let start = word.len() - word.trim_start_matches(AROUND).len();
    let bare = word[start..].trim_end().trim_end_matches(AROUND);
    let end = start + bare.len();
    let (_, behind) = bare.split_once(['?', '#']).unwrap_or_default();
    let has_user = bare.split_once('@').is_some_and(|(before, _)| before.contains(':'));
    let has_query = behind.contains('=') || (bare.contains("://") && !behind.is_empty());
    (has_user || has_query).then(|| format!("{}{}{}", &word[..start], conceal(bare), &word[end..]))
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

    #[test]
    fn what_may_be_secret_is_not_shown_of_the_urls_in_a_sentence_and_all_else_is() {
        let plain =
            "cannot fetch https://a.edu/b?..: the origin answers 404 (see https://a.edu/help#), tell ada@a.edu; why?";
        assert_eq!(conceal_in(plain), plain);
        for (text, expected) in [
            (
                "Error: GET https://s3.edu/b/k?X-Amz-Signature=SECRET&X=1: 403\n at Fetch",
                "Error: GET https://s3.edu/b/k?..: 403\n at Fetch",
            ),
            ("java.net.URL \"https://u:SECRET@a.edu/b\" failed", "java.net.URL \"https://..@a.edu/b\" failed"),
            ("(u:SECRET@a.edu), b?key=SECRET.", "(..@a.edu), b?..."),
            ("https://a.edu/b#SECRET", "https://a.edu/b"),
        ] {
            assert_eq!(conceal_in(text), expected);
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
