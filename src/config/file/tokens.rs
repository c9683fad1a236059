//! The tokens file: hashes of bearer tokens, each with a name, a role and an expiry.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::Users;
use super::super::source::{FileError, Files, refuse, yaml};
use super::FileLine;
use super::secret::{self, PREFIX, Secret};
use crate::actions::Role;

/// The maximum number of tokens: a presented one is compared with each.
const MAX_TOKENS: usize = 1_000;

/// The maximum length of a token's name.
const MAX_NAME_CHARS: usize = 64;

/// The known tokens. No `Debug`, so that hashes cannot get into a log.
#[derive(Default)]
pub struct Tokens {
    path: PathBuf,
    tokens: Vec<Token>,
}

/// A known token.
pub struct Token {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    hash: TokenHash,
    expires: Option<Timestamp>,
    line: u64,
}

/// The hash that identifies a token. No `Debug`, so that it cannot get into a log.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

/// The result of checking a token that a client presents.
pub enum Presented<'a> {
    /// It is valid.
    Valid(&'a Token),
    /// It expired at that time.
    Expired(&'a Token, Timestamp),
    /// It is unknown.
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    role: Spanned<String>,
    sha256: Spanned<String>,
    expires: Option<Spanned<String>>,
}

impl Token {
    /// The hash that identifies it.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        self.hash
    }
}

impl Tokens {
    pub(super) fn read(path: &Path, files: &mut Files) -> Result<Self, FileError> {
        let bytes = files.read(path)?;
        Self::check(path, &bytes).map_err(conceal)
    }

    fn check(path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let entries: BTreeMap<String, Spanned<Keys>> = yaml(path, bytes)?;
        if entries.len() > MAX_TOKENS {
            return Err(refuse(path, 0, format!("{} tokens exceed the limit of {MAX_TOKENS}", entries.len())));
        }
        let mut known: Self = Self { path: path.to_owned(), tokens: Vec::with_capacity(entries.len()) };
        for (name, keys) in entries {
            let line = keys.referenced.line();
            check_name(&name).map_err(|error| refuse(path, line, error.to_string()))?;
            let Keys { role, sha256, expires } = keys.value;
            let at = |line, why: String| refuse(path, line, format!("the token {name}: {why}"));
            let token = Token {
                role: role.value.parse().map_err(|error| at(role.referenced.line(), format!("{error}")))?,
                hash: unhex(&sha256.value).map(TokenHash).ok_or_else(|| {
                    at(
                        sha256.referenced.line(),
                        "sha256 must be 64 hexadecimal digits; queuekeeper token creates them".to_owned(),
                    )
                })?,
                expires: expires
                    .map(|text| {
                        expiry(&text.value).map_err(|why| at(text.referenced.line(), format!("expires: {why}")))
                    })
                    .transpose()?,
                line,
                name: name.clone(),
            };
            if let Some(same) = known.tokens.iter().find(|other| other.hash.0 == token.hash.0) {
                return Err(at(line, format!("it is the same token as {}; each must be unique", same.name)));
            }
            known.tokens.push(token);
        }
        Ok(known)
    }

    /// Checks a token that a client presents. The time this takes reveals nothing about the known tokens.
    ///
    /// A token that is too short to be random is unknown, even if its hash is in the file.
    #[must_use]
    pub fn find(&self, presented: &[u8], now: Timestamp) -> Presented<'_> {
        if presented.len() < secret::MIN_CHARS {
            return Presented::Unknown;
        }
        let hash = secret::hash(presented);
        let mut found = None;
        for token in &self.tokens {
            if verify_slices_are_equal(&token.hash.0, &hash).is_ok() {
                found = Some(token);
            }
        }
        match found {
            None => Presented::Unknown,
            Some(token) => match token.expires {
                Some(expires) if expires <= now => Presented::Expired(token, expires),
                _ => Presented::Valid(token),
            },
        }
    }

    /// The token with a hash, if it is known and has not expired.
    #[must_use]
    pub fn valid(&self, hash: &TokenHash, now: Timestamp) -> Option<&Token> {
        let mut found = None;
        for token in &self.tokens {
            if verify_slices_are_equal(&token.hash.0, &hash.0).is_ok() {
                found = Some(token);
            }
        }
        found.filter(|token| token.expires.is_none_or(|expires| expires > now))
    }

    /// Refuses a token with the name of a user.
    pub(super) fn differ_from(&self, users: &Users) -> Result<(), FileError> {
        match self.tokens.iter().find(|token| users.hash(&token.name).is_some()) {
            None => Ok(()),
            Some(Token { name, line, .. }) => {
                let why = format!("the token {name}: the web configuration has a user of that name; choose another");
                Err(refuse(&self.path, *line, why))
            }
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The names of the expired ones.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let is_expired = move |token: &&Token| token.expires.is_some_and(|expires| expires <= now);
        self.tokens.iter().filter(is_expired).map(|token| token.name.as_str())
    }

    /// The names of those of a role, each with its line of the tokens file.
    /// The names of those with a role, each with where it stands.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = (String, FileLine<'_>)> {
        let of_role = self.tokens.iter().filter(move |token| token.role == role);
        of_role.map(|token| (token.name.clone(), (&*self.path, token.line)))
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = Role> {
        self.tokens.iter().map(|token| token.role)
    }
}

