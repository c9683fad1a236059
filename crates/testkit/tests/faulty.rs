//! The store that fails on purpose: each fault, over a directory.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_store::directory::DirectoryStore;
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::{Chunks, Condition, Content, Item, Put, Written};
use queuekeeper_store::{Error, ErrorKind, Store};
use queuekeeper_testkit::faulty::{Fault, Faults, Faulty, PageKind, Rule, WrongPage};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const CONTENT: &[u8] = b"0123456789";

fn item(key: &str) -> Item {
    Item::new("space".parse().expect("a valid name"), key.parse().expect("a valid key"))
}

fn chunks() -> Chunks {
    stream::iter(CONTENT.chunks(4).map(|chunk| Ok(Bytes::from_static(chunk)))).boxed()
}

struct Setup {
    faulty: Faulty,
    faults: Faults,
    below: Arc<DirectoryStore>,
    _top: TempDir,
}

impl Setup {
    async fn put(&self, key: &str) -> Result<Written, Error> {
        self.faulty.put(&item(key), chunks(), Put::default()).await
    }

    async fn is_there(&self, key: &str) -> bool {
        self.below.head(&item(key)).await.expect("a look").is_some()
    }

    async fn keys(&self) -> Result<Vec<String>, Error> {
        let listing = self.faulty.list(&item("a").space, b"", None);
        listing.map_ok(|listed| listed.key.to_string()).try_collect().await
    }
}

/// A directory with the item `there`.
async fn setup() -> Setup {
    let top = tempfile::tempdir().expect("a temporary directory");
    let name = "below".parse().expect("a valid name");
    let below = Arc::new(DirectoryStore::open(name, top.path().to_owned()).await.expect("a directory"));
    below.create_space(&item("a").space).await.expect("a space");
    below.put(&item("there"), chunks(), Put::default()).await.expect("content");
    let (faulty, faults) = Faulty::new(below.clone());
    Setup { faulty, faults, below, _top: top }
}

/// What comes of content before it ends, and whether it ends with an error.
async fn read(content: Content) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut chunks = content.chunks;
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(chunk) => bytes.extend_from_slice(&chunk),
            Err(_) => return (bytes, true),
        }
    }
    (bytes, false)
}

#[tokio::test]
async fn one_call_in_so_many_fails_and_all_are_counted() {
    let setup = setup().await;
    setup.faults.add(Rule::new(Fault::Temporary).on(Operation::Head).one_in(3).times(2));
    let mut failed = Vec::new();
    for call in 1..=12 {
        if let Err(error) = setup.faulty.head(&item("there")).await {
            assert!(error.is_temporary(), "{error}");
            failed.push(call);
        }
    }
    assert_eq!(failed, [3, 6]);
    assert_eq!((setup.faults.calls(Operation::Head), setup.faults.faults(Operation::Head)), (12, 2));
    assert_eq!((setup.faults.calls(Operation::Get), setup.faults.faults(Operation::Get)), (0, 0));

    setup.faults.add(Rule::new(Fault::Permanent));
    let error = setup.put("new").await.expect_err("it is refused");
    assert!(!error.is_temporary() && !setup.is_there("new").await);
    assert!(setup.keys().await.is_err() && setup.faulty.spaces().await.is_err());
    setup.faults.clear();
    assert!(setup.put("new").await.is_ok());
}

