//! Sending the content, and going on where a connection broke.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use futures::{Stream, stream};
use parking_lot::Mutex;
use reqwest::{Body, Method};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{AGAIN, RETRY_LIMIT, Server, SubmitFailure, state};
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::Transfer;
use crate::cli::submit::payload::Content;

/// How much is read and sent at once, in bytes.
pub(super) const PIECE: usize = 256 * 1024;

/// How many pieces are read ahead.
const AHEAD: usize = 4;

/// How long a server may take nothing of what is sent.
const SILENCE: Duration = Duration::from_mins(1);

/// What is known of content on its way.
#[derive(Debug, Default)]
struct Sending {
    /// How many bytes the connection has taken.
    taken: AtomicU64,
    /// Whether that is all.
    is_whole: AtomicBool,
    /// Why the content cannot be read.
    unreadable: Mutex<Option<String>>,
}

impl Server {
    /// Uploads content whose deposit has begun, until the deposit is made.
    pub(super) async fn upload(&self, begun: &Value, content: &Content) -> Result<Value, CommandError> {
        let id = begun["id"].as_str().unwrap_or_default();
        let transfer = Transfer::start("uploading", Some(content.size()));
        let (mut offset, mut since) = (come(begun, content)?, Instant::now());
        loop {
            let begin = offset;
            let problem = match self.send(id, offset, content, &transfer).await {
                Ok(view) if state(&view) != "uploading" => return Ok(view),
                Ok(view) => {
                    offset = come(&view, content)?;
                    None
                }
                Err(SubmitFailure::Final(error)) => return Err(error),
                Err(SubmitFailure::Passing(why) | SubmitFailure::Conflict(why)) => Some(why),
            };
            if let Some(why) = problem {
                if since.elapsed() > RETRY_LIMIT {
                    return Err(self.given_up(&why));
                }
                sleep(AGAIN).await;
                match self.find(id).await {
                    Ok(view) if state(&view) == "uploading" => offset = come(&view, content)?,
                    Ok(view) if state(&view) == "refused" => {
                        let why = view["outcome"].as_str().unwrap_or("refused").to_owned();
                        return Err(CommandError::new(FAILED, why));
                    }
                    // It was made, and only the answer was lost.
                    Ok(view) if view["batch"].is_string() => return Ok(view),
                    Ok(_) | Err(SubmitFailure::Passing(_) | SubmitFailure::Conflict(_)) => {}
                    Err(SubmitFailure::Final(error)) => return Err(error),
                }
            }
            if offset > begin {
                since = Instant::now();
            }
        }
    }

    /// Sends what is behind an offset.
    async fn send(
        &self,
        id: &str,
        offset: u64,
        content: &Content,
        transfer: &Transfer,
    ) -> Result<Value, SubmitFailure> {
        let sending = Arc::new(Sending::default());
        let body = Body::wrap_stream(pieces(content.read_from(offset), Arc::clone(&sending)));
        let request = self.request(Method::PATCH, &format!("/{id}")).header("upload-offset", offset);
        let request = request.header("content-type", "application/octet-stream").body(body).send();
        let answered = tokio::select! {
            answered = request => self.answer(answered).await,
            () = stalled(&sending, offset, transfer) => {
                let why = format!("{} accepted no data for {} s", self.url, SILENCE.as_secs());
                Err(SubmitFailure::Passing(why))
            }
        };
        match sending.unreadable.lock().take() {
            Some(why) => Err(SubmitFailure::Final(CommandError::new(FAILED, why))),
            None => answered,
        }
    }
}

/// How much of the content has come.
fn come(view: &Value, content: &Content) -> Result<u64, CommandError> {
    let offset = view["offset"].as_u64().unwrap_or(0);
    if offset > content.size() {
        let why = format!(
            "the server has {offset} bytes of this deposit, which has only {}; use another --key",
            content.size()
        );
        return Err(CommandError::new(FAILED, why));
    }
    Ok(offset)
}

/// Ends when nothing was taken for some time. Once all is sent, the server may need any time for its digest.
async fn stalled(sending: &Sending, offset: u64, transfer: &Transfer) {
    let (mut last, mut since) = (0, Instant::now());
    while since.elapsed() < SILENCE {
        let taken = sending.taken.load(Ordering::Relaxed);
        transfer.set(offset + taken);
        if taken != last || sending.is_whole.load(Ordering::Relaxed) {
            (last, since) = (taken, Instant::now());
        }
        sleep(AGAIN).await;
    }
}

/// Content in pieces, read in a thread that may wait for the disk.
fn pieces(content: Box<dyn Read + Send>, sending: Arc<Sending>) -> impl Stream<Item = std::io::Result<Bytes>> {
    let (send, pieces) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut content = content;
        loop {
            let mut piece = vec![0; PIECE];
            let read = match content.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) => return,
                Ok(bytes) => {
                    piece.truncate(bytes);
                    Ok(Bytes::from(piece))
                }
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            if send.blocking_send(read).is_err() || is_over {
                return;
            }
        }
    });
    stream::unfold((pieces, sending), |(mut pieces, sending)| async move {
        let piece = pieces.recv().await;
        match &piece {
            Some(Ok(bytes)) => drop(sending.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed)),
            Some(Err(error)) => *sending.unreadable.lock() = Some(error.to_string()),
            None => sending.is_whole.store(true, Ordering::Relaxed),
        }
        Some((piece?, (pieces, sending)))
    })
}
