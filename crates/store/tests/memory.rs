//! The memory store itself: what other tests rely on.

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::store::{Condition, Item, Put};
use queuekeeper_store::{ErrorKind, Store as _};

mod support {
    pub(crate) mod memory;
    pub(crate) mod steps;
}

use support::memory::{MemoryStore, StoreKind};
use support::steps::Steps;

fn item(key: &str) -> Item {
    Item::new("space".parse().expect("a name"), key.parse().expect("a key"))
}

#[tokio::test]
async fn content_appears_between_two_steps_and_under_its_condition() {
    for (stop, appears) in [(0, false), (1, true), (2, true)] {
        let steps = Steps::default();
        let store = MemoryStore::new("memory", StoreKind::default(), steps.clone());
        store.create_space(&item("a").space).await.unwrap();
        steps.stop_after(stop);
        let content = stream::iter([Ok(Bytes::from_static(b"one")), Ok(Bytes::from_static(b"two"))]).boxed();
        let put = Put { condition: Condition::IfAbsent, ..Put::default() };
        let answer = steps.run(store.put(&item("a"), content, put.clone())).await;
        assert_eq!(answer.is_some(), stop == 2);
        assert_eq!(store.contents().get(&item("a")).is_some_and(|bytes| &bytes[..] == b"onetwo"), appears);

        steps.go_on();
        let again = store.put(&item("a"), stream::empty().boxed(), put).await;
        assert_eq!(matches!(again.map_err(|error| error.kind), Err(ErrorKind::Precondition)), appears);
    }
}
