//! Two stores, a catalogue, and one who makes copies.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::brake::BrakeLimit;
use queuekeeper_catalogue::tasks::{
    EndedTask, NewTask, OpenTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks,
};
use queuekeeper_mill::account::Account;
use queuekeeper_mill::duplicate::Duplicator;
use queuekeeper_mill::limits::StoreLimits;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::policy::StoreId;
use queuekeeper_mill::stores::AccountStores;
use queuekeeper_mill::worker::{Lease, Processed, Processor as _};
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config};
use queuekeeper_store::store::{Item, Put, UserProperties};
use queuekeeper_store::{Audited, DirectoryStore, Key, S3Store, SpaceName, Store, StoreFamilies, StoreName};
use queuekeeper_testkit::postgres::Postgres;
use queuekeeper_testkit::s3::{Effect, Fault, Privileges, S3Server, Settings};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_mins(5);

/// The bucket of the store that is no directory.
pub(super) const BUCKET: &str = "preservation";

pub(super) struct World {
    pub(super) catalogue: Catalogue,
    /// The stores themselves: what is changed here is not recorded.
    pub(super) bare: BTreeMap<StoreName, Arc<dyn Store>>,
    /// The same, so that changes are recorded.
    pub(super) stores: BTreeMap<StoreName, Arc<dyn Store>>,
    pub(super) duplicator: Duplicator,
    directory: Arc<TempDir>,
    server: Option<Arc<S3Server>>,
    /// The catalogue's database.
    url: String,
}

