//! Leases: of long uploads, of rivals, of callers who go away.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream};
use queuekeeper_store::audited::Resolved;
use queuekeeper_store::store::{Chunks, Put};
use queuekeeper_store::{ErrorKind, Store as _};
use tokio::time::{Instant, advance, sleep};
use tokio_util::sync::CancellationToken;

use super::setup::{Setup, TIMING, another, chunks, item, setup};
use crate::support::memory::StoreKind;

/// Content that takes its time: one byte each ten seconds.
fn slow(bytes: usize) -> Chunks {
    let byte = |_| async {
        sleep(Duration::from_secs(10)).await;
        Ok(Bytes::from_static(b"x"))
    };
    stream::iter(0..bytes).then(byte).boxed()
}

fn setup_with_space() -> Setup {
    let setup = setup(StoreKind { uploads: true, ..StoreKind::default() });
    setup.store.plant(&item("other"), b"");
    setup
}

#[tokio::test(start_paused = true)]
async fn a_long_upload_never_looks_crashed() {
    let setup = setup_with_space();
    let others = another(&setup.store, &setup.sink);
    let look = async {
        loop {
            sleep(Duration::from_secs(7)).await;
            assert_eq!(others.resolve_left().await, Ok(Resolved::default()));
        }
    };
    let began = Instant::now();
    tokio::select! {
        written = setup.put("a", slow(100), Put::default()) => assert!(written.is_ok_and(|it| it.size == 100)),
        () = look => unreachable!("it looks for ever"),
    }
    assert!(began.elapsed() > 10 * TIMING.lease && setup.sink.extended() > 30);
    assert_eq!(setup.sink.events().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_upload_whose_lease_was_lost_is_aborted() {
    let setup = setup_with_space();
    let abort = CancellationToken::new();
    let steal = async {
        sleep(Duration::from_secs(30)).await;
        setup.sink.steal();
    };
    let put = Put { abort: abort.clone(), ..Put::default() };
    let (written, ()) = tokio::join!(setup.put("a", slow(100), put), steal);
    let error = written.expect_err("the lease is lost");
    assert_eq!(
        error.to_string(),
        "store memory: put space/a: stopped: the lease of this change could not be kept; nothing was written"
    );
    assert!(!abort.is_cancelled(), "the caller's own token is for other uploads too");
    assert!(!setup.store.contents().contains_key(&item("a")));
}

#[tokio::test(start_paused = true)]
async fn an_upload_is_aborted_before_its_lease_ends_while_the_audit_log_is_away() {
    let setup = setup_with_space();
    let began = Instant::now();
    let go_away = async {
        sleep(Duration::from_secs(1)).await;
        setup.sink.set_away(true);
    };
    let (written, ()) = tokio::join!(setup.put("a", slow(100), Put::default()), go_away);
    assert!(matches!(written.map_err(|error| error.kind), Err(ErrorKind::Stopped(_))));
    assert!(began.elapsed() <= TIMING.lease, "{:?}", began.elapsed());
    assert!(!setup.store.contents().contains_key(&item("a")));

    setup.sink.set_away(false);
    advance(TIMING.lease).await;
    let resolved = setup.audited.resolve_left().await;
    assert_eq!(resolved, Ok(Resolved { not_done: 1, ..Resolved::default() }));
    assert_eq!(setup.store.uploads().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_of_the_audit_log_does_not_end_an_upload() {
    let setup = setup_with_space();
    let outage = async {
        sleep(Duration::from_secs(95)).await;
        setup.sink.set_away(true);
        sleep(Duration::from_secs(15)).await;
        setup.sink.set_away(false);
    };
    // Its last byte comes during the outage.
    let (written, ()) = tokio::join!(setup.put("a", slow(10), Put::default()), outage);
    assert!(written.is_ok(), "{written:?}");
    assert_eq!(setup.sink.open_intents(), []);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_leaves_the_intent_to_the_end_of_its_lease() {
    let setup = setup_with_space();
    assert!(setup.put("a", slow(100), Put::default()).now_or_never().is_none());
    assert_eq!(setup.sink.open_intents().len(), 1);

    // Until then the item is busy, for a while that a caller may wait.
    let began = Instant::now();
    let error = setup.put("a", chunks(b"second"), Put::default()).await.expect_err("it is busy");
    assert!(matches!(&error.kind, ErrorKind::Held(_)) && error.is_temporary() && began.elapsed() <= TIMING.wait_limit);
    let text = error.to_string();
    assert!(text.starts_with("store memory: put space/a: a change of tester holds it (add, begun at 20"), "{text}");
    let end = "and longer while its process works; try again then; nothing was changed";
    assert!(text.contains(" UTC) until ") && text.ends_with(end), "{text}");
    // Other items are not.
    assert!(setup.put("b", chunks(b"content"), Put::default()).await.is_ok());

    advance(TIMING.lease).await;
    assert!(setup.put("a", chunks(b"second"), Put::default()).await.is_ok());
    assert_eq!((setup.sink.events().len(), setup.sink.open_intents()), (2, vec![]));
    assert_eq!(setup.store.uploads().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_change_waits_no_longer() {
    let setup = setup_with_space();
    assert!(setup.put("a", slow(100), Put::default()).now_or_never().is_none());
    let abort = CancellationToken::new();
    let other = another(&setup.store, &setup.sink).with_abort(abort.clone());
    let interrupt = async {
        sleep(Duration::from_secs(3)).await;
        abort.cancel();
    };
    let began = Instant::now();
    let item = item("a");
    let (deleted, ()) = tokio::join!(other.put(&item, chunks(b"second"), Put::default()), interrupt);
    assert!(matches!(deleted.map_err(|error| error.kind), Err(ErrorKind::Stopped(_))));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn rivals_change_an_item_one_after_the_other_and_each_is_recorded() {
    let setup = setup_with_space();
    let item = item("a");
    let put = |_| setup.audited.put(&item, slow(1), Put::default());
    let written = futures::future::join_all((0..8).map(put)).await;
    let done = written.iter().filter(|written| written.is_ok()).count();
    for error in written.into_iter().filter_map(Result::err) {
        assert!(error.is_temporary(), "{error}");
    }
    assert!(done >= 1);
    assert_eq!((setup.sink.events().len(), setup.sink.open_intents()), (done, vec![]));
}
