//! Writing content, recorded.

use std::sync::Arc;

use super::Audited;
use super::decide::Found;
use super::guard::LeaseGuard;
use super::settle::Done;
use crate::audit::{Change, Intent};
use crate::digest::{Algorithm, Digest};
use crate::error::{Error, ErrorKind, Operation};
use crate::store::{Chunks, CommitGuard, Condition, Item, Put, Store, Written};

impl<S: Store + ?Sized> Audited<S> {
    pub(super) async fn put_recorded(&self, item: &Item, content: Chunks, put: Put) -> Result<Written, Error> {
        let target = self.target(Operation::Put, &item.space, Some(&item.key));
        self.check_reserved(&target)?;
        let change_of = |found: &Found| if *found == Found::Nothing { Change::Add } else { Change::Update };
        // What will be there, where that is known before: then the intent has it from the beginning.
        let known = put.size.filter(|_| self.is_held_to(&put.condition) && put.expected.strongest().is_some());
        let make = |found: &Found| {
            if known.is_some() && !put.condition.allows(found.etag()) {
                return Err(ErrorKind::Precondition);
            }
            let digests = known.map(|_| put.expected.clone()).unwrap_or_default();
            Ok(Some(Intent { size: known, digests, ..self.intent(&target, change_of(found), found) }))
        };
        let opened = self.open(&target, known.is_none(), make).await?;
        let opened = opened.expect("content can always be written");

        let requested: Vec<Algorithm> = put.expected.iter().map(Digest::algorithm).chain(put.compute).collect();
        let mut compute = requested.clone();
        if !requested.iter().any(|algorithm| algorithm.is_strong()) {
            // By it the content is known again.
            compute.push(Algorithm::Sha256);
        }
        let is_free = put.condition == Condition::None;
        let condition = self.condition(&put.condition, &opened.found);
        let change = match &condition {
            Condition::None => change_of(&opened.found),
            Condition::IfAbsent => Change::Add,
            Condition::IfMatch(_) => Change::Update,
        };
        let guard: Arc<dyn CommitGuard> = Arc::new(LeaseGuard { lease: opened.lease.clone(), callers: put.guard });
        // A child, so that a lost lease does not abort what else the caller's own token is for.
        let abort = put.abort.child_token();
        let put_below = Put { compute, condition, abort: abort.clone(), guard: Some(guard), ..put };

        let written = opened.lease.hold(Some(&abort), self.store.put(item, content, put_below)).await;
        let written = written.unwrap_or_else(|why| Err(target.error(ErrorKind::Unknown(why))));
        let written = written.map_err(|error| target.explained(error, &abort, &put.abort));
        let done = written.map(|written| Done::with_content(change, written));
        let written = self.close(&target, &opened, done).await;
        let written = written.map_err(|error| if is_free { target.overtaken(error) } else { error })?;
        let mut written = written.into_written().expect("content that was written has a tag and a size");
        let is_requested = |digest: &&Digest| requested.contains(&digest.algorithm());
        written.digests = written.digests.iter().filter(is_requested).cloned().collect();
        Ok(written)
    }

    /// Whether a caller has a condition that the store holds to.
    fn is_held_to(&self, condition: &Condition) -> bool {
        match condition {
            Condition::None => false,
            Condition::IfAbsent => self.if_absent,
            Condition::IfMatch(_) => self.if_match,
        }
    }
}
