//! Of which spaces tokens may send messages of stores, in the file of `--config.file`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::source::{FileError, refuse};
use super::{FileLine, StoreSettings};
use crate::actions::store_events::EventSource;

/// How many messages a token may send in a minute, where nothing else is said.
const PER_MINUTE: u32 = 600;

/// The keys of a token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    store: String,
    space: String,
    messages_per_minute: Option<u32>,
}

/// Checks that exactly those who have the role have an entry. `senders` are the users and tokens of that role, each
/// with its place for errors.
pub(super) fn check(
    path: &Path,
    keys: BTreeMap<String, Spanned<Keys>>,
    senders: &BTreeMap<String, FileLine<'_>>,
    stores: &StoreSettings,
) -> Result<BTreeMap<String, EventSource>, FileError> {
    if let Some((name, (file, line))) = senders.iter().find(|(name, _)| !keys.contains_key(*name)) {
        let why = format!(
            "{name} has the role store-events, but no entry below store_events, such as {name}: {{store: main, space: demo}}"
        );
        return Err(refuse(file, *line, why));
    }
    let mut sources = BTreeMap::new();
    for (name, keys) in keys {
        let line = keys.referenced.line();
        let wrong = |why: String| refuse(path, line, format!("store_events: {name}: {why}"));
        if !senders.contains_key(&name) {
            return Err(refuse(path, line, format!("store_events: no user or token {name} has the role store-events")));
        }
        let Keys { store, space, messages_per_minute } = keys.value;
        let store = store.parse().map_err(|error| wrong(format!("{error}")))?;
        let space = space.parse().map_err(|error| wrong(format!("{error}")))?;
        let (bucket, prefix) = stores.objects_of(&store, &space).map_err(wrong)?;
        let per_minute = messages_per_minute.unwrap_or(PER_MINUTE);
        sources.insert(name, EventSource { store, space, bucket, prefix, per_minute });
    }
    Ok(sources)
}
