//! Changes that were sent, and are not made yet.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::store::{Condition, EntityTag, Item, Put, UserProperties};
use queuekeeper_store::{Error, SpaceName, Store};

/// A change that was sent.
pub(super) struct Late {
    pub(super) store: Arc<dyn Store>,
    pub(super) change: Change,
}

/// What was sent.
pub(super) enum Change {
    CreateSpace(SpaceName),
    DeleteSpace(SpaceName),
    Put(Item, Vec<Bytes>, Put),
    Copy { from: Item, if_match: Option<EntityTag>, to: Item, condition: Condition },
    Delete(Item, Option<EntityTag>),
    SetProperties(Item, UserProperties, Option<EntityTag>),
}

impl Late {
    /// Makes the change.
    pub(super) async fn land(self) -> Result<(), Error> {
        let Self { store, change } = self;
        match change {
            Change::CreateSpace(space) => store.create_space(&space).await.map(drop),
            Change::DeleteSpace(space) => store.delete_space(&space).await.map(drop),
            Change::Put(item, content, put) => {
                store.put(&item, stream::iter(content.into_iter().map(Ok)).boxed(), put).await.map(drop)
            }
            Change::Copy { from, if_match, to, condition } => {
                store.copy(&from, if_match.as_ref(), &to, &condition).await.map(drop)
            }
            Change::Delete(item, if_match) => store.delete(&item, if_match.as_ref()).await.map(drop),
            Change::SetProperties(item, user, if_match) => {
                store.set_properties(&item, &user, if_match.as_ref()).await.map(drop)
            }
        }
    }
}
