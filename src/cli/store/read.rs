//! Content read to its end, for its digests.

use futures::TryStreamExt as _;
use queuekeeper_store::store::Chunks;
use queuekeeper_store::{Algorithm, Digests, Hashers};

use super::path::ItemPath;
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::Transfer;

/// The digests of an item's content, by reading it.
pub(super) async fn digests(
    path: &ItemPath,
    size: u64,
    algorithms: impl IntoIterator<Item = Algorithm>,
    content: Chunks,
) -> Result<Digests, CommandError> {
    let mut hashers = Hashers::new(algorithms);
    let transfer = Transfer::start(&format!("reading {path}"), Some(size));
    let mut chunks = transfer.watch(content);
    while let Some(chunk) = chunks.try_next().await.map_err(|error| broken(path, &error))? {
        hashers.update(&chunk);
    }
    Ok(hashers.finish())
}

/// That an item cannot be read to its end.
pub(super) fn broken(path: &ItemPath, error: &std::io::Error) -> CommandError {
    CommandError::new(FAILED, format!("{}: cannot be read completely: {error}", path.short()))
}