/// A line for the tokens file, without the token itself.
pub struct TokenLine {
    name: String,
    role: Role,
    hash: [u8; 32],
    expires: Option<Timestamp>,
}

/// A name that is not valid for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenLineError {
    /// It has an invalid character or length.
    #[error("the name of a token must begin with a letter and have up to {MAX_NAME_CHARS} letters, digits and - _ . @")]
    Name,
    /// It looks like the token itself.
    #[error("a name that begins with {PREFIX} looks like a token; expected the name of the token")]
    Secret,
}

impl TokenLine {
    /// The line for a token.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn new(name: &str, role: Role, expires: Option<Timestamp>, secret: &Secret) -> Result<Self, TokenLineError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), role, hash: secret.hash(), expires })
    }
}

impl fmt::Display for TokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quoted, since YAML would read a name such as `null` and a hash of digits only as other types.
        write!(f, "\"{}\": {{role: {}, sha256: \"", self.name, self.role)?;
        for byte in self.hash {
            write!(f, "{byte:02x}")?;
        }
        match self.expires {
            Some(expires) => write!(f, "\", expires: \"{expires}\"}}"),
            None => write!(f, "\"}}"),
        }
    }
}

/// The expiry of a token: an instant as in RFC 3339, or a date, which means its start in UTC.
///
/// # Errors
/// When it is neither; the error has the valid forms.
pub fn expiry(text: &str) -> Result<Timestamp, String> {
    let is_date = text.len() == 10;
    let read = if is_date {
        // The last date that can be written is after the last representable instant.
        let begins = |date: Date| date.to_zoned(TimeZone::UTC).map_or(Timestamp::MAX, |start| start.timestamp());
        text.parse().ok().map(begins)
    } else {
        text.parse().ok()
    };
    read.ok_or_else(|| {
        format!("“{text}” is neither a date such as 2027-01-31 nor an instant such as 2027-01-31T18:00:00Z")
    })
}

fn check_name(name: &str) -> Result<(), TokenLineError> {
    if name.starts_with(PREFIX) {
        return Err(TokenLineError::Secret);
    }
    let is_name = name.len() <= MAX_NAME_CHARS
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if is_name { Ok(()) } else { Err(TokenLineError::Name) }
}

/// Removes from an error what looks like a token, so that one in the wrong place of the file does not get into a log.
fn conceal(error: FileError) -> FileError {
    match error {
        FileError::Format { path, line, why } if why.contains(PREFIX) => {
            FileError::Format { path, line, why: TokenLineError::Secret.to_string() }
        }
        error => error,
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 2 * hash.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Tokens, FileError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Tokens::read(file.path(), &mut Files::default())
    }

    #[test]
    fn a_line_is_parsed_again_whatever_its_name_means_in_yaml() {
        let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        for name in ["null", "true", "yes", "ci", "a.b@c-d_e", "y", "e1"] {
            let secret = Secret::make();
            let line = TokenLine::new(name, Role::Operator, Some(end), &secret).unwrap();
            let tokens = tokens(&format!("{line}\n")).unwrap_or_else(|error| panic!("{line}: {error}"));
            let Presented::Valid(token) =
                tokens.find(secret.reveal().as_bytes(), end - jiff::SignedDuration::from_nanos(1))
            else {
                panic!("{line}")
            };
            assert_eq!((token.name.as_str(), token.role), (name, Role::Operator));
            let Presented::Expired(_, at) = tokens.find(secret.reveal().as_bytes(), end) else { panic!("{line}") };
            assert_eq!(at, end);
            assert!(matches!(tokens.find(Secret::make().reveal().as_bytes(), end), Presented::Unknown));
        }
        for name in ["", "1a", "a b", "a:b", "é", &"a".repeat(65)] {
            assert!(TokenLine::new(name, Role::Viewer, None, &Secret::make()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_token_that_is_short_enough_to_be_guessed_is_unknown_even_if_its_hash_is_in_the_file() {
        let hash = |text: &str| secret::hash(text.as_bytes()).map(|byte| format!("{byte:02x}")).concat();
        let (short, long) = ("x".repeat(secret::MIN_CHARS - 1), "x".repeat(secret::MIN_CHARS));
        let lines = [("short", &short), ("long", &long)];
        let lines = lines.map(|(name, text)| format!("{name}: {{role: admin, sha256: \"{}\"}}\n", hash(text)));
        let tokens = tokens(&lines.concat()).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        assert!(matches!(tokens.find(short.as_bytes(), now), Presented::Unknown));
        assert!(matches!(tokens.find(long.as_bytes(), now), Presented::Valid(token) if token.name == "long"));
    }

    #[test]
    fn an_expiry_is_a_date_or_an_instant() {
        for (text, instant) in [
            ("2027-01-31", "2027-01-31T00:00:00Z"),
            ("2027-01-31T18:00:00Z", "2027-01-31T18:00:00Z"),
            ("2027-01-31T18:00:00.5+02:00", "2027-01-31T16:00:00.5Z"),
            ("9999-12-31", "9999-12-30T22:00:00.999999999Z"),
        ] {
            assert_eq!(expiry(text), Ok(instant.parse().unwrap()), "{text}");
        }
        for text in ["", "tomorrow", "2027-02-30", "2027-01-31T18:00:00", "20270131", "1798761600"] {
            assert!(expiry(text).unwrap_err().contains("2027-01-31T18:00:00Z"), "{text}");
        }
    }
}
