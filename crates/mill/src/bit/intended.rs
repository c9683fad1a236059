//! Whether a job may be storing what no record has: content of a version that it has not recorded yet.

use percent_encoding::percent_decode_str;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::ocfl::Root;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, StoreName};

use super::checker::said;

/// Whether a job intends a version of the object in whose folder an item lies, in that store.
pub(crate) async fn is_being_stored(catalogue: &Catalogue, store: &StoreName, item: &Item) -> Result<bool, String> {
    let Some(object) = object_of(&item.key) else { return Ok(false) };
    catalogue.is_being_stored(&object, store, &item.space).await.map_err(said)
}

/// The object in whose folder a key lies, where the name of that has all of its identifier.
fn object_of(key: &Key) -> Option<String> {
    let key = key.as_str()?;
    let mut folders = key.match_indices('/').map(|(at, _)| &key[..at]);
    folders.find_map(|folder| {
        let (_, name) = folder.rsplit_once('/')?;
        let id = percent_decode_str(name).decode_utf8().ok()?.into_owned();
        (Root::folder_of(&id).ok()? == folder).then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_of_a_key_is_the_one_whose_folder_it_lies_in() {
        let folder = Root::folder_of("ark:/99999/fk4abc").unwrap();
        let object = |key: &str| object_of(&key.parse().unwrap());
        assert_eq!(object(&format!("{folder}/v1/content/a")).as_deref(), Some("ark:/99999/fk4abc"));
        assert_eq!(object(&folder), None);
        assert_eq!(object("a/b/c/ark%3a%2f99999%2ffk4abc/v1/x"), None);
        assert_eq!(object("a"), None);
    }
}
