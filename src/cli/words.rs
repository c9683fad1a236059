//! Formatting of figures in tables.

use std::time::Duration;

use jiff::Timestamp;

use crate::views::show::visible;
use crate::words;

/// A command that only reads does not write, and so cannot measure the servers' clock.
pub(super) const ASSUMED: &str =
    "Ages assume that the clocks of this host and of ZooKeeper agree, unless znodes show otherwise.";

/// How long ago an instant was; empty if unknown.
pub(super) fn ago(instant: Option<Timestamp>, now: Timestamp) -> String {
    let ago = |instant| words::length(Duration::try_from(now.duration_since(instant)).unwrap_or(Duration::ZERO));
    instant.map(ago).unwrap_or_default()
}

/// An instant, and how long ago it was.
pub(super) fn moment(instant: Option<Timestamp>, now: Timestamp) -> String {
    let said = |instant: Timestamp| format!("{}, {} ago", words::moment(instant), ago(Some(instant), now));
    instant.map(said).unwrap_or_default()
}

/// A count; empty for 0.
pub(super) fn some(count: u64) -> String {
    if count == 0 { String::new() } else { words::count(count) }
}

/// A count.
pub(super) fn count(count: u64) -> String {
    words::count(count)
}

/// A size in binary units; empty for 0, which stands for an unknown one.
pub(super) fn size(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { words::size(bytes) }
}

/// A number; empty for none.
pub(super) fn number(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A boolean in a narrow column: "yes", or empty for no.
pub(super) fn yes(is: bool) -> String {
    if is { "yes" } else { "" }.to_owned()
}

/// An argument as a shell takes it: as it is, in quotes where it has to be.
pub(super) fn argument(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(byte);
    let text = std::str::from_utf8(bytes).ok().filter(|text| visible(text) == *text);
    match text {
        Some(text) if !bytes.is_empty() && bytes.iter().all(is_plain) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        // What does not show, as bash and others have it.
        None => {
            let shown = bytes.iter().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            });
            format!("$'{}'", shown.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_an_argument_as_the_bytes_that_it_was_made_of() {
        let all: Vec<u8> = (1..=u8::MAX).collect();
        let keys = [
            &b"a/b-1.txt"[..],
            b"p%2Fq",
            b"a b",
            b"it's",
            b"$HOME `x` \\",
            "\u{e4}".as_bytes(),
            b"\xff\n'\\1",
            b"",
            &all,
        ];
        for key in keys {
            let script = format!("printf %s {}", argument(key));
            let printed = Command::new("bash").arg("-c").arg(&script).output().unwrap().stdout;
            assert_eq!(printed, key, "{script}");
        }
        assert_eq!(argument(b"p%2Fq"), "p%2Fq");
    }
}
