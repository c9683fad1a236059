//! `queue::path`, and the names that paths consist of.

use queuekeeper::actions::Target;
use queuekeeper_queue::id::{BatchId, JobId, Priority, RequestId};
use queuekeeper_queue::path::{EntryName, NodePath, Path, StateFolder, lock_name};

use super::shown;

/// Reads the bytes as a path, as a name and as the target of an action.
///
/// # Panics
/// When a reading is not what was written, or a path lies where it does not.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let path = Path::parse(&text);
    if path != Path::Foreign {
        assert_eq!(Path::parse(&path.to_string()), path, "a path reads back as itself");
        // What is unexpected is named by its first part that is.
        assert!(text.starts_with(path.to_string().trim_end_matches('/')), "{text:?} is read as {path}");
    }
    match NodePath::parse(&text) {
        Ok(node) => {
            let mut whole = Path::Root;
            let mut again = NodePath::root();
            for name in node.names() {
                again = again.child(name).expect("a part of a znode's path is a znode's name");
                let child = whole.any_child(name);
                if child != Path::Foreign {
                    assert_eq!(child.parent(), Some(whole), "{child} lies in its parent");
                }
                whole = child;
            }
            assert_eq!(again, node, "a path is its parts");
            assert_eq!(whole, Path::parse_whole(&text), "a path is its parts");
            if whole != Path::Foreign {
                assert_eq!(whole.to_string(), text, "a whole path is written as it was read");
            }
        }
        Err(error) => shown::error(error, 1_000),
    }
    assert!(Path::own(&text).is_none_or(|own| own.to_string() == text), "a path of our own is the path itself");
    if let Some(entry) = EntryName::from_name(&text) {
        assert_eq!(entry.to_string(), text, "only what would be written is an entry");
    }
    if let Some(folder) = StateFolder::from_name(&text) {
        assert_eq!(folder.to_string(), text, "a folder keeps its name");
        assert!(text.len() <= StateFolder::LONGEST, "a folder's name is bounded");
    }
    assert!(!lock_name(&text).contains('/'), "the name of a lock is one name");
    id::<JobId>(&text);
    id::<BatchId>(&text);
    id::<RequestId>(&text);
    match text.parse::<Priority>() {
        Ok(priority) => assert!(priority <= Priority::MAX),
        Err(error) => shown::error(error, 1_000),
    }
    match text.parse::<Target>() {
        Ok(target) => {
            assert_eq!(target.to_string(), text, "a target is written as it was read");
            assert!(target.actions().next().is_some(), "it supports an action");
        }
        Err(error) => shown::error(error, 1_000),
    }
}

/// Only what an id is written as is one.
fn id<T>(text: &str)
where
    T: std::fmt::Display + std::str::FromStr,
    T::Err: std::fmt::Display,
{
    match text.parse::<T>() {
        Ok(id) => assert_eq!(id.to_string(), text, "only what an id is written as is one"),
        Err(error) => shown::error(error, 1_000),
    }
}
