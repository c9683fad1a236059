//! What reports say of the copies of objects, which others make.

use std::sync::Arc;

use futures::future::BoxFuture;
use queuekeeper_store::{SpaceName, StoreName};

/// Where objects lie: all of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObjects {
    /// The store to which they were written.
    pub store: StoreName,
    /// The space.
    pub space: SpaceName,
    /// The folder of each, without a slash at its end.
    pub folders: Vec<String>,
}

/// How many objects have their copies, as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStanding {
    /// Those of which all copies are there that the policy wants.
    pub complete: u64,
    /// Those of which some are to come.
    pub incomplete: u64,
}

/// Counts how many of these objects have their copies; `None` where no policy wants any. An error is one sentence.
pub type CountCopies =
    Arc<dyn Fn(StoredObjects) -> BoxFuture<'static, Result<Option<CopyStanding>, String>> + Send + Sync>;