#[tokio::test]
async fn a_read_breaks_or_ends_behind_each_byte() {
    let setup = setup().await;
    for at in 0..12 {
        for (fault, is_error) in [(Fault::BreakAt(at), true), (Fault::EndAt(at), false)] {
            setup.faults.clear();
            setup.faults.add(Rule::new(fault));
            let content = setup.faulty.get(&item("there"), None, None).await.expect("an item");
            assert_eq!(content.properties.size, 10);
            let at = usize::try_from(at).expect("a small number");
            let (expected, ends_early) = (&CONTENT[..at.min(10)], at < 10);
            assert_eq!(read(content).await, (expected.to_vec(), is_error && ends_early), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_write_that_breaks_behind_a_byte_leaves_nothing() {
    let setup = setup().await;
    for at in 0..10 {
        setup.faults.clear();
        setup.faults.add(Rule::new(Fault::BreakAt(at)));
        let error = setup.put("new").await.expect_err("it breaks");
        assert!(error.is_temporary() && !setup.is_there("new").await, "{at}: {error}");
    }
    setup.faults.clear();
    setup.faults.add(Rule::new(Fault::BreakAt(10)));
    assert!(setup.put("new").await.is_ok(), "there is no byte behind the last one");
}

#[tokio::test]
async fn sizes_are_wrong_where_they_are_reported() {
    let setup = setup().await;
    setup.faults.add(Rule::new(Fault::WrongSize(-3)));
    assert_eq!(setup.put("new").await.expect("content").size, 7);
    assert_eq!(setup.faulty.head(&item("new")).await.expect("a look").expect("an item").size, 7);
    let content = setup.faulty.get(&item("new"), None, None).await.expect("an item");
    assert_eq!(content.properties.size, 7);
    assert_eq!(read(content).await, (CONTENT.to_vec(), false));
}

#[tokio::test]
async fn what_is_stalled_goes_on_when_it_is_released() {
    let setup = setup().await;
    for fault in [Fault::Stall, Fault::StallAt(5)] {
        setup.faults.clear();
        setup.faults.add(Rule::new(fault).on(Operation::Put).on(Operation::Get));
        let key = format!("{fault:?}");
        let release = async {
            setup.faults.until_stalled(1).await;
            assert!(!setup.is_there(&key).await);
            setup.faults.release();
        };
        let (written, ()) = tokio::join!(setup.put(&key), release);
        assert!(written.is_ok_and(|written| written.size == 10));

        let get = async {
            let content = setup.faulty.get(&item("there"), None, None).await.expect("an item");
            read(content).await
        };
        let release = async {
            setup.faults.until_stalled(1).await;
            setup.faults.release();
        };
        let (content, ()) = tokio::join!(get, release);
        assert_eq!(content, (CONTENT.to_vec(), false));
    }
    // What is dropped while it is stalled is stalled no more.
    setup.faults.add(Rule::new(Fault::Stall).on(Operation::Head));
    assert!(setup.faulty.head(&item("there")).now_or_never().is_none());
    assert!(setup.faults.until_stalled(1).now_or_never().is_none());
}

#[tokio::test]
async fn a_stalled_put_can_be_aborted() {
    let setup = setup().await;
    for fault in [Fault::Stall, Fault::StallAt(5)] {
        setup.faults.clear();
        setup.faults.add(Rule::new(fault).on(Operation::Put));
        let abort = CancellationToken::new();
        let new = item("new");
        let put = setup.faulty.put(&new, chunks(), Put { abort: abort.clone(), ..Put::default() });
        let stop = async {
            setup.faults.until_stalled(1).await;
            abort.cancel();
        };
        let (written, ()) = tokio::join!(put, stop);
        assert!(matches!(written.map_err(|error| error.kind), Err(ErrorKind::Stopped(_))));
        setup.faults.release();
        assert!(!setup.is_there("new").await);
    }
}

#[tokio::test]
async fn pages_are_repeated_skipped_and_swapped() {
    let setup = setup().await;
    setup.faulty.delete(&item("there"), None).await.expect("a deletion");
    for key in ["a", "b", "c", "d", "e", "f"] {
        setup.put(key).await.expect("content");
    }
    for (kind, expected) in
        [(PageKind::Repeated, "ababcdef"), (PageKind::Skipped, "abef"), (PageKind::Swapped, "abefcd")]
    {
        setup.faults.clear();
        setup.faults.add(Rule::new(Fault::Page(WrongPage { kind, at: 2, items: 2 })));
        assert_eq!(setup.keys().await.expect("a listing").concat(), expected, "{kind:?}");
    }
    for (fault, expected) in [(Fault::EndAt(4), Some("abcd")), (Fault::BreakAt(4), None)] {
        setup.faults.clear();
        setup.faults.add(Rule::new(fault));
        assert_eq!(setup.keys().await.ok().map(|keys| keys.concat()).as_deref(), expected);
    }
    setup.faults.clear();
    setup.faults.add(Rule::new(Fault::StallAt(3)));
    let release = async {
        setup.faults.until_stalled(1).await;
        setup.faults.release();
    };
    let (keys, ()) = tokio::join!(setup.keys(), release);
    assert_eq!(keys.expect("a listing").concat(), "abcdef");
}

#[tokio::test]
async fn an_answer_is_lost_and_a_write_lands_late() {
    let setup = setup().await;
    setup.faults.add(Rule::new(Fault::LostAnswer).times(1));
    let error = setup.put("done").await.expect_err("no answer");
    assert!(matches!(error.kind, ErrorKind::Unknown(_)) && setup.is_there("done").await);

    setup.faults.add(Rule::new(Fault::Late).times(3));
    let put = Put { condition: Condition::IfAbsent, ..Put::default() };
    let error = setup.faulty.put(&item("late"), chunks(), put.clone()).await.expect_err("no answer");
    assert!(matches!(error.kind, ErrorKind::Unknown(_)) && !setup.is_there("late").await);
    assert!(setup.faulty.delete(&item("there"), None).await.is_err());
    assert!(setup.faulty.put(&item("late"), chunks(), put).await.is_err());
    assert_eq!(setup.faults.late(), 3);
    let landed = setup.faults.land().await;
    // Under the conditions with which they were sent.
    assert!(landed[0].is_ok() && landed[1].is_ok());
    assert!(landed[2].as_ref().is_err_and(Error::is_precondition));
    assert!(setup.is_there("late").await && !setup.is_there("there").await && setup.faults.late() == 0);
}

#[tokio::test]
async fn what_was_aborted_may_land_all_the_same() {
    let setup = setup().await;
    setup.faults.add(Rule::new(Fault::LateAfterAbort));
    let abort = CancellationToken::new();
    let new = item("new");
    let put = setup.faulty.put(&new, chunks(), Put { abort: abort.clone(), ..Put::default() });
    let stop = async {
        while setup.faults.late() == 0 {
            tokio::task::yield_now().await;
        }
        abort.cancel();
    };
    let (written, ()) = tokio::join!(put, stop);
    assert!(matches!(written.map_err(|error| error.kind), Err(ErrorKind::Stopped(_))));
    assert!(!setup.is_there("new").await);
    assert!(setup.faults.land().await[0].is_ok() && setup.is_there("new").await);
}
