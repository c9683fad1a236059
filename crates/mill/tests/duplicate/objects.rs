//! Objects of OCFL: a reader of the copy sees whole ones, in whatever order tasks come.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_catalogue::bit::{CheckedItem, CheckedPart, Evidence, Wrong};
use queuekeeper_catalogue::tasks::{EndedTask, NewTask, TaskKind, TaskOutcome, TaskQueue, TaskSubject, Tasks};
use queuekeeper_mill::copies::{Original, copies, standing, wrong_keys};
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Root, Start, User};
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, Store, StoreName};
use uuid::Uuid;

use super::world::{World, main, on_all, replica, space};

const ARK: &str = "ark:/99999/fk4object";

impl World {
    fn store(&self, name: &queuekeeper_store::StoreName) -> Arc<dyn Store> {
        Arc::clone(&self.stores[name])
    }

    /// Makes the next version, with one more file.
    async fn add_version(&self, name: &'static str) {
        let root = Root::open(self.store(&main()), space()).await.unwrap();
        let job = Uuid::new_v4();
        let user = User { name: "tester".to_owned(), address: None };
        let new = NewVersion {
            job,
            content: job,
            user,
            message: String::new(),
            created: Timestamp::now(),
            start: Start::Head,
        };
        let Begun::Writer(mut writer) = root.object(ARK).unwrap().begin(new).await.unwrap() else { panic!("done") };
        let open = move || stream::iter([Ok(Bytes::from_static(name.as_bytes()))]).boxed();
        // A file of that name is content as any other.
        writer.add(&format!("{name}/inventory.json"), NewFile::new(open)).await.unwrap();
        writer.commit().await.unwrap();
    }

