//! Reading the whole tree into a new image.
//!
//! The names of the children of a job are known, so they are read together with it, without listing them first. If a
//! znode has more children than were found that way, it is listed, and unexpected children are counted.

use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;
use zookeeper_client::Client;

use super::image::Image;
use super::read::{
    Answer, Found, Query, ReadBudget, ReadError, Reader, USUAL_BATCH_NODES, USUAL_JOB_NODES, USUAL_REQUEST_NODES,
    Waiting,
};
use super::watch::Interrupted;
use queuekeeper_queue::path::{BatchNode, JobNode, Path, RequestNode};
use queuekeeper_queue::state::JobOutcome;

/// What a walk brought.
#[derive(Debug)]
pub(super) struct Walk {
    /// The image, finished.
    pub(super) image: Image,
    /// How long it took.
    pub(super) duration: Duration,
    /// How many znodes were requested.
    pub(super) reads: u64,
    /// How many znodes our credentials do not allow us to read, and the first of them.
    pub(super) denied: Option<(u64, Path)>,
}

/// Walks the whole tree.
///
/// # Errors
/// When a read fails or is not answered; what was read until then is lost.
pub(super) async fn walk(client: &Client, budget: ReadBudget) -> Result<Walk, ReadError> {
    walk_with(Reader::new(client, budget)).await
}

/// The same beside other work, for which no reader waits: it takes longer, and keeps nothing else from the server.
///
/// # Errors
/// As [`walk`].
async fn walk_beside(client: &Client, budget: ReadBudget) -> Result<Walk, ReadError> {
    walk_with(Reader::patient(client, budget)).await
}

/// Walks the tree in a task of its own: to fill and sort an image takes a core for a while, in which events are applied
/// as ever. It ends with the future.
pub(super) async fn walk_aside(client: Client, budget: ReadBudget) -> Result<Walk, Interrupted> {
    let walk = tokio::spawn(async move { walk_beside(&client, budget).await });
    match AbortOnDropHandle::new(walk).await {
        Ok(walked) => Ok(walked?),
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(ended) => Err(Interrupted::Failed(ended.to_string())),
        },
    }
}

async fn walk_with(mut reader: Reader<'_>) -> Result<Walk, ReadError> {
    let started = Instant::now();
    let mut image = Image::default();
    // The jobs come first, so that entries and references find the rows of their jobs already there.
    let mut later = vec![Query::Node(Path::Root)];
    later.extend(Path::shown_folders().map(Query::Node));
    reader.push(Query::Node(Path::Jobs));
    while let Some(answers) = reader.next().await? {
        for answer in answers {
            take(&mut image, answer, &mut reader.waiting, Some(&mut later));
        }
    }
    for query in later {
        reader.push(query);
    }
    while let Some(answers) = reader.next().await? {
        for answer in answers {
            take(&mut image, answer, &mut reader.waiting, None);
        }
    }
    image.finish();
    Ok(Walk { image, duration: started.elapsed(), reads: reader.reads, denied: reader.denied })
}

fn take(image: &mut Image, answer: Answer, waiting: &mut Waiting, mut later: Option<&mut Vec<Query>>) {
    match answer {
        Answer::Node(path, found) => {
            look_below(&path, &found, 0, waiting);
            image.apply(path, &found);
        }
        Answer::Item(path, found, children) => {
            look_below(&path, &found, children.iter().filter(|(_, found)| found.is_present()).count(), waiting);
            if matches!(found, Found::Denied) {
                ask_blindly(&path, waiting);
            }
            image.apply(path, &found);
            for (path, found) in children {
                // What has been requested along with its parent is there only as far as it was found.
                if found.is_present() {
                    look_below(&path, &found, 0, waiting);
                    if matches!(found, Found::Denied) {
                        ask_blindly(&path, waiting);
                    }
                    image.apply(path, &found);
                }
            }
        }
        Answer::Names(path, Some(names)) => {
            let is_root = path == Path::Root;
            for name in names {
                let child = path.child(&name);
                match (&child, &mut later) {
                    (Path::JobStates, Some(later)) => later.push(Query::Node(child)),
                    // The jobs have been walked by the time that the root is listed.
                    (Path::Jobs, None) if is_root => {}
                    _ => ask(child, image, waiting),
                }
            }
        }
        Answer::Names(path, None) => {
            image.apply(path, &Found::Denied);
        }
        // No walk asks for that alone.
        Answer::Permission(..) => {}
    }
}

/// Lists a znode that has more children than were found.
fn look_below(path: &Path, found: &Found, found_below: usize, waiting: &mut Waiting) {
    if found.num_children() > found_below {
        waiting.push(Query::Names(path.clone(), found.num_children()));
    }
}

/// Asks for the children that a znode may have and does not let us list. Each znode has permissions of its own, so they
/// may be readable; watch events report them in any case.
fn ask_blindly(path: &Path, waiting: &mut Waiting) {
    match *path {
        Path::Job(job) => {
            let unasked = JobNode::ALL.iter().filter(|node| !USUAL_JOB_NODES.contains(node));
            for node in unasked {
                waiting.push(Query::Node(Path::JobNode(job, *node)));
            }
        }
        Path::Batch(batch) => {
            let unasked = BatchNode::ALL.iter().filter(|node| !USUAL_BATCH_NODES.contains(node));
            for node in unasked {
                waiting.push(Query::Node(Path::BatchNode(batch, *node)));
            }
        }
        Path::BatchNode(batch, BatchNode::States) => {
            for outcome in JobOutcome::ALL {
                waiting.push(Query::Node(Path::BatchOutcome(batch, outcome)));
            }
        }
        Path::Request(queue, request) => {
            let unasked = RequestNode::ALL.iter().filter(|node| !USUAL_REQUEST_NODES.contains(node));
            for node in unasked {
                waiting.push(Query::Node(Path::RequestNode(queue, request, *node)));
            }
        }
        // Nothing else has children whose names can be known.
        _ => {}
    }
}

/// Asks for what is worth knowing of a listed znode.
fn ask(path: Path, image: &mut Image, waiting: &mut Waiting) {
    match path {
        Path::Job(_) | Path::Batch(_) | Path::Request(..) => waiting.push(Query::Item(path)),
        // What lies below one keeps the batch from being cleaned up.
        Path::Reference(batch, ..) if image.is_ended(batch) => waiting.push(Query::Node(path)),
        // That they are there is all that matters of these.
        Path::Entry(..) | Path::Reference(..) | Path::Unexpected(_) => {
            image.apply(path, &Found::Listed);
        }
        // A child that was requested along with its item is not requested again; if it was not there then, its
        // creation is an event to come.
        Path::JobNode(_, node) if USUAL_JOB_NODES.contains(&node) => {}
        Path::BatchNode(_, node) if USUAL_BATCH_NODES.contains(&node) => {}
        Path::RequestNode(_, _, node) if USUAL_REQUEST_NODES.contains(&node) => {}
        Path::BatchUuid(_)
        | Path::JobNode(..)
        | Path::BatchNode(..)
        | Path::RequestNode(..)
        | Path::QueueLock(_)
        | Path::NamedLock(..)
        | Path::PublishedLocalId(_)
        | Path::Root
        | Path::BatchUuids
        | Path::Batches
        | Path::BatchOutcome(..)
        | Path::Jobs
        | Path::JobStates
        | Path::StateFolder(_)
        | Path::Access
        | Path::AccessQueue(_)
        | Path::Locks
        | Path::QueueLocks
        | Path::LockFolder(_)
        | Path::PublishedLocalIds
        | Path::Own(_) => waiting.push(Query::Node(path)),
        Path::Foreign => {}
    }
}
