//! Whether a space is gone, or only cannot be seen.

use std::pin::Pin;
use std::sync::Arc;

use futures::StreamExt as _;
use queuekeeper_store::store::Listing;
use queuekeeper_store::{Error, ErrorKind, Key, SpaceName, Store};

/// What a store answers about a space; `None` where it does not have the space.
///
/// A store that calls a space missing is to list its spaces, too, and without that one: where a volume is not mounted,
/// each space of it is missing. A space that it lists may have been made meanwhile by another worker, so that it is
/// asked once more.
///
/// # Errors
/// When it fails otherwise, or lists the space and calls it missing again.
pub(crate) async fn unless_missing<T, F>(
    store: &Arc<dyn Store>,
    space: &SpaceName,
    ask: impl Fn() -> F,
) -> Result<Option<T>, String>
where
    F: Future<Output = Result<T, Error>>,
{
    for _ in 0..2 {
        match ask().await {
            Err(Error { kind: ErrorKind::NoSpace, .. }) => {}
            answer => return answer.map(Some).map_err(|error| error.to_string()),
        }
        if !store.spaces().await.map_err(|error| error.to_string())?.contains(space) {
            return Ok(None);
        }
    }
    Err(format!("the store {} has a space {space}, but reports that there is none", store.name()))
}

/// The items of a space whose keys begin so, above a key; none where the store does not have the space.
///
/// # Errors
/// When the space cannot be listed.
pub(crate) async fn listing(
    store: &Arc<dyn Store>,
    space: &SpaceName,
    prefix: &[u8],
    after: Option<&Key>,
) -> Result<Listing, String> {
    let begin = || async {
        let mut listing = store.list(space, prefix, after).peekable();
        match Pin::new(&mut listing).next_if(Result::is_err).await {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Ok(listing.boxed()),
        }
    };
    Ok(unless_missing(store, space, begin).await?.unwrap_or_else(|| futures::stream::empty().boxed()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use queuekeeper_store::DirectoryStore;

    use super::*;

    #[tokio::test]
    async fn a_space_that_is_made_meanwhile_is_asked_again_and_one_that_is_denied_twice_is_not_missing() {
        let directory = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open("replica".parse().unwrap(), directory.path().to_path_buf()).await.unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let space = "theses".parse::<SpaceName>().unwrap();
        let first = || async { store.list(&space, b"", None).next().await.transpose() };
        assert_eq!(unless_missing(&store, &space, first).await, Ok(None));

        let asked = Cell::new(0);
        let made_meanwhile = || async {
            asked.set(asked.get() + 1);
            let found = first().await;
            store.create_space(&space).await?;
            found
        };
        assert_eq!(unless_missing(&store, &space, made_meanwhile).await, Ok(Some(None)));
        assert_eq!(asked.get(), 2);

        let away = "away".parse::<SpaceName>().unwrap();
        let denied = || async { store.list(&away, b"", None).next().await.transpose() };
        let why = unless_missing(&store, &space, denied).await.unwrap_err();
        assert!(why.contains("has a space theses, but reports that there is none"), "{why}");
    }
}
