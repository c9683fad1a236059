//! What is the same in the messages of jobs that failed for the same reason.

/// What ends a name or an address in a sentence.
fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '<' | '>' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '|')
}

/// A message with `#` in the place of each number and each id, and without what follows the host of an address.
///
/// Status codes of HTTP stay where they can be distinguished from other numbers, at the start and behind words such as
/// `status`: a file that is missing and a server that is down are two causes.
pub(crate) fn pattern(message: &str) -> String {
    let mut pattern = String::with_capacity(message.len());
    let mut rest = message.trim();
    while let Some(c) = rest.chars().next() {
        rest = if c.is_whitespace() {
            pattern.push(' ');
            rest.trim_start()
        } else if !c.is_ascii_alphanumeric() {
            pattern.push(c);
            &rest[c.len_utf8()..]
        } else {
            word(rest, &mut pattern)
        };
    }
    pattern
}

/// The names of digest algorithms, whose digits are kept.
const ALGORITHMS: [&str; 13] = [
    "adler32",
    "crc32",
    "crc32c",
    "crc64nvme",
    "md5",
    "sha1",
    "sha-1",
    "sha256",
    "sha-256",
    "sha384",
    "sha-384",
    "sha512",
    "sha-512",
];

/// The name of an algorithm at the start of a text.
fn algorithm(text: &str) -> Option<&str> {
    let named = |name: &&str| {
        let start = text.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name))?;
        (!text[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(start)
    };
    ALGORITHMS.iter().find_map(named)
}

/// Takes a word from the start of a text, and gives what is left of it.
fn word<'a>(text: &'a str, pattern: &mut String) -> &'a str {
    if let Some(rest) = address(text, pattern) {
        return rest;
    }
    if text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("ark:")) && text[4..].starts_with(|c| !ends_word(c))
    {
        pattern.push_str("ark:#");
        let ark = &text[..text.find(ends_word).unwrap_or(text.len())];
        return &text[ark.trim_end_matches(['.', ':', '!', '?']).len()..];
    }
    if let Some(uuid) = text.get(..36).filter(|start| is_uuid(start)) {
        pattern.push('#');
        return &text[uuid.len()..];
    }
    if let Some(rest) = file(text, pattern) {
        return rest;
    }
    if let Some(name) = algorithm(text) {
        pattern.push_str(name);
        return &text[name.len()..];
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if is_status(word, rest, pattern) {
        pattern.push_str(word);
        return rest;
    }
    if is_hexadecimal(word) {
        pattern.push('#');
        return rest;
    }
    let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
    pattern.push_str(&word[..digits]);
    if digits == word.len() {
        return rest;
    }
    // A fraction, a date or a time of day is one number.
    let number = &text[digits..];
    let is_inside = |(at, c): &(usize, char)| {
        let between = matches!(c, '.' | ',' | ':' | '-' | '/');
        c.is_ascii_digit() || between && number[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let end = number.char_indices().find(|item| !is_inside(item)).map_or(number.len(), |(at, _)| at);
    pattern.push('#');
    // What is left of the word goes on from here, so that `5MB` and `17MB` are alike.
    let rest = &number[end..];
    let tail = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    pattern.push_str(&rest[..tail]);
    &rest[tail..]
}

/// An address up to its host. What stands before an `@` may be a password.
fn address<'a>(text: &'a str, pattern: &mut String) -> Option<&'a str> {
    let (scheme, after) = text.split_once("://")?;
    if scheme.is_empty() || !scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let (whole, rest) = after.split_at(after.find(ends_word).unwrap_or(after.len()));
    let host = whole.split(['/', '?', '#']).next().unwrap_or_default();
    let path = &whole[host.len()..];
    let host = host.rsplit('@').next().unwrap_or_default();
    pattern.push_str(scheme);
    pattern.push_str("://");
    pattern.push_str(host.trim_end_matches(['.', ':']));
    if path.len() > 1 {
        pattern.push_str("/…");
    }
    Some(rest)
}

/// The name of a file, of which only the ending is the same for other jobs. Hosts have dots too, but no underscores.
fn file<'a>(text: &'a str, pattern: &mut String) -> Option<&'a str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = &text[..text.find(|c| !is_inside(c)).unwrap_or(text.len())];
    let name = name.trim_end_matches(['.', '-']);
    let (stem, ending) = name.rsplit_once('.')?;
    let is_ending = (1..=5).contains(&ending.len()) && ending.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_ending || !stem.contains('_') || !stem.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    pattern.push_str("#.");
    pattern.push_str(ending);
    Some(&text[name.len()..])
}

