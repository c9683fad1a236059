//! What became of a change whose outcome is unknown: a function of its intent and of what the store has now.

use crate::audit::{Change, Intent, Settlement};
use crate::digest::{Algorithm, Digests};
use crate::store::{EntityTag, Properties, UserProperties};

/// What the store has where a change is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No item, or no space.
    Nothing,
    /// The space.
    Space,
    /// The item. Its checksums are those that the store keeps, and those that were computed since by reading it.
    Content(Box<Properties>),
}

impl Found {
    /// The entity tag of the item.
    pub(super) fn etag(&self) -> Option<&EntityTag> {
        self.content().map(|content| &content.etag)
    }

    /// The item.
    pub(super) fn content(&self) -> Option<&Properties> {
        match self {
            Self::Content(content) => Some(content),
            Self::Nothing | Self::Space => None,
        }
    }
}

/// What is known of the change, or what must be read to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is settled so.
    Settle(Settlement),
    /// The digest of the content that is there is needed, by this algorithm.
    Read(Algorithm),
    /// The digest of the content that was to be copied is needed, by this algorithm: the intent has none.
    ReadSource(Algorithm),
}

/// Decides what became of a change, once nothing of it can happen any more.
///
/// An item in the state that was seen before the change was not changed. One in another state was changed by it if the
/// content is what was to be written: digests decide. What fits neither was changed by another client, before or after,
/// and is *observed*. So is content that was there already and is the same as what was to be written, under a tag that
/// does not differ: it may have been written anew.
pub(super) fn decide(intent: &Intent, found: &Found) -> Decision {
    let (seen, now) = (intent.seen.as_ref(), found.etag());
    match intent.change {
        Change::CreateSpace if *found == Found::Nothing => not_done(),
        Change::DeleteSpace if *found != Found::Nothing => not_done(),
        Change::CreateSpace | Change::DeleteSpace => done(intent, found),
        // The size is recorded before the content may appear.
        Change::Add | Change::Update if intent.size.is_none() => not_done(),
        Change::Delete if seen.is_some() && now.is_none() => done(intent, found),
        Change::Add | Change::Update | Change::Copy | Change::Delete | Change::Properties
            if seen.is_none() && now.is_none() =>
        {
            not_done()
        }
        Change::Delete if seen == now => not_done(),
        Change::Delete => observed(found, "it was written again, by another client, and may have been deleted before"),
        Change::Add | Change::Update | Change::Copy => match found.content() {
            Some(content) => written(intent, found, content),
            None => observed(found, "it is gone, and may have been written before"),
        },
        Change::Properties => match found.content() {
            Some(content) => properties(intent, found, content),
            None => observed(found, "it is gone, and its properties may have been replaced before"),
        },
    }
}

/// Of content that was to be written, with content that is there.
fn written(intent: &Intent, found: &Found, content: &Properties) -> Decision {
    let is_as_seen = intent.seen.as_ref() == Some(&content.etag);
    let is_same = if intent.size.is_some_and(|size| size != content.size) {
        false
    } else {
        match (intent.digests.agree(&content.checksums), intent.digests.strongest()) {
            (Some(is_same), _) => is_same,
            (None, Some(digest)) => return Decision::Read(digest.algorithm()),
            (None, None) if intent.source.is_some() => return Decision::ReadSource(READ),
            (None, None) => return observed(found, "no digest of what was to be written is known"),
        }
    };
    match (is_as_seen, is_same) {
        (false, true) => done(intent, found),
        (true, false) => not_done(),
        (false, false) => observed(found, "it has other content than before, and not what was to be written"),
        (true, true) => observed(found, "it has the content that it had before, and may have been written again"),
    }
}

/// The digest that is computed where the choice is free.
const READ: Algorithm = Algorithm::Sha256;

/// Of properties that were to be set: they were others before, or nothing would have begun.
fn properties(intent: &Intent, found: &Found, content: &Properties) -> Decision {
    let is_as_seen = intent.seen.as_ref() == Some(&content.etag);
    let is_same_content = is_as_seen || intent.digests.agree(&content.checksums) == Some(true);
    match (is_same_content, has_properties(intent, &content.user)) {
        (true, true) => done(intent, found),
        (true, false) if is_as_seen => not_done(),
        (true, false) => observed(found, "its properties are neither what they were to be nor what they were"),
        (false, _) => observed(found, "its content may have been written by another client"),
    }
}

/// Whether the properties are those that were to be set. A store may have a media type where none was given.
fn has_properties(intent: &Intent, user: &UserProperties) -> bool {
    let wanted = intent.properties.as_deref().map(serde_json::from_str::<UserProperties>);
    let Some(Ok(mut wanted)) = wanted else { return false };
    if wanted.content_type.is_none() {
        wanted.content_type.clone_from(&user.content_type);
    }
    wanted == *user
}

fn not_done() -> Decision {
    Decision::Settle(Settlement::NotDone)
}

fn done(intent: &Intent, found: &Found) -> Decision {
    let change = intent.change;
    let content = found.content();
    let digests = content.map(|content| union(&content.checksums, &intent.digests)).unwrap_or_default();
    let (etag, size) = (found.etag().cloned(), content.map(|content| content.size));
    Decision::Settle(Settlement::Done { change, etag, size, digests })
}

/// Digests of one content, known from two sides.
pub(super) fn union(one: &Digests, other: &Digests) -> Digests {
    one.iter().chain(other.iter()).cloned().collect()
}

/// An unclear outcome, for an operator.
pub(super) fn unclear(found: &Found, why: &str) -> Settlement {
    let content = found.content();
    Settlement::Observed {
        etag: found.etag().cloned(),
        size: content.map(|content| content.size),
        digests: content.map(|content| content.checksums.clone()).unwrap_or_default(),
        why: why.to_owned(),
    }
}

fn observed(found: &Found, why: &str) -> Decision {
    Decision::Settle(unclear(found, why))
}

#[cfg(test)]
mod tests;