/// One server of databases for all tests; it ends with the process.
static DATABASES: LazyLock<Postgres> = LazyLock::new(Postgres::start);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs each test with two directories and SQLite, and twice with a bucket and PostgreSQL: as what is copied to, and
/// from.
macro_rules! on_all {
    ($(async fn $name:ident($world:ident: World) $body:block)*) => {
        $(
            async fn $name($world: $crate::duplicate::world::World) $body

            mod $name {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn in_directories() {
                    Box::pin(super::$name($crate::duplicate::world::World::directories().await)).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn in_a_bucket() {
                    Box::pin(super::$name($crate::duplicate::world::World::to_bucket().await)).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn from_a_bucket() {
                    Box::pin(super::$name($crate::duplicate::world::World::from_bucket().await)).await;
                }
            }
        )*
    };
}
pub(super) use on_all;

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
    /// Two directories and SQLite; the copies are made by one who may destroy two items a day, and deletes at once.
    pub(super) async fn directories() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let stores = [Self::directory(&directory, main()).await, Self::directory(&directory, replica()).await];
        let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        Self::new(&url, stores, directory, None).await
    }

    /// The same with a directory that is copied to a bucket, and PostgreSQL.
    pub(super) async fn to_bucket() -> Self {
        let (directory, (server, store)) = (tempfile::tempdir().unwrap(), Self::bucket(replica(), None).await);
        let stores = [Self::directory(&directory, main()).await, store];
        Self::new(&Self::postgres(), stores, directory, Some(server)).await
    }

    /// The same with a bucket that is copied to a directory.
    pub(super) async fn from_bucket() -> Self {
        Self::from_bucket_in(&Self::postgres()).await
    }

    /// The same in an empty database.
    pub(super) async fn from_bucket_in(url: &str) -> Self {
        let (directory, (server, store)) = (tempfile::tempdir().unwrap(), Self::bucket(main(), None).await);
        let stores = [store, Self::directory(&directory, replica()).await];
        Self::new(url, stores, directory, Some(server)).await
    }

    /// The same with a bucket whose content is archived, and either database; reports are in the directory.
    pub(super) async fn archive(has_postgres: bool) -> Self {
        let (directory, (server, store)) = (tempfile::tempdir().unwrap(), Self::bucket(main(), Some("GLACIER")).await);
        let file = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        let url = if has_postgres { Self::postgres() } else { file };
        let stores = [store, Self::directory(&directory, replica()).await];
        Self::new(&url, stores, directory, Some(server)).await
    }

    /// The same with a directory that is copied to the archive.
    pub(super) async fn to_archive() -> Self {
        let (directory, (server, store)) =
            (tempfile::tempdir().unwrap(), Self::bucket(replica(), Some("DEEP_ARCHIVE")).await);
        let stores = [Self::directory(&directory, main()).await, store];
        Self::new(&Self::postgres(), stores, directory, Some(server)).await
    }

    /// The URL of an empty database.
    pub(super) fn postgres() -> String {
        DATABASES.create(&format!("mill_{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
    }

    async fn bucket(name: StoreName, class: Option<&str>) -> (S3Server, Arc<dyn Store>) {
        let server = S3Server::start(Settings::default()).await.unwrap();
        server.create_bucket(BUCKET);
        let privileges = if class.is_some() { Privileges::Restore } else { Privileges::Write };
        server.restrict(&privileges.document(BUCKET, "content"));
        let mut config = S3Config::new(name, format!("s3://{BUCKET}/content").parse().unwrap());
        config.endpoint = Some(server.endpoint());
        config.storage_class = class.map(str::to_owned);
        config.credentials = Credentials::Key(AccessKey::new(server.access_key(), server.secret_key()));
        let metrics = StoreFamilies::default().store(&config.name);
        let store = Arc::new(S3Store::new(config, metrics).await.unwrap());
        (server, store)
    }

    async fn directory(within: &TempDir, name: StoreName) -> Arc<dyn Store> {
        let top = within.path().join(name.as_str());
        std::fs::create_dir(&top).unwrap();
        Arc::new(DirectoryStore::open(name, top).await.unwrap())
    }

    async fn new(url: &str, bare: [Arc<dyn Store>; 2], directory: TempDir, server: Option<S3Server>) -> Self {
        let catalogue = Catalogue::open(url).await.unwrap();
        let bare: BTreeMap<_, _> = bare.into_iter().map(|store| (store.name().clone(), store)).collect();
        let mut stores = BTreeMap::<_, Arc<dyn Store>>::new();
        for (name, store) in &bare {
            stores.insert(name.clone(), audited(&catalogue, store).await);
        }
        let ids = [("1", main()), ("2", replica())].map(|(id, store)| (StoreId(id.to_owned()), store));
        let account = Account {
            name: "account1".to_owned(),
            stores: ids.into(),
            prefix: Some("account1".to_owned()),
            ..Account::default()
        };
        let accounts = BTreeMap::from([("account1".to_owned(), account)]);
        stores[&main()].create_space(&space()).await.unwrap();
        let duplicator = Duplicator {
            catalogue: catalogue.clone(),
            stores: AccountStores::new(catalogue.clone(), &accounts, stores.clone(), MillMetrics::default()),
            accounts,
            limit: BrakeLimit { items: 2, percent: 0 },
            delete_after: Duration::ZERO,
            clock: Timestamp::now,
        };
        let (directory, server) = (Arc::new(directory), server.map(Arc::new));
        Self { catalogue, bare, stores, duplicator, directory, server, url: url.to_owned() }
    }

    /// The same with a catalogue that has connections of its own, as another process has it.
    pub(super) async fn reopened(&self) -> Self {
        Self {
            catalogue: Catalogue::open(&self.url).await.unwrap(),
            bare: self.bare.clone(),
            stores: self.stores.clone(),
            duplicator: self.duplicator.clone(),
            directory: Arc::clone(&self.directory),
            server: self.server.clone(),
            url: self.url.clone(),
        }
    }

    /// One more directory, as the store "3" of the account.
    pub(super) async fn add_directory(&mut self, name: &StoreName) {
        let store = Self::directory(&self.directory, name.clone()).await;
        self.stores.insert(name.clone(), audited(&self.catalogue, &store).await);
        self.bare.insert(name.clone(), store);
        for account in self.duplicator.accounts.values_mut() {
            account.stores.insert(StoreId("3".to_owned()), name.clone());
        }
    }

    /// Sets what the account is allowed in a store, and what the time is.
    pub(super) fn limit(&mut self, store: &StoreName, limits: &StoreLimits, clock: fn() -> Timestamp) -> MillMetrics {
        let metrics = MillMetrics::default();
        for account in self.duplicator.accounts.values_mut() {
            account.limits.insert(store.clone(), limits.clone());
        }
        let (catalogue, stores) = (self.catalogue.clone(), self.stores.clone());
        self.duplicator.stores = AccountStores::new(catalogue, &self.duplicator.accounts, stores, metrics.clone());
        self.duplicator.clock = clock;
        metrics
    }

    /// Writes an item through the program, or past it.
    pub(super) async fn put(&self, store: &StoreName, is_recorded: bool, item: &Item, text: &str, content_type: &str) {
        let chunks = stream::iter([Ok(Bytes::from(text.to_owned()))]).boxed();
        let user = UserProperties { content_type: Some(content_type.to_owned()), ..UserProperties::default() };
        let compute = vec![queuekeeper_store::Algorithm::Md5];
        let put = Put { user, compute, ..Put::default() };
        let stores = if is_recorded { &self.stores } else { &self.bare };
        stores[store].put(item, chunks, put).await.unwrap();
    }

    /// Where the source is a directory; of a bucket there is none.
    fn source(&self) -> Option<&Path> {
        self.bare[&main()].directory()
    }

    pub(super) fn server(&self) -> &S3Server {
        self.server.as_ref().expect("a store that is no directory is a bucket")
    }

    /// Lets the content of an item rot in place at the source: its size, its time and what is kept of it stay.
    pub(super) fn rot(&self, key: &str) {
        self.rot_in(&main(), key);
    }

    /// The same in a store.
    pub(super) fn rot_in(&self, store: &StoreName, key: &str) {
        let Some(top) = self.bare[store].directory() else {
            return self.server().rot(BUCKET, &format!("content/{}/{key}", space()));
        };
        let file = top.join(space().as_str()).join(key);
        let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
        let mut content = std::fs::read(&file).unwrap();
        content[0] ^= 1;
        std::fs::write(&file, content).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    }

    /// Lets the checksum that the source keeps of an item be that of other content.
    pub(super) fn misstate(&self, key: &str) {
        let Some(top) = self.source() else {
            return self.server().misstate(BUCKET, &format!("content/{}/{key}", space()));
        };
        let is_its = |text: &str| text.contains(&format!("\"{key}\""));
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if let Some(text) = std::fs::read_to_string(entry.path()).ok().filter(|text| is_its(text)) {
                    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
                    for digest in record["digests"].as_object_mut().unwrap().values_mut() {
                        *digest = digest.as_str().unwrap().chars().rev().collect::<String>().into();
                    }
                    return std::fs::write(entry.path(), record.to_string()).unwrap();
                }
            }
        }
        panic!("nothing is kept of {key}");
    }

    /// Changes the digests that a table has of an item at the source, or deletes its row.
    pub(super) async fn change_record(&self, table: &str, key: &str, digests: Option<&str>) {
        let id = self.catalogue.records_of_item(&main(), &item(key)).await.unwrap().unwrap().id;
        let change = match digests {
            Some(digests) => format!("UPDATE {table} SET digests = '{digests}'"),
            None => format!("DELETE FROM {table}"),
        };
        self.tamper(format!("{change} WHERE item = {id} AND store = 'main'")).await;
    }

    /// Changes the database behind the catalogue's back.
    pub(super) async fn tamper(&self, sql: String) {
        if self.url.starts_with("sqlite:") {
            let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
            sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        } else {
            let mut connection = PgConnection::connect(&self.url).await.unwrap();
            sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }

    /// Takes the source away until [`Self::bring_back`].
    pub(super) fn take_away(&self) {
        match self.source() {
            Some(top) => std::fs::rename(top, top.with_extension("away")).unwrap(),
            None => drop(self.server().inject(Fault::new(Effect::Refuse(403, "AccessDenied")))),
        }
    }

    pub(super) fn bring_back(&self) {
        match self.source() {
            Some(top) => std::fs::rename(top.with_extension("away"), top).unwrap(),
            None => self.server().clear_faults(),
        }
    }

    /// What is still to be done to items.
    pub(super) async fn open_tasks(&self, keys: &[&str]) -> Vec<OpenTask> {
        let (mut open, space) = (Vec::new(), "theses".parse().unwrap());
        for key in keys {
            open.extend(self.catalogue.tasks_of_item("account1", &space, &item(key).key).await.unwrap());
        }
        open
    }

    pub(super) async fn text(&self, store: &StoreName, item: &Item) -> Option<(String, String)> {
        let store = &self.bare[store];
        let properties = store.head(item).await.ok().flatten()?;
        let chunks: Vec<_> = store.get(item, None, None).await.unwrap().chunks.try_collect().await.unwrap();
        Some((String::from_utf8(chunks.concat()).unwrap(), properties.user.content_type.unwrap_or_default()))
    }

    /// Requests the copy of an item, or of the space, and has it processed.
    pub(super) async fn duplicate(&self, key: Option<&str>) -> Processed {
        self.request(key, replica()).await;
        self.process().await
    }

    pub(super) async fn request(&self, key: Option<&str>, destination: StoreName) {
        let subject = TaskSubject {
            kind: TaskKind::Duplicate,
            account: "account1".to_owned(),
            space: "theses".parse().unwrap(),
            key: key.map(|key| key.parse().unwrap()),
            destination: Some(destination),
        };
        let task = NewTask { queue: TaskQueue::DuplicationHigh, subject, source: Some(main()) };
        self.catalogue.put_tasks(&[task]).await.unwrap();
    }

    /// Takes the task that is visible.
    pub(super) async fn take(&self) -> TakenTask {
        let kinds = [TaskKind::Duplicate];
        let tasks = Tasks { queue: TaskQueue::DuplicationHigh, account: "account1", kinds: &kinds, limit: 10 };
        self.catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0)
    }

    /// Processes the task that is visible.
    pub(super) async fn process(&self) -> Processed {
        let taken = self.take().await;
        let processed = self.duplicator.process(&taken, &Lease::unlimited()).await;
        // A failure would wait for a minute, and what is put off for days.
        let outcome = match &processed.outcome {
            TaskOutcome::Failed(_) | TaskOutcome::PutOff(_) => TaskOutcome::Done,
            outcome => outcome.clone(),
        };
        let ended = EndedTask { task: taken, outcome, follow_ups: Vec::new(), checked: None };
        assert_eq!(self.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        processed
    }
}

/// The store, so that its changes are recorded.
async fn audited(catalogue: &Catalogue, store: &Arc<dyn Store>) -> Arc<dyn Store> {
    let capabilities = store.probe().await.unwrap();
    let sink = Arc::new(catalogue.clone());
    let audited = Audited::new(Arc::clone(store), &capabilities, sink, queuekeeper_mill::users::MILL);
    Arc::new(audited.with_owned(["x-queuekeeper-aside".parse().unwrap()]))
}
