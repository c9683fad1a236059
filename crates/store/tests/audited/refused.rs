//! What is not begun at all.

use queuekeeper_store::store::{Condition, Item, Put, UserProperties};
use queuekeeper_store::{Error, ErrorKind, SpaceName, Store as _};

use super::setup::{another, chunks, item, setup, space};
use crate::support::memory::StoreKind;

fn is_refused<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| matches!(error.kind, ErrorKind::Reserved(_)))
}

#[tokio::test]
async fn reserved_spaces_are_changed_by_their_owner_alone() {
    let setup = setup(StoreKind::default());
    let names = ["x-aside", "policies", "account1.x-reports"];
    let [aside, policies, reports]: [SpaceName; 3] = names.map(|name| name.parse().expect("a valid name"));
    setup.store.plant(&item("a"), b"content");
    let [stranger, owner] = [(), ()].map(|()| another(&setup.store, &setup.sink).with_reserved([policies.clone()]));
    let owner = owner.with_owned([aside.clone(), policies.clone(), reports.clone()]);
    for space in [aside, policies, reports] {
        let reserved = Item::new(space.clone(), item("a").key);
        let events = setup.sink.events().len();
        assert!(is_refused(stranger.create_space(&space).await));
        assert_eq!(setup.sink.events().len(), events);
        assert!(owner.create_space(&space).await.is_ok_and(|made| made));
        let events = setup.sink.events().len();

        assert!(is_refused(stranger.put(&reserved, chunks(b"content"), Put::default()).await));
        assert!(is_refused(stranger.copy(&item("a"), None, &reserved, &Condition::None).await));
        assert!(owner.put(&reserved, chunks(b"content"), Put::default()).await.is_ok());
        assert!(is_refused(stranger.set_properties(&reserved, &UserProperties::default(), None).await));
        let error = stranger.delete(&reserved, None).await.expect_err("it is reserved").to_string();
        let expected = format!(
            "store memory: delete {space}/a: the space {space} is reserved for queuekeeper itself; use another one"
        );
        assert_eq!(error, expected);
        assert!(is_refused(stranger.delete_space(&space).await));
        assert_eq!(setup.sink.events().len(), events + 1);

        // Reading is free, and so is copying from there.
        assert!(stranger.head(&reserved).await.is_ok_and(|found| found.is_some()));
        assert!(stranger.copy(&reserved, None, &item("b"), &Condition::None).await.is_ok());
        assert!(owner.delete(&reserved, None).await.is_ok_and(|deleted| deleted));
        assert!(owner.delete_space(&space).await.is_ok_and(|deleted| deleted));
    }
}

#[tokio::test]
async fn what_changes_nothing_is_neither_called_nor_recorded() {
    let setup = setup(StoreKind::default());
    setup.store.plant(&item("a"), b"content");
    setup.steps.stop_after(0);
    assert!(setup.audited.create_space(&space()).await.is_ok_and(|made| !made));
    assert!(setup.audited.delete_space(&"none".parse().expect("a valid name")).await.is_ok_and(|deleted| !deleted));
    assert!(setup.audited.delete(&item("none"), None).await.is_ok_and(|deleted| !deleted));
    let written = setup.audited.set_properties(&item("a"), &UserProperties::default(), None).await;
    assert!(written.is_ok_and(|written| written.size == 7));
    assert_eq!((setup.steps.taken(), setup.sink.events()), (0, vec![]));
}

#[tokio::test]
async fn what_is_missing_is_named_before_anything_is_written() {
    let setup = setup(StoreKind::default());
    setup.steps.stop_after(0);
    let kind = |result: Result<(), Error>| result.expect_err("it is missing").to_string();
    let put = setup.audited.put(&item("a"), chunks(b"content"), Put::default()).await.map(drop);
    assert_eq!(kind(put), "store memory: head space/a: there is no such space");
    setup.store.plant(&item("a"), b"content");
    let copy = setup.audited.copy(&item("none"), None, &item("a"), &Condition::None).await.map(drop);
    assert_eq!(kind(copy), "store memory: copy space/none: there is no such item");
    let set = setup.audited.set_properties(&item("none"), &UserProperties::default(), None).await.map(drop);
    assert_eq!(kind(set), "store memory: set_properties space/none: there is no such item");
    assert_eq!(setup.steps.taken(), 0);
}