    /// Records that a copy is damaged; the answer is the number of the bit error.
    async fn open_bit_error(&self, store: &StoreName, key: &Key) -> u64 {
        let item = Item::new(space(), key.clone());
        let subject = TaskSubject {
            kind: TaskKind::Bit,
            account: "account1".to_owned(),
            space: space(),
            key: Some(key.clone()),
            destination: Some(store.clone()),
        };
        let task = NewTask { queue: TaskQueue::BitIntegrity, subject, source: None };
        self.catalogue.put_tasks(&[task]).await.unwrap();
        let kinds = [TaskKind::Bit];
        let tasks = Tasks { queue: TaskQueue::BitIntegrity, account: "account1", kinds: &kinds, limit: 1 };
        let task = self.catalogue.take_tasks(&tasks, "worker-1", Duration::from_mins(5)).await.unwrap().remove(0);
        let wrong = Wrong { findings: vec!["content_damaged"], detail: "content damaged".to_owned(), observed: None };
        let checked = CheckedItem {
            item: item.clone(),
            id: None,
            bytes: 7,
            result: "failure",
            proof: None,
            seq: None,
            evidence: Evidence::default(),
            wrong: Some(wrong),
            is_missing: false,
            unread: None,
        };
        let checked = Some(CheckedPart::of("account1".to_owned(), store.clone(), vec![checked]));
        let ended = EndedTask { task, outcome: TaskOutcome::Done, follow_ups: Vec::new(), checked };
        assert_eq!(self.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
        self.catalogue.bit_error(store, &item).await.unwrap().unwrap().id
    }

    async fn keys(&self, name: &queuekeeper_store::StoreName) -> Vec<String> {
        let listing = self.bare[name].list(&space(), b"", None);
        listing.map_ok(|listed| listed.key.to_string()).try_collect().await.unwrap()
    }

    /// The version that a reader of the copy sees, all its content read and compared.
    async fn seen(&self) -> Option<u32> {
        let root = Root::open_existing(Arc::clone(&self.bare[&replica()]), space()).await.unwrap()?;
        let snapshot = root.object(ARK).unwrap().read().await.unwrap()?;
        let head = snapshot.inventory().head();
        for file in snapshot.inventory().files(head) {
            let path = file.unwrap().path;
            snapshot.open(head, &path).await.unwrap().chunks.try_collect::<Vec<_>>().await.unwrap();
        }
        Some(head)
    }

    /// Copies what the source has, what comes last first, until all is there; each time a reader looks.
    async fn copy_backwards(&self, before: Option<u32>, after: u32) -> usize {
        let (mut left, mut put_off) = (self.keys(&main()).await, 0);
        left.retain(|key| !key.starts_with("0=") && !key.contains("ocfl_layout") && !key.starts_with("extensions"));
        let rank = |key: &String| (key.contains("/content/"), !key.ends_with("sha512"), key.matches("/v").count());
        left.sort_by_key(rank);
        while !left.is_empty() {
            let mut again = Vec::new();
            for key in left {
                let processed = self.duplicate(Some(&key)).await;
                match processed.outcome {
                    TaskOutcome::Done => {}
                    TaskOutcome::PutOff(_) => {
                        put_off += 1;
                        again.push(key);
                    }
                    outcome => panic!("{key}: {outcome:?}"),
                }
                let seen = self.seen().await;
                assert!(seen == before || seen == Some(after), "{seen:?}");
            }
            left = again;
        }
        assert_eq!(self.seen().await, Some(after));
        put_off
    }
}

on_all! {
    async fn a_reader_of_the_copy_sees_whole_objects_in_whatever_order_tasks_come(world: World) {
        world.add_version("one").await;
        // Which of the objects have their copies is known only where a policy wants any.
        let folders = [ARK, "ark:/99999/fk4none"].map(|ark| Root::folder_of(ark).unwrap());
        let standing = async |folders: &[String]| {
            let of = (&main(), &space());
            standing(&world.catalogue, &world.duplicator.accounts, of, folders).await.unwrap()
        };
        assert_eq!(standing(&folders).await, None);
        let policy = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;
        assert!(world.catalogue.record_policy("account1", None, "ada", "copies", policy).await.unwrap());
        assert_eq!(standing(&folders).await, Some((0, 2)));
        for key in ["0=ocfl_1.1", "ocfl_layout.json", "extensions/0003-hash-and-id-n-tuple-storage-layout/config.json"] {
            assert_eq!(world.duplicate(Some(key)).await.outcome, TaskOutcome::Done);
        }
        let put_off = world.copy_backwards(None, 1).await;
        assert!(put_off >= 4, "{put_off}");
        assert_eq!(standing(&folders).await, Some((1, 1)));
        // A copy with an open bit error is not whole, whatever is recorded of it.
        let keys = world.keys(&replica()).await;
        let key = keys.iter().find(|key| key.ends_with("v1/inventory.json")).unwrap();
        let (key, original) = (key.parse().unwrap(), Original { store: &main(), space: &space(), folder: &folders[0] });
        let of_replica = async || {
            let found = copies(&world.catalogue, &world.duplicator.accounts, &original).await.unwrap();
            found.into_iter().find(|of| of.store == replica()).unwrap()
        };
        let whole = of_replica().await;
        assert_eq!((whole.wrong, whole.there, whole.complete_since.is_some()), (0, whole.of, true));
        let wrong = world.open_bit_error(&replica(), &key).await;
        assert_eq!(standing(&folders).await, Some((0, 2)));
        let damaged = of_replica().await;
        assert_eq!((damaged.wrong, damaged.there, damaged.complete_since), (1, damaged.of, None));
        assert_eq!(wrong_keys(&world.catalogue, &replica(), &space(), &folders[0]).await.unwrap(), [key]);
        assert_eq!(wrong_keys(&world.catalogue, &replica(), &space(), &folders[1]).await.unwrap(), []);
        world.tamper(format!("UPDATE bit_errors SET ended = 1 WHERE id = {wrong}")).await;
        assert_eq!(standing(&folders).await, Some((1, 1)));
        world.add_version("two").await;
        assert_eq!(standing(&folders[..1]).await, Some((0, 1)));
        world.copy_backwards(Some(1), 2).await;
        let root = Root::open(Arc::clone(&world.bare[&replica()]), space()).await.unwrap();
        let verified = root.object(ARK).unwrap().verify().await.unwrap();
        assert!(verified.is_valid(), "{verified:?}");
        assert_eq!(world.keys(&replica()).await, world.keys(&main()).await);
    }
}
