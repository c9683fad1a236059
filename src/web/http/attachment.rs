//! Content that is sent as a download: never shown by a browser, whatever it is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The only type that content is sent as: what depositors say of it, a browser might act upon.
pub(in crate::web) const MEDIA_TYPE: &str = "application/octet-stream";

/// Whatever a browser makes of it, it has no origin and runs nothing.
pub(in crate::web) const POLICY: &str = "default-src 'none'; sandbox";

/// What RFC 8187 has escaped: all but its `attr-char`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// `Content-Disposition` for a path, by RFC 6266: the last part of it, in ASCII, and in UTF-8 by RFC 8187.
pub(in crate::web) fn disposition(path: &str) -> String {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file");
    let plain = |char: char| {
        let is_plain = char.is_ascii_alphanumeric() || " !#$&'()+,-.;=@[]^_`{}~".contains(char);
        if is_plain { char } else { '_' }
    };
    let mut text = format!("attachment; filename=\"{}\"", name.chars().map(plain).collect::<String>());
    if name.chars().any(|char| plain(char) != char) {
        text.push_str("; filename*=UTF-8''");
        text.extend(utf8_percent_encode(name, ESCAPED));
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_name_is_one_parameter_in_ascii_and_one_in_utf_8() {
        for (path, expected) in [
            ("producer/a b.txt", "attachment; filename=\"a b.txt\""),
            ("producer/", "attachment; filename=\"file\""),
            (
                "a\"; filename=x.html",
                "attachment; filename=\"a_; filename=x.html\"; filename*=UTF-8''a%22%3B%20filename%3Dx.html",
            ),
            (
                "p/\r\nSet-Cookie: a",
                "attachment; filename=\"__Set-Cookie_ a\"; filename*=UTF-8''%0D%0ASet-Cookie%3A%20a",
            ),
            ("p/é%41\\.txt", "attachment; filename=\"__41_.txt\"; filename*=UTF-8''%C3%A9%2541%5C.txt"),
        ] {
            assert_eq!(disposition(path), expected);
            assert!(HeaderValue::from_str(&disposition(path)).is_ok());
        }
    }
}
