//! Where in S3 the items of a space lie: a prefix of one bucket, or a bucket of the space's own.

use std::fmt;
use std::str::FromStr;

use crate::error::ErrorKind;
use crate::key::Key;
use crate::name::SpaceName;

/// What stands for the name of the space.
const SPACE: &str = "{space}";

/// The folder beside the spaces whose objects are named after spaces, so that empty ones exist. No space has this name.
const MARKERS: &str = ".spaces/";

/// What a store's URL names: `s3://BUCKET/PREFIX`, with `{space}` in the bucket where each space has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    bucket: Bucket,
    /// Empty, or with a slash at its end.
    prefix: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bucket {
    One(String),
    Each { before: String, after: String },
}

/// What is wrong with a store's URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// It does not begin with `s3://`.
    #[error("the URL of an S3 store begins with s3://, as in s3://bucket/prefix")]
    Scheme,
    /// Something before an `@`, which may be a secret, and so is not repeated.
    #[error("the URL of an S3 store has no user and no key in it; they are for credentials_file")]
    Credentials,
    /// The name of the bucket.
    #[error(
        "invalid bucket {0:?}: 3 to 63 letters, digits, '-', '_' and '.', with {{space}} at most once, as in s3://bucket/prefix \
         or s3://{{space}}-cold"
    )]
    Bucket(String),
    /// The prefix.
    #[error("invalid prefix {0:?}: no empty, '.' or '..' part, no control character, no {{space}}, at most 512 bytes")]
    Prefix(String),
}

/// An object: its bucket and its key there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) bucket: String,
    pub(super) key: String,
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(url: &str) -> Result<Self, LocationError> {
        let rest = url.strip_prefix("s3://").ok_or(LocationError::Scheme)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        // A secret may have a slash in it. No bucket has an `@`, and a prefix with one is not worth the risk.
        if rest.contains('@') {
            return Err(LocationError::Credentials);
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        if prefix.len() > 512 || prefix.contains(SPACE) || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
            return Err(LocationError::Prefix(prefix.chars().take(512).collect()));
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let is_valid = |name: &str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
                && name.len() <= 63
                && name.bytes().next().is_none_or(|byte| byte != b'.' && byte != b'-')
        };
        let bucket = match bucket.split_once(SPACE) {
            Some((before, after)) if is_valid(before) && is_valid(&format!("a{after}")) => {
                Bucket::Each { before: before.to_owned(), after: after.to_owned() }
            }
            None if is_valid(bucket) && bucket.len() >= 3 => Bucket::One(bucket.to_owned()),
            _ => return Err(LocationError::Bucket(bucket.chars().take(128).collect())),
        };
        Ok(Self { bucket, prefix })
    }
}

/// The URL.
impl fmt::Display for Location {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bucket {
            Bucket::One(bucket) => write!(to, "s3://{bucket}")?,
            Bucket::Each { before, after } => write!(to, "s3://{before}{SPACE}{after}")?,
        }
        if !self.prefix.is_empty() {
            write!(to, "/{}", self.prefix.trim_end_matches('/'))?;
        }
        Ok(())
    }
}

