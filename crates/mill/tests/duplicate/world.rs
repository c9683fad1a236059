//! Two stores, a catalogue, and one who makes copies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, Outcome, Queue, TaskKind, TaskSubject, Tasks};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::duplicate::Duplicator;
use queuekeeper_mill::policy::StoreId;
use queuekeeper_mill::worker::{Lease, Processed, Processor as _};
use queuekeeper_store::store::{Item, Put, UserProperties};
use queuekeeper_store::{Audited, DirectoryStore, Key, SpaceName, Store, StoreName};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_mins(5);

pub(super) struct World {
    pub(super) catalogue: Catalogue,
    /// The stores themselves: what is changed here is not recorded.
    pub(super) bare: BTreeMap<StoreName, Arc<dyn Store>>,
    pub(super) duplicator: Duplicator,
    _directory: TempDir,
}

pub(super) fn main() -> StoreName {
    "main".parse().unwrap()
}

pub(super) fn replica() -> StoreName {
    "replica".parse().unwrap()
}

pub(super) fn item(key: &str) -> Item {
    Item::new(space(), Key::new(key.as_bytes()).unwrap())
}

/// As the stores name it.
pub(super) fn space() -> SpaceName {
    "account1.theses".parse().unwrap()
}

impl World {
    /// Two directories; the copies are made by one who may destroy two items a day, and deletes at once.
    pub(super) async fn directories() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut bare = BTreeMap::<_, Arc<dyn Store>>::new();
        for name in [main(), replica()] {
            let top = directory.path().join(name.as_str());
            std::fs::create_dir(&top).unwrap();
            let store = DirectoryStore::open(name.clone(), top).await.unwrap();
            bare.insert(name, Arc::new(store));
        }
        let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        Self::new(Catalogue::open(&url).await.unwrap(), bare, directory).await
    }

    async fn new(catalogue: Catalogue, bare: BTreeMap<StoreName, Arc<dyn Store>>, directory: TempDir) -> Self {
        let mut stores = BTreeMap::<_, Arc<dyn Store>>::new();
        for (name, store) in &bare {
            let capabilities = store.probe().await.unwrap();
            let audited = Audited::new(Arc::clone(store), &capabilities, Arc::new(catalogue.clone()), "mill");
            let audited = audited.with_owned(["x-queuekeeper-aside".parse().unwrap()]);
            stores.insert(name.clone(), Arc::new(audited));
        }
        let ids = [("1", main()), ("2", replica())].map(|(id, store)| (StoreId(id.to_owned()), store));
        let account = Account { name: "account1".to_owned(), stores: ids.into(), prefix: Some("account1".to_owned()) };
        let duplicator = Duplicator {
            catalogue: catalogue.clone(),
            accounts: BTreeMap::from([("account1".to_owned(), account)]),
            stores,
            limit: BrakeLimit { items: 2, percent: 0 },
            delete_after: Duration::ZERO,
        };
        duplicator.stores[&main()].create_space(&space()).await.unwrap();
        Self { catalogue, bare, duplicator, _directory: directory }
    }

    /// Writes an item through the program, or past it.
    pub(super) async fn put(&self, store: &StoreName, is_recorded: bool, item: &Item, text: &str, content_type: &str) {
        let chunks = stream::iter([Ok(Bytes::from(text.to_owned()))]).boxed();
        let user = UserProperties { content_type: Some(content_type.to_owned()), ..UserProperties::default() };
        let compute = vec![queuekeeper_store::Algorithm::Md5];
        let put = Put { user, compute, ..Put::default() };
        let stores = if is_recorded { &self.duplicator.stores } else { &self.bare };
        stores[store].put(item, chunks, put).await.unwrap();
    }

    pub(super) async fn text(&self, store: &StoreName, item: &Item) -> Option<(String, String)> {
        let store = &self.bare[store];
        let properties = store.head(item).await.ok().flatten()?;
        let chunks: Vec<_> = store.get(item, None, None).await.unwrap().chunks.try_collect().await.unwrap();
        Some((String::from_utf8(chunks.concat()).unwrap(), properties.user.content_type.unwrap_or_default()))
    }

    /// Requests the copy of an item, or of the space, and has it processed.
    pub(super) async fn duplicate(&self, key: Option<&str>) -> Processed {
        let subject = TaskSubject {
            kind: TaskKind::Duplicate,
            account: "account1".to_owned(),
            space: "theses".parse().unwrap(),
            key: key.map(|key| key.parse().unwrap()),
            destination: Some(replica()),
        };
        let task = NewTask { queue: Queue::DuplicationHigh, subject, source: Some(main()) };
        self.catalogue.put_tasks(&[task]).await.unwrap();
        self.process().await
    }

    /// Processes the task that is visible.
    pub(super) async fn process(&self) -> Processed {
        let kinds = [TaskKind::Duplicate];
        let tasks = Tasks { queue: Queue::DuplicationHigh, account: "account1", kinds: &kinds, limit: 10 };
        let taken = self.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0);
        let processed = self.duplicator.process(&taken, &Lease::unlimited()).await;
        // A failure would wait for a minute, and what is put off for days.
        let outcome = match &processed.outcome {
            Outcome::Failed(_) | Outcome::PutOff(_) => Outcome::Done,
            outcome => outcome.clone(),
        };
        let ended = EndedTask { task: taken, outcome, follow_ups: Vec::new() };
        assert_eq!(self.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        processed
    }
}
