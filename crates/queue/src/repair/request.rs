//! The fault of an access request that the daemons cannot load.

use jiff::Timestamp;

use super::facts::request_facts;
use super::status::{StatusWrite, loadable_status};
use super::{Repair, RepairOptions, gone, underivable};
use crate::access::Request;
use crate::error::Error;
use crate::fault::{Fault, detect_request};
use crate::handle::Queue;
use crate::id::RequestId;
use crate::path::{AccessQueue, Path, RequestNode};
use crate::state::AccessState;
use crate::transaction::Transaction;

impl Queue {
    pub(super) async fn repair_request(
        &self,
        fault: Fault,
        queue: AccessQueue,
        id: RequestId,
        options: RepairOptions<'_>,
    ) -> Result<Repair, Error> {
        let item = Path::Request(queue, id);
        let (request, created_ms) = self.inspect_request(queue, id).await?;
        let facts = request_facts(&request, created_ms);
        options.confirm(fault, &item, |limits, sink| detect_request(&facts, limits, sink))?;
        let write = loadable(&request, options.now)?.ok_or_else(|| gone(fault, &item))?;
        let (mut changes, mut loses, mut words) = (Transaction::new(), Vec::new(), Vec::new());
        write.add(&mut changes, &mut loses, &mut words);
        let summary = format!("Makes access request {id} loadable. It writes {}.", words.join("; "));
        let lock = Path::RequestNode(queue, id, RequestNode::Lock);
        let transaction = options.under_lock(lock, request.lock(), changes)?;
        Ok(Repair::new(fault, item, summary, transaction).losing(loses))
    }
}

/// Whether a repair makes the request loadable.
pub(crate) fn is_repairable(request: &Request, now: Timestamp) -> bool {
    loadable(request, now).is_ok()
}

/// The status that makes the request loadable; `None` where it is as it should be.
fn loadable(request: &Request, now: Timestamp) -> Result<Option<StatusWrite>, Error> {
    let mut missing = Vec::new();
    missing.extend(request.check_token().err().map(|malformed| format!("token {malformed}")));
    let status = Path::RequestNode(request.queue, request.id, RequestNode::Status);
    match loadable_status::<AccessState>(&status, request.status_found(), None, now) {
        Ok((_, write)) if missing.is_empty() => return Ok(write),
        Ok(_) => {}
        Err(why) => missing.push(why),
    }
    Err(underivable(Path::Request(request.queue, request.id), &missing))
}
