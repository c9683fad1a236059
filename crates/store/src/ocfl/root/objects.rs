//! The objects of a storage root, found by a listing of its items.

use futures::{Stream, StreamExt as _, stream};

use super::{CONFIG_KEY, DECLARATION_KEY, LAYOUT_KEY, Root};
use crate::key::Key;
use crate::ocfl::chunks;
use crate::ocfl::error::OcflError;
use crate::ocfl::inventory::Failure;
use crate::ocfl::layout;
use crate::ocfl::object::{INVENTORY, Object, broken, is_absent};
use crate::store::{Item, Listing};

/// How many items of an object are passed over before the listing begins anew behind it: a page of S3, which has come
/// already.
const MOST_PASSED: usize = 1000;

/// What a listing of a storage root finds.
#[derive(Clone, Debug)]
pub enum Found {
    /// An object. It may have no version yet, or be damaged: it has not been read.
    Object(Object),
    /// What belongs to no object that this program can name.
    Other {
        /// The key of the item, or of a folder without a slash at its end.
        key: String,
        /// Why it is none.
        why: String,
    },
}

impl Root {
    /// Finds the objects in the byte order of their roots' keys, behind the one whose root is `after` (all, without
    /// it). What is no object is found, too, and skipped by no error. Memory does not grow with the number of objects
    /// or items; a large object costs one request more than a small one.
    pub fn objects(&self, after: Option<&str>) -> impl Stream<Item = Result<Found, OcflError>> + Send + use<> {
        let listing = self.list_behind(after);
        let cursor = Cursor { root: self.clone(), listing, current: after.map(|root| format!("{root}/")), passed: 0 };
        stream::unfold(cursor, async |mut cursor| Some((cursor.next().await?, cursor)))
    }

    /// The items behind those of an object.
    fn list_behind(&self, root: Option<&str>) -> Listing {
        // The highest character: a text above everything in the folder, and below everything that follows it.
        let after = root.and_then(|root| Key::new(format!("{root}/\u{10ffff}").into_bytes()).ok());
        self.store.list(&self.space, b"", after.as_ref())
    }

    async fn found(&self, root: &str) -> Result<Found, OcflError> {
        let id = match layout::id_of(root) {
            Some(id) => Some(id),
            None if layout::is_cut_off(root) => self.id_in_inventory(root).await?,
            None => return Ok(other(root.to_owned(), "its name is not an identifier in the form of the layout")),
        };
        let Some(id) = id else {
            let why = "its name is a part of its identifier, and it has no inventory that has the whole";
            return Ok(other(root.to_owned(), why));
        };
        match layout::object_root(&id) {
            Ok(place) if place == root => Ok(Found::Object(self.object_at(id, place))),
            Ok(place) => Ok(other(root.to_owned(), &format!("it is the object {id:?}, which belongs to {place}"))),
            Err(error) => Ok(other(root.to_owned(), &error.to_string())),
        }
    }

    /// The identifier that an inventory of an object has.
    async fn id_in_inventory(&self, root: &str) -> Result<Option<String>, OcflError> {
        for file in [INVENTORY.to_owned(), format!("v1/{INVENTORY}")] {
            let Ok(key) = Key::new(format!("{root}/{file}").into_bytes()) else { continue };
            let item = Item::new(self.space.clone(), key);
            let content = match self.store.get(&item, None, None).await {
                Ok(content) => content,
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            match chunks::read_inventory(content.chunks, &self.directory).await {
                Ok(loaded) => return Ok(Some(loaded.inventory.id().to_owned())),
                Err(Failure::Form(_)) => {}
                Err(Failure::Temporary(error)) => return Err(OcflError::temporary(&self.directory, error)),
                Err(Failure::Read(error)) => return Err(broken(&*self.store, &item, &error.to_string()).into()),
            }
        }
        Ok(None)
    }
}

struct Cursor {
    root: Root,
    listing: Listing,
    /// The root of the object that was found last, with a slash at its end.
    current: Option<String>,
    /// How many of its items came since.
    passed: usize,
}

impl Cursor {
    async fn next(&mut self) -> Option<Result<Found, OcflError>> {
        loop {
            let key = match self.listing.next().await? {
                Ok(listed) => listed.key,
                Err(error) => return Some(Err(error.into())),
            };
            if let Some(current) = self.current.as_ref().filter(|one| key.as_bytes().starts_with(one.as_bytes())) {
                self.passed += 1;
                if self.passed == MOST_PASSED {
                    self.listing = self.root.list_behind(Some(current.trim_end_matches('/')));
                }
                continue;
            }
            let Some(text) = key.as_str() else {
                return Some(Ok(other(key.to_string(), "its name is no text")));
            };
            if [DECLARATION_KEY, LAYOUT_KEY, CONFIG_KEY].contains(&text) {
                continue;
            }
            let Some(root) = layout::root_of(text) else {
                return Some(Ok(other(text.to_owned(), "it is outside the object directories")));
            };
            self.current = Some(format!("{root}/"));
            self.passed = 0;
            return Some(self.root.found(root).await);
        }
    }
}

fn other(key: String, why: &str) -> Found {
    Found::Other { key, why: why.to_owned() }
}
