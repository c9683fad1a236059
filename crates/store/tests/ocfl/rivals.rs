//! Writers that work on one object at the same time, and answers that get lost.

use queuekeeper_store::ocfl::{Abandoned, Object, Repaired, Start};

use crate::helpers::{ID, assert_valid, begin, content, files, job, make, memory, read_all, undigested};
use crate::memory::{Lost, StoreKind};

#[tokio::test]
async fn of_two_writers_one_makes_the_version_and_the_other_begins_again() {
    for has_first in [false, true] {
        let (store, _, root) = memory(StoreKind::default()).await;
        let object = root.object(ID).unwrap();
        if has_first {
            make(&object, job(1), &files([("a", "1")])).await.unwrap();
        }
        let mut one = begin(&object, job(2), Start::Head).await;
        let mut other = begin(&object, job(3), Start::Head).await;
        one.add("new", content(b"one")).await.unwrap();
        other.add("new", content(b"other")).await.unwrap();
        let made = one.commit().await.unwrap();
        let lost = other.commit().await.unwrap_err();
        assert!(lost.is_conflict() && lost.is_temporary());
        let expected =
            format!("object {ID}: another writer created version {made}, so this one was not created; start again");
        assert_eq!(lost.to_string(), expected);
        // It left nothing behind.
        assert_valid(&object, &store).await;

        let mut other = begin(&object, job(3), Start::Head).await;
        assert_eq!(other.version(), made + 1);
        other.replace("new", content(b"other")).await.unwrap();
        other.commit().await.unwrap();
        let versions = read_all(&object).await;
        assert_eq!(versions[versions.len() - 2]["new"], b"one");
        assert_eq!(versions[versions.len() - 1]["new"], b"other");
        assert_valid(&object, &store).await;
    }
}

/// A process that was stopped for longer than its session, and goes on while its job was taken over.
#[tokio::test]
async fn a_job_that_runs_twice_at_once_makes_one_version() {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    make(&object, job(1), &files([("a", "1")])).await.unwrap();
    let mut sleeper = begin(&object, job(2), Start::Head).await;
    sleeper.add("b", content(b"2")).await.unwrap();
    sleeper.add("only the sleeper's", content(b"3")).await.unwrap();

    let mut successor = begin(&object, job(2), Start::Head).await;
    successor.add("b", content(b"2")).await.unwrap();
    assert_eq!(successor.commit().await.unwrap(), 2);

    assert!(sleeper.add("late", content(b"4")).await.is_ok());
    // The version is that of the job, and what only the sleeper stored is removed.
    assert_eq!(sleeper.commit().await.unwrap(), 2);
    assert_eq!(object.repair(&Abandoned::None).await.unwrap(), Repaired::default());
    assert_eq!(read_all(&object).await, [files([("a", "1")]), files([("a", "1"), ("b", "2")])]);
    assert_valid(&object, &store).await;

    let twins = [begin(&object, job(3), Start::Head).await, begin(&object, job(3), Start::Head).await];
    let mut versions = Vec::new();
    for (number, mut twin) in twins.into_iter().enumerate() {
        twin.rename("b", &format!("by twin {number}")).unwrap();
        versions.push(twin.commit().await.unwrap());
    }
    assert_eq!(versions, [3, 3]);
    assert_eq!(read_all(&object).await[2], files([("a", "1"), ("by twin 0", "2")]));
    assert_valid(&object, &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_writers_at_once_make_ten_versions() {
    let (store, _, root) = memory(StoreKind { tags_by_content: true, ..StoreKind::default() }).await;
    let object = root.object(ID).unwrap();
    let write = async |object: Object, number: u128| {
        loop {
            let mut writer = begin(&object, job(number), Start::Head).await;
            writer.add(&format!("by {number}"), content(number.to_string().as_bytes())).await.unwrap();
            match writer.commit().await {
                Ok(version) => return version,
                Err(error) => assert!(error.is_conflict(), "{error}"),
            }
        }
    };
    let writers = (0..10).map(|number| tokio::spawn(write(object.clone(), number)));
    let mut versions = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        versions.push(writer.await.unwrap());
    }
    versions.sort_unstable();
    assert!(versions.iter().copied().eq(1..=10));
    for (before, after) in read_all(&object).await.windows(2).map(|pair| (&pair[0], &pair[1])) {
        assert!(after.len() == before.len() + 1 && before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
    }
    // A writer that lost late may have written content after the winner looked.
    object.repair(&Abandoned::All).await.unwrap();
    assert_valid(&object, &store).await;
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_version_and_loses_none() {
    for lost in [Lost::Answer, Lost::Request] {
        let (store, _, root) = memory(StoreKind::default()).await;
        let object = root.object(ID).unwrap();
        make(&object, job(1), &files([("a", "1")])).await.unwrap();
        let mut writer = begin(&object, job(2), Start::Head).await;
        store.lose(lost);
        writer.add("b", content(b"2")).await.unwrap();
        store.lose(lost);
        let made = writer.commit().await;
        match lost {
            Lost::Answer => assert_eq!(made.unwrap(), 2),
            Lost::Request => assert!(made.unwrap_err().is_temporary()),
        }
        assert_eq!(make(&object, job(2), &files([("a", "1"), ("b", "2")])).await.unwrap(), 2);
        assert_eq!(read_all(&object).await[1], files([("a", "1"), ("b", "2")]));
        assert_valid(&object, &store).await;
    }
}

/// What lies under a job's key from an earlier attempt may be the same content, or another.
#[tokio::test]
async fn what_an_earlier_attempt_stored_is_used_where_it_is_the_same() {
    let (store, _, root) = memory(StoreKind::default()).await;
    let object = root.object(ID).unwrap();
    let mut dead = begin(&object, job(1), Start::Head).await;
    for (path, bytes) in [("same", "1"), ("changed", "2"), ("undigested", "3"), ("gone", "4"), ("file", "5")] {
        dead.add(path, content(bytes.as_bytes())).await.unwrap();
    }
    drop(dead);
    let mut writer = begin(&object, job(1), Start::Head).await;
    writer.add("same", content(b"1")).await.unwrap();
    writer.add("changed", content(b"other")).await.unwrap();
    writer.add("undigested", undigested(b"3")).await.unwrap();
    writer.add("file/inside", undigested(b"6")).await.unwrap();
    writer.replace("same", content(b"replaced")).await.unwrap();
    writer.replace("same", undigested(b"again")).await.unwrap();
    writer.commit().await.unwrap();
    let expected = files([("same", "again"), ("changed", "other"), ("undigested", "3"), ("file/inside", "6")]);
    assert_eq!(read_all(&object).await, [expected]);
    assert_valid(&object, &store).await;
}
