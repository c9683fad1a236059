//! What the unit tests of several modules have in common.

use zookeeper_client::Stat;

use crate::access::Request;
use crate::batch::Batch;
use crate::handle::Found;
use crate::id::{BatchId, JobId, RequestId};
use crate::job::Job;
use crate::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};
use crate::state::JobOutcome;

/// The stat of a persistent znode without children at version 3, made in transaction 10 and changed in 11, of which no
/// two times are the same.
pub(crate) fn stat() -> Stat {
    Stat {
        czxid: 10,
        mzxid: 11,
        pzxid: 10,
        ctime: 1_000,
        mtime: 2_000,
        version: 3,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 0,
        num_children: 0,
    }
}

/// What a read finds at a znode with that data and the stat of [`stat`].
pub(crate) fn found(data: impl AsRef<[u8]>) -> Found {
    Found::Data(data.as_ref().to_vec(), stat())
}

/// The job whose number is 1, with these children.
pub(crate) fn job<D: AsRef<[u8]>>(nodes: &[(JobNode, D)]) -> Job {
    let at = |node: &JobNode| nodes.iter().find(|(of, _)| of == node);
    let nodes = JobNode::ALL.iter().map(|node| at(node).map_or(Found::Nothing, |(_, data)| found(data)));
    Job::from_found(JobId::new(1), [found("")].into_iter().chain(nodes)).expect("its znode is there")
}

/// The batch whose number is 7, with these children, and folders of so many references.
pub(crate) fn batch(nodes: &[(BatchNode, &str)], folders: &[(JobOutcome, i32)]) -> Batch {
    let id = BatchId::new(7);
    let at = |read: &crate::handle::Read| match *read.path() {
        Path::BatchNode(_, node) => nodes.iter().find(|(of, _)| *of == node).map(|(_, data)| found(data)),
        Path::BatchOutcome(_, outcome) => {
            let jobs = folders.iter().find(|(of, _)| *of == outcome).map(|(_, jobs)| *jobs);
            jobs.map(|num_children| Found::Data(Vec::new(), Stat { num_children, ..stat() }))
        }
        _ => Some(found("")),
    };
    let all = Batch::reads(id).iter().map(|read| at(read).unwrap_or(Found::Nothing)).collect::<Vec<_>>();
    Batch::from_found(id, all).expect("its znode is there")
}

/// The small access request whose number is 3, with these children.
pub(crate) fn request(nodes: &[(RequestNode, &str)]) -> Request {
    let (queue, id) = (AccessQueue::Small, RequestId::new(3));
    let at = |read: &crate::handle::Read| match *read.path() {
        Path::RequestNode(_, _, node) => nodes.iter().find(|(of, _)| *of == node).map(|(_, data)| found(data)),
        _ => Some(found("")),
    };
    let all = Request::reads(queue, id).each_ref().map(|read| at(read).unwrap_or(Found::Nothing));
    Request::from_found(queue, id, all).expect("its znode is there")
}
