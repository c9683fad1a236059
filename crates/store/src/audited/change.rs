//! Changes that can be repeated: copies, deletions, properties, spaces.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Audited;
use super::begin::Target;
use super::decide::Found;
use super::guard::LeaseGuard;
use super::settle::Done;
use crate::audit::{Change, Intent};
use crate::error::{Error, ErrorKind, Operation};
use crate::name::SpaceName;
use crate::store::{Condition, CopyControl, EntityTag, Item, Store, UserProperties, Written};

/// How often a change without a condition of the caller's is begun when others change the item at the same time.
const ATTEMPTS: usize = 3;

/// Repeats what is overtaken by a change that is made around this program, unless it has a condition of the caller's.
async fn repeated<T, F>(target: &Target, is_free: bool, once: impl Fn() -> F + Send) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + Send,
{
    let mut left = if is_free { ATTEMPTS } else { 1 };
    loop {
        left -= 1;
        match once().await {
            Err(error) if error.is_precondition() && left > 0 => {}
            Err(error) if is_free => return Err(target.overtaken(error)),
            result => return result,
        }
    }
}

impl Target {
    /// A condition that the caller did not ask for was not met: to them, it is temporary.
    pub(super) fn overtaken(&self, error: Error) -> Error {
        if error.is_precondition() {
            return self.unavailable(&"another program changed it meanwhile");
        }
        error
    }

    /// An operation that was stopped and not by its caller was stopped since its lease was lost.
    pub(super) fn explained(&self, error: Error, abort: &CancellationToken, callers: &CancellationToken) -> Error {
        match error.kind {
            ErrorKind::Stopped(_) if abort.is_cancelled() && !callers.is_cancelled() => {
                self.error(ErrorKind::Stopped("the lease of this change could not be kept".to_owned()))
            }
            _ => error,
        }
    }
}

impl<S: Store + ?Sized> Audited<S> {
    pub(super) fn check_reserved(&self, target: &Target) -> Result<(), Error> {
        let space = target.space();
        let is_reserved = space.is_reserved_in_store() || self.reserved.contains(space);
        if !is_reserved || self.owned.contains(space) {
            return Ok(());
        }
        let why = format!("the space {space} is reserved for queuekeeper itself; use another one");
        Err(target.error(ErrorKind::Reserved(why)))
    }

    /// The caller's condition; without one, that the item is as it was found, where the store can hold to it.
    pub(super) fn condition(&self, callers: &Condition, found: &Found) -> Condition {
        match (callers, found.etag()) {
            (Condition::None, None) if self.if_absent => Condition::IfAbsent,
            (Condition::None, Some(etag)) if self.if_match => Condition::IfMatch(etag.clone()),
            (callers, _) => callers.clone(),
        }
    }

    fn if_match(&self, callers: Option<&EntityTag>, found: &Found) -> Option<EntityTag> {
        callers.or(found.etag().filter(|_| self.if_match)).cloned()
    }

    pub(super) async fn copy_recorded(
        &self,
        from: &Item,
        if_match: Option<&EntityTag>,
        to: &Item,
        condition: &Condition,
        control: &CopyControl,
    ) -> Result<Written, Error> {
        let target = &self.target(Operation::Copy, &to.space, Some(&to.key));
        self.check_reserved(target)?;
        let is_free = if_match.is_none() && *condition == Condition::None;
        let once = || async move {
            let source = self.store.head(from).await?;
            let source = source.ok_or_else(|| self.error(Operation::Copy, from, ErrorKind::NotFound))?;
            let if_match = if_match.or(Some(&source.etag).filter(|_| self.if_match));
            let make = |found: &Found| {
                Ok(Some(Intent {
                    size: Some(source.size),
                    digests: source.checksums.clone(),
                    source: Some((from.space.clone(), from.key.clone())),
                    ..self.intent(target, Change::Copy, found)
                }))
            };
            let opened = self.open(target, false, make).await?.expect("content can always be copied");
            let condition = self.condition(condition, &opened.found);
            let guard = LeaseGuard { lease: opened.lease.clone(), callers: control.guard.clone() };
            let below = CopyControl { abort: control.abort.child_token(), guard: Some(Arc::new(guard)) };
            let copy = self.store.copy_with(from, if_match, to, &condition, &below);
            let copied = opened.lease.hold(Some(&below.abort), copy).await;
            let copied = copied.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
            let copied = copied.map_err(|error| target.explained(error, &below.abort, &control.abort));
            let done = copied.map(|written| Done::with_content(Change::Copy, written));
            self.close(target, &opened, done).await
        };
        let done = repeated(target, is_free, once).await?;
        Ok(done.into_written().expect("content that was copied has a tag and a size"))
    }

