//! Where access requests are delivered to, in the file of `--config.file`.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_store::StoreName;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::source::{FileError, refuse};
use super::super::{ExternalUrl, PrometheusDuration};
use super::StoreSettings;

/// The longest time for which S3 answers a link that is signed in advance.
const PRESIGNED: Duration = Duration::from_hours(7 * 24);

/// The shortest and the longest time.
const LIFETIMES: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(366 * 24));

/// The keys of access requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    store: Spanned<String>,
    space: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    presigned: Option<Spanned<bool>>,
    lifetime: Option<Spanned<String>>,
    small_bytes: Option<u64>,
    node: Option<u32>,
}

/// Checks them against the stores and the catalogue of the file.
pub(super) fn check(path: &Path, keys: Keys, stores: &StoreSettings) -> Result<AccessSettings, FileError> {
    let at = |line: u64, why: &dyn fmt::Display| refuse(path, line, format!("access: {why}"));
    let line = keys.store.referenced.line();
    let store: StoreName = keys.store.value.parse().map_err(|error| at(line, &error))?;
    if !stores.names().any(|name| *name == store) {
        return Err(at(line, &format_args!("store: there is no {store} below stores")));
    }
    if stores.catalogue().is_none() {
        return Err(at(line, &"access requests require a catalogue, and the file names none"));
    }
    let usual = AccessSettings::new(store.clone());
    let space = match keys.space {
        None => usual.space,
        Some(space) => space.value.parse().map_err(|error| at(space.referenced.line(), &error))?,
    };
    let presigned = keys.presigned.filter(|presigned| presigned.value);
    if let Some(presigned) = presigned.as_ref().filter(|_| !stores.is_bucket(&store)) {
        let why = "presigned: only a store in S3 signs links; remove it, and set url to the server that serves them";
        return Err(at(presigned.referenced.line(), &why));
    }
    let url = match keys.url {
        Some(url) => {
            let parsed = url.value.parse::<ExternalUrl>();
            parsed.map_err(|error| at(url.referenced.line(), &format_args!("url: {error}")))?;
            format!("{}/", url.value.trim_end_matches('/'))
        }
        None if presigned.is_some() => usual.url,
        None => return Err(at(line, &"set url to the server that serves the links")),
    };
    let lifetime = match keys.lifetime {
        None => usual.lifetime,
        Some(text) => {
            let line = text.referenced.line();
            let parsed = text.value.parse::<PrometheusDuration>();
            let lifetime = parsed.map_err(|error| at(line, &format_args!("lifetime: {error}")))?.get();
            let (least, most) = LIFETIMES;
            if lifetime < least || lifetime > most {
                return Err(at(line, &"lifetime: from 1m to 366d"));
            }
            if presigned.is_some() && lifetime > PRESIGNED {
                return Err(at(line, &"lifetime: at most 7d, the limit of S3 for presigned links"));
            }
            lifetime
        }
    };
    let (node, small) = (keys.node.unwrap_or(usual.node), keys.small_bytes.unwrap_or(usual.small));
    let is_presigned = presigned.is_some();
    Ok(AccessSettings { store, space, node, url, is_presigned, lifetime, small })
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;

    fn read(access: &str) -> Result<super::AccessSettings, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yml");
        let text = format!(
            "stores: {{out: {{url: \"file:///srv/out\"}}, s3: {{url: \"s3://out\"}}}}\ncatalogue: {{url: \"sqlite:c.db\"}}\naccess:\n{access}"
        );
        std::fs::write(&path, text).unwrap();
        let read = ConfigFile::read(&path).map_err(|error| error.to_string())?;
        Ok(read.stores().access().unwrap().clone())
    }

    #[test]
    fn the_delivery_store_is_one_of_the_stores_and_links_have_a_url_and_an_end() {
        let settings = read("  store: out\n  url: \"https://ops.example.edu/queue\"\n").unwrap();
        assert_eq!((settings.space.as_str(), settings.url.as_str()), ("access", "https://ops.example.edu/queue/"));
        assert_eq!((settings.lifetime.as_secs(), settings.node, settings.small), (604_800, 1, 1 << 30));
        let all = "  store: out\n  space: given-out\n  url: \"http://host:8080/\"\n  lifetime: 12h\n  small_bytes: 5\n  node: 7001\n";
        let settings = read(all).unwrap();
        assert_eq!((settings.space.as_str(), settings.url.as_str()), ("given-out", "http://host:8080/"));
        assert_eq!((settings.lifetime.as_secs(), settings.node, settings.small), (43_200, 7001, 5));
        let settings = read("  store: s3\n  presigned: true\n").unwrap();
        assert_eq!((settings.is_presigned, settings.lifetime.as_secs()), (true, 604_800));
        for (access, expected) in [
            ("  store: out\n  presigned: true\n", "line 5: access: presigned: only a store in S3"),
            ("  store: s3\n  presigned: true\n  lifetime: 8d\n", "line 6: access: lifetime: at most 7d"),
            ("  store: s3\n  presigned: false\n", "line 4: access: set url"),
            ("  store: main\n  url: \"http://a\"\n", "line 4: access: store: there is no main below stores"),
            ("  store: out\n", "url"),
            ("  store: out\n  url: \"ftp://a\"\n", "line 5: access: url: the scheme is neither http nor https"),
            ("  store: out\n  url: \"http://a\"\n  lifetime: 5s\n", "line 6: access: lifetime: from 1m to 366d"),
            ("  store: out\n  url: \"http://a\"\n  space: \"a/b\"\n", "line 6: access: invalid name"),
        ] {
            let found = read(access).unwrap_err();
            assert!(found.contains(expected), "{access}: {found}");
        }
    }
}
