//! `STORE/SPACE/KEY`.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::{OsStringValueParser, TypedValueParser, ValueParser};
use queuekeeper_store::error::shortened;
use queuekeeper_store::{Item, Key, SpaceName, StoreName};

/// A store, a space in it, or an item in that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StorePath {
    pub(super) store: StoreName,
    pub(super) space: Option<SpaceName>,
    /// What is behind the second slash: any bytes.
    pub(super) rest: Vec<u8>,
}

impl StorePath {
    fn parse(text: &OsString) -> Result<Self, String> {
        let mut parts = text.as_bytes().splitn(3, |byte| *byte == b'/');
        let mut name = || parts.next().map(|part| String::from_utf8_lossy(part).into_owned());
        let store = name().unwrap_or_default().parse().map_err(|error| format!("the store has an {error}"))?;
        let space = name().filter(|space| !space.is_empty()).map(|space| space.parse());
        let space = space.transpose().map_err(|error| format!("the space has an {error}"))?;
        Ok(Self { store, space, rest: parts.next().unwrap_or_default().to_vec() })
    }

    /// How arguments of this kind are read.
    pub(super) fn parser() -> ValueParser {
        OsStringValueParser::new().try_map(|text| Self::parse(&text)).into()
    }

    /// How arguments are read that name an item.
    pub(super) fn item_parser() -> ValueParser {
        let item = |text: OsString| {
            let path = Self::parse(&text)?;
            match path.space {
                Some(space) if !path.rest.is_empty() => {
                    let key = Key::new(path.rest).map_err(|error| error.to_string())?;
                    Ok(ItemPath { store: path.store, item: Item::new(space, key) })
                }
                _ => Err("an item is named STORE/SPACE/KEY".to_owned()),
            }
        };
        OsStringValueParser::new().try_map(item).into()
    }
}

/// How arguments are read that are keys.
pub(super) fn key_parser() -> ValueParser {
    OsStringValueParser::new().try_map(|text| Key::new(text.as_bytes())).into()
}

/// An item of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemPath {
    pub(super) store: StoreName,
    pub(super) item: Item,
}

impl ItemPath {
    /// The name as errors have it.
    pub(super) fn short(&self) -> String {
        shortened(&self.to_string()).into_owned()
    }
}

impl fmt::Display for ItemPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.store, self.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &[u8]) -> Result<(String, Option<String>, Vec<u8>), String> {
        let text = std::ffi::OsStr::from_bytes(text).to_owned();
        StorePath::parse(&text)
            .map(|path| (path.store.to_string(), path.space.map(|space| space.to_string()), path.rest))
    }

    #[test]
    fn the_key_is_everything_behind_the_second_slash() {
        let of = |store: &str, space: Option<&str>, rest: &[u8]| {
            Ok((store.to_owned(), space.map(str::to_owned), rest.to_vec()))
        };
        assert_eq!(parse(b"main"), of("main", None, b""));
        assert_eq!(parse(b"main/"), of("main", None, b""));
        assert_eq!(parse(b"main/space"), of("main", Some("space"), b""));
        assert_eq!(parse(b"main/space//a//b/\xff"), of("main", Some("space"), b"/a//b/\xff"));
        assert!(parse(b"").is_err() && parse(b"/space/a").is_err() && parse(b"main/../a").is_err());
        let item = |text: &str| {
            let parser = StorePath::item_parser();
            let command = clap::Command::new("t").arg(clap::Arg::new("item").value_parser(parser));
            command
                .try_get_matches_from(["t", text])
                .map(|found| found.get_one::<ItemPath>("item").unwrap().to_string())
        };
        assert_eq!(item("main/space/a/b").unwrap(), "main/space/a/b");
        for wrong in ["main", "main/space", "main/space/", "main//a"] {
            assert!(item(wrong).is_err(), "{wrong}");
        }
    }
}