    pub(super) async fn delete_recorded(&self, item: &Item, if_match: Option<&EntityTag>) -> Result<bool, Error> {
        let target = &self.target(Operation::Delete, &item.space, Some(&item.key));
        self.check_reserved(target)?;
        let once = || async move {
            let make = |found: &Found| match found {
                Found::Nothing => Ok(None),
                Found::Space | Found::Content(_) => Ok(Some(self.intent(target, Change::Delete, found))),
            };
            let Some(opened) = self.open(target, false, make).await? else { return Ok(false) };
            let if_match = self.if_match(if_match, &opened.found);
            let deleted = opened.lease.hold(None, self.store.delete(item, if_match.as_ref())).await;
            let deleted = deleted.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
            self.close(target, &opened, deleted.map(|_| Done::without_content(Change::Delete))).await?;
            Ok(true)
        };
        repeated(target, if_match.is_none(), once).await
    }

    pub(super) async fn set_properties_recorded(
        &self,
        item: &Item,
        user: &UserProperties,
        if_match: Option<&EntityTag>,
    ) -> Result<Written, Error> {
        let target = &self.target(Operation::SetProperties, &item.space, Some(&item.key));
        self.check_reserved(target)?;
        let properties = &serde_json::to_string(user).expect("text and maps of text are JSON");
        let once = || async move {
            let make = |found: &Found| {
                let content = found.content().ok_or(ErrorKind::NotFound)?;
                if if_match.is_some_and(|tag| *tag != content.etag) {
                    return Err(ErrorKind::Precondition);
                }
                Ok((content.user != *user).then(|| Intent {
                    size: Some(content.size),
                    digests: content.checksums.clone(),
                    properties: Some(properties.clone()),
                    ..self.intent(target, Change::Properties, found)
                }))
            };
            let Some(opened) = self.open(target, false, make).await? else { return Ok(None) };
            let if_match = self.if_match(if_match, &opened.found);
            let set = opened.lease.hold(None, self.store.set_properties(item, user, if_match.as_ref())).await;
            let set = set.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
            let done = set.map(|written| Done::with_content(Change::Properties, written));
            self.close(target, &opened, done).await.map(Some)
        };
        if let Some(done) = repeated(target, if_match.is_none(), once).await? {
            return Ok(done.into_written().expect("an item has a tag and a size"));
        }
        let content = self.store.head(item).await?.ok_or_else(|| target.error(ErrorKind::NotFound))?;
        Ok(Written { size: content.size, etag: content.etag, digests: content.checksums })
    }

    pub(super) async fn create_space_recorded(&self, space: &SpaceName) -> Result<bool, Error> {
        let target = &self.target(Operation::CreateSpace, space, None);
        self.check_reserved(target)?;
        let make =
            |found: &Found| Ok((*found == Found::Nothing).then(|| self.intent(target, Change::CreateSpace, found)));
        let Some(opened) = self.open(target, false, make).await? else { return Ok(false) };
        let made = opened.lease.hold(None, self.store.create_space(space)).await;
        let made = made.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
        self.close(target, &opened, made.map(|_| Done::without_content(Change::CreateSpace))).await?;
        Ok(true)
    }

    pub(super) async fn delete_space_recorded(&self, space: &SpaceName) -> Result<bool, Error> {
        let target = &self.target(Operation::DeleteSpace, space, None);
        self.check_reserved(target)?;
        let make =
            |found: &Found| Ok((*found != Found::Nothing).then(|| self.intent(target, Change::DeleteSpace, found)));
        let Some(opened) = self.open(target, false, make).await? else { return Ok(false) };
        let deleted = opened.lease.hold(None, self.store.delete_space(space)).await;
        let deleted = deleted.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
        self.close(target, &opened, deleted.map(|_| Done::without_content(Change::DeleteSpace))).await?;
        Ok(true)
    }
}