impl Location {
    /// Whether a key may lie in both: they have a bucket in common, and one prefix begins with the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_within = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
        self.bucket == other.bucket && is_within(&self.prefix, &other.prefix)
    }

    /// The bucket that holds all spaces; `None` where each has its own.
    pub(super) fn shared_bucket(&self) -> Option<&str> {
        match &self.bucket {
            Bucket::One(bucket) => Some(bucket),
            Bucket::Each { .. } => None,
        }
    }

    /// The bucket of a space.
    pub(super) fn bucket(&self, space: &SpaceName) -> Result<String, ErrorKind> {
        let (before, after) = match &self.bucket {
            Bucket::One(bucket) => return Ok(bucket.clone()),
            Bucket::Each { before, after } => (before, after),
        };
        let name = format!("{before}{space}{after}");
        let is_edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let are_valid =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
        let has_edges = is_edge(name.bytes().next()) && is_edge(name.bytes().last());
        if are_valid && has_edges && (3..=63).contains(&name.len()) && !name.contains("..") {
            return Ok(name);
        }
        let why = "the name of a bucket has 3 to 63 lower-case letters, digits, '-' and '.'";
        Err(ErrorKind::Unsupported(format!("{why}, and the space's would be {name:?}")))
    }

    /// The space that has this bucket of its own.
    pub(super) fn space_of_bucket(&self, name: &str) -> Option<SpaceName> {
        match &self.bucket {
            Bucket::One(_) => None,
            Bucket::Each { before, after } => name.strip_prefix(&**before)?.strip_suffix(&**after)?.parse().ok(),
        }
    }

    /// The bucket of a space, and what the keys of its items begin with there.
    ///
    /// # Errors
    /// With a sentence, when no bucket can have the name.
    pub fn objects_of(&self, space: &SpaceName) -> Result<(String, String), String> {
        let bucket = self.bucket(space).map_err(|error| error.to_string())?;
        Ok((bucket, self.space_prefix(space)))
    }

    /// What the keys of a space's objects begin with.
    pub(super) fn space_prefix(&self, space: &SpaceName) -> String {
        match &self.bucket {
            Bucket::One(_) => format!("{}{space}/", self.prefix),
            Bucket::Each { .. } => self.prefix.clone(),
        }
    }

    /// What the keys of all objects begin with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the keys of the objects begin with that are named after spaces.
    pub(super) fn markers(&self) -> String {
        format!("{}{MARKERS}", self.prefix)
    }

    /// Whether an object of this key lies in a space, and not beside them in the same bucket.
    pub(super) fn has_item(&self, key: &str) -> bool {
        let Some(rest) = key.strip_prefix(&*self.prefix) else { return false };
        match &self.bucket {
            Bucket::One(_) => rest.split_once('/').is_some_and(|(space, _)| space.parse::<SpaceName>().is_ok()),
            Bucket::Each { .. } => true,
        }
    }

    /// The object of an item.
    pub(super) fn object(&self, space: &SpaceName, key: &Key) -> Result<Object, ErrorKind> {
        let unsupported = |why: String| ErrorKind::Unsupported(why);
        let text = key.as_str().ok_or_else(|| unsupported("S3 keeps keys in UTF-8, and this one is not".to_owned()))?;
        let key = self.space_prefix(space) + text;
        if key.len() > Key::MOST_BYTES {
            let (most, length) = (Key::MOST_BYTES, key.len());
            return Err(unsupported(format!(
                "S3's keys have at most {most} bytes, and with its prefix this has {length}"
            )));
        }
        Ok(Object { bucket: self.bucket(space)?, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(url: &str) -> Location {
        url.parse().unwrap()
    }

    #[test]
    fn a_space_is_a_prefix_or_a_bucket_as_the_url_says() {
        let (space, key) = ("maps".parse::<SpaceName>().unwrap(), Key::new(*b"/a//..").unwrap());
        let object = |url: &str| location(url).object(&space, &key).map(|object| (object.bucket, object.key)).unwrap();
        let expected = |bucket: &str, key: &str| (bucket.to_owned(), key.to_owned());
        assert_eq!(object("s3://preservation/copies/b/"), expected("preservation", "copies/b/maps//a//.."));
        assert_eq!(object("s3://preservation"), expected("preservation", "maps//a//.."));
        assert_eq!(object("s3://{space}-cold"), expected("maps-cold", "/a//.."));
        assert_eq!(object("s3://b.{space}/p"), expected("b.maps", "p//a//.."));
        assert_eq!(location("s3://{space}-cold").space_of_bucket("maps-cold"), Some(space));
        assert_eq!(location("s3://{space}-cold").space_of_bucket("maps-warm"), None);
        assert_eq!(location("s3://b.{space}/p/").to_string(), "s3://b.{space}/p");
        let is_item = |key: &str| location("s3://preservation/copies").has_item(key);
        assert!(is_item("copies/maps/a") && is_item("copies/maps/"));
        assert!(!is_item("other/maps/a") && !is_item("copies/maps") && !is_item("copies/.spaces/maps"));
    }

    #[test]
    fn what_s3_cannot_hold_is_refused_with_the_reason() {
        let (space, odd) = ("maps".parse::<SpaceName>().unwrap(), "a_b".parse::<SpaceName>().unwrap());
        let why = |url: &str, space: &SpaceName, key: &[u8]| {
            location(url).object(space, &Key::new(key).unwrap()).unwrap_err().to_string()
        };
        assert!(why("s3://bucket", &space, b"a\xff").contains("UTF-8"));
        assert!(why("s3://bucket", &space, &[b'a'; 1020]).contains("1025"));
        assert!(location("s3://bucket").object(&space, &Key::new([b'a'; 1019]).unwrap()).is_ok());
        assert!(why("s3://{space}-cold", &odd, b"a").contains("a_b-cold"));
        assert!(location("s3://bucket").object(&odd, &Key::new(*b"a").unwrap()).is_ok());
    }

    #[test]
    fn urls_that_name_no_place_are_refused() {
        for url in
            ["file:///a", "s3://", "s3://a", "s3://b c", "s3://{space}{space}", "s3:///p", "s3://-bc", "s3://bkt:a"]
        {
            assert!(url.parse::<Location>().is_err(), "{url}");
        }
        for prefix in ["a//b", "/a", "..", "a/./b", "a\n", "{space}"] {
            assert!(format!("s3://bucket/{prefix}").parse::<Location>().is_err(), "{prefix}");
        }
    }
}
