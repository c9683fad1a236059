use super::*;
use crate::working::SizeLimit;

#[test]
fn what_an_upload_will_bring_is_used_from_when_it_is_announced_until_it_is_kept_or_removed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(directory.path()).unwrap().limited(SizeLimit::new(64 << 20));
    let used = || storage.space().map(|(total, free)| (total - free) >> 20).unwrap();
    let [mut one, mut other] = [1, 2].map(|number| Upload::open(&storage, Uuid::from_u128(number)).unwrap());
    one.announce(20 << 20).unwrap();
    other.announce(30 << 20).unwrap();
    assert_eq!((used(), one.offset(), one.held() >> 20), (50, 0, 20));
    assert_eq!([1, 2, 3].map(|n| Upload::held_by(&storage, Uuid::from_u128(n)).unwrap() >> 20), [20, 30, 0]);
    one.write(&vec![1; 5 << 20]).unwrap();
    assert_eq!((used(), one.offset()), (50, 5 << 20));
    other.remove().unwrap();
    assert_eq!(used(), 20);
    one.keep("a", false).unwrap();
    assert_eq!(used(), 5);
}

#[test]
fn an_upload_that_was_removed_is_not_taken_up_and_neither_kept_nor_removed_in_the_place_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(directory.path()).unwrap();
    let batch = Uuid::from_u128(9);
    let folder = storage.batch(&id_of(batch));
    let opened = || OpenOptions::new().read(true).append(true).open(folder.join(DATA)).unwrap();

    // One request has opened the file, and not locked it, while another removes it, and goes on with a new one.
    let first = Upload::open(&storage, batch).unwrap();
    let late = [opened(), opened()];
    first.remove().unwrap();
    let [gone, replaced] = late;
    assert!(Upload::lock(&folder, storage.volume(), gone).unwrap().is_none());
    let mut second = Upload::open(&storage, batch).unwrap();
    assert!(Upload::lock(&folder, storage.volume(), replaced).unwrap().is_none());
    second.write(b"two").unwrap();

    fs::remove_file(folder.join(DATA)).unwrap();
    let mut third = Upload::open(&storage, batch).unwrap();
    third.write(b"th").unwrap();
    third.set_note(b"note").unwrap();
    assert!(second.keep("a", false).is_err());
    second.remove().unwrap();
    assert_eq!(Upload::look(&storage, batch).unwrap(), Some((2, Some(b"note".to_vec()))));
    third.keep("a", false).unwrap();
    third.remove().unwrap();
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"th");
    assert!(!folder.join(NOTE).exists());
}

#[test]
fn an_upload_that_is_broken_off_goes_on_where_it_was_and_is_abandoned_in_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let storage = WorkingStorage::open(directory.path()).unwrap();
    let batch = Uuid::from_u128(7);
    assert!(Upload::find(&storage, batch).unwrap().is_none() && Upload::look(&storage, batch).unwrap().is_none());
    let mut upload = Upload::open(&storage, batch).unwrap();
    upload.write(b"one ").unwrap();
    upload.set_note(b"note").unwrap();
    assert_eq!(Upload::open(&storage, batch).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(upload);
    assert_eq!(Upload::look(&storage, batch).unwrap(), Some((4, Some(b"note".to_vec()))));

    let mut upload = Upload::find(&storage, batch).unwrap().unwrap();
    assert_eq!((upload.offset(), upload.note().unwrap()), (4, Some(b"note".to_vec())));
    upload.write(b"two").unwrap();
    let wrong: Digest = Digest::from_hex(queuekeeper_store::Algorithm::Md5, &"0".repeat(32)).unwrap();
    assert!(matches!(upload.check(Some(&wrong)), Err(DepositError::Digest { .. })));
    let mut right = Hashers::new(Some(queuekeeper_store::Algorithm::Md5));
    right.update(b"one two");
    let right = right.finish().get(queuekeeper_store::Algorithm::Md5).unwrap().clone();
    assert!(abandoned(&storage, Duration::from_hours(1)).unwrap().is_empty());
    assert_eq!(abandoned(&storage, Duration::ZERO).unwrap(), [id_of(batch)]);
    let whole = upload.check(Some(&right)).unwrap();
    assert_eq!((whole.start, whole.size), (b"one two".to_vec(), 7));
    let mode = |name: &str| fs::metadata(storage.batch(&id_of(batch)).join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(DATA), PRIVATE);
    upload.keep("a.checkm", true).unwrap();
    assert_eq!(mode("a.checkm"), PRIVATE);
    fs::rename(storage.batch(&id_of(batch)).join("a.checkm"), storage.batch(&id_of(batch)).join(DATA)).unwrap();
    upload.keep("a.txt", false).unwrap();
    assert_eq!(mode("a.txt"), fs::metadata(storage.batch(&id_of(batch))).unwrap().mode() & 0o666);
    upload.remove().unwrap();
    let left: Vec<_> =
        fs::read_dir(storage.batch(&id_of(batch))).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.txt"]);
    assert!(abandoned(&storage, Duration::ZERO).unwrap().is_empty());
}