fn is_uuid(text: &str) -> bool {
    let is_right =
        |(at, c): (usize, char)| if matches!(at, 8 | 13 | 18 | 23) { c == '-' } else { c.is_ascii_hexdigit() };
    text.len() == 36 && text.char_indices().all(is_right)
}

/// A checksum, or a number that says that it is one.
fn is_hexadecimal(word: &str) -> bool {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let has = |what: fn(&u8) -> bool| word.as_bytes().iter().any(what);
    let is_long = word.len() >= 4 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_all = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.is_some_and(is_all) || is_long && is_all(word)
}

/// How the reasons begin that are written behind a status code, and `for` before an address.
const REASONS: [&str; 13] = [
    "Bad",
    "Unauthorized",
    "Forbidden",
    "Not",
    "Method",
    "Conflict",
    "Gone",
    "Request",
    "Too",
    "Internal",
    "Service",
    "Gateway",
    "for",
];

fn is_status(word: &str, rest: &str, pattern: &str) -> bool {
    let is_code = word.len() == 3 && word.parse().is_ok_and(|code: u16| (400..600).contains(&code));
    if !is_code || rest.starts_with(['.', ',', '/', '-']) && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let before = pattern.trim_end_matches([' ', ':', '=']);
    let last = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let reason = rest.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let says_so = REASONS.contains(&reason)
        || ["http", "status", "code", "response"].iter().any(|word| last.eq_ignore_ascii_case(word));
    before.is_empty() || says_so || before.ends_with("HTTP/#")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::pattern;

    #[test]
    fn what_varies_from_job_to_job_is_left_out() {
        for (message, expected) in [
            ("", ""),
            ("Success", "Success"),
            ("404 for https://deposit.example.edu/rbn/000123.zip?x=1", "404 for https://deposit.example.edu/…"),
            (
                "503 for https://me:secret@deposit.example.edu:8080/a, gave up",
                "503 for https://deposit.example.edu:8080/…, gave up",
            ),
            ("HTTP/1.1 502 Bad Gateway after 30 s", "HTTP/# 502 Bad Gateway after # s"),
            ("status: 500, 404 retries", "status: 500, # retries"),
            ("job jid0000000042 of bid0000000007", "job jid# of bid#"),
            ("no space: 1,234.5 GiB needed, 17GiB free", "no space: # GiB needed, #GiB free"),
            ("ark:/99999/fk4abc1234 is locked", "ark:# is locked"),
            ("Handler: ark:/99999/fk4: gone", "Handler: ark:#: gone"),
            ("Handler: 403 Forbidden, file-7_a.zip.", "Handler: 403 Forbidden, #.zip."),
            ("storage3.example.edu refused, a_b.zip", "storage#.example.edu refused, a_b.zip"),
            ("ARK:/99999/fk4 and (ark:/1/2)", "ark:# and (ark:#)"),
            ("batch bid-9c1a0b5e-0000-4000-8000-000000000001 gone", "batch bid-# gone"),
            ("sha-256 e3b0c44298fc1c149afbf4c8996fb924 differs", "sha-256 # differs"),
            ("SHA256 of 12 files, md5: 5; sha2567", "SHA256 of # files, md5: #; sha#"),
            ("session 0x1000abc at 2026-03-02 10:17:05 -0800", "session # at # # -#"),
            ("2026-03-02T10:15:40Z  timed\n out", "#T#Z timed out"),
            ("rbn_000123.tif.zip: Datei „größe“ fehlt", "#.zip: Datei „größe“ fehlt"),
            ("disk full on s3://bucket", "disk full on s3://bucket"),
            ("://", "://"),
        ] {
            assert_eq!(pattern(message), expected, "{message}");
        }
    }

    #[test]
    fn the_name_of_each_algorithm_is_kept() {
        for algorithm in queuekeeper_store::Algorithm::ALL {
            let message = format!("{} differs", algorithm.as_str());
            assert_eq!(pattern(&message), message);
        }
    }

    proptest! {
        #[test]
        fn any_message_has_a_pattern(message in "\\PC{0,40}", number in 0u32..4_000_000) {
            let _ = pattern(&message);
            prop_assert_eq!(pattern(&format!("job {number} failed")), "job # failed");
        }
    }
}
