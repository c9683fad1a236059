//! An account with reports, and what verifies their chain.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_mill::bit::chain::{ChainTotals, ReportChain};
use queuekeeper_store::SpaceName;
use queuekeeper_store::store::{Item, Put};
use serde_json::Value;

use crate::duplicate::world::{World, main};

/// What is in the admin space, by key.
pub(super) type Files = BTreeMap<String, String>;

/// As the stores name it.
pub(super) fn admin() -> SpaceName {
    "account1.x-duracloud-admin".parse().unwrap()
}

/// The SHA-256 of a text, in hexadecimal, by another library.
pub(super) fn sha256(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap();
    digest.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(super) fn parse(seal: &str) -> Value {
    serde_json::from_str(seal).unwrap()
}

/// What there is in the admin space.
pub(super) async fn files(world: &World) -> Files {
    let listed: Vec<_> = world.bare[&main()].list(&admin(), b"", None).try_collect().await.unwrap();
    let mut files = Files::new();
    for entry in listed {
        let text = world.text(&main(), &Item::new(admin(), entry.key.clone())).await.unwrap().0;
        files.insert(entry.key.to_string(), text);
    }
    files
}

/// Makes of what there is what there is to be.
pub(super) async fn replace(world: &World, from: &Files, to: &Files) {
    let (store, item) = (&world.bare[&main()], |key: &str| Item::new(admin(), key.parse().unwrap()));
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        store.delete(&item(key), None).await.unwrap();
    }
    for (key, text) in to.iter().filter(|(key, text)| from.get(*key) != Some(*text)) {
        let content = stream::iter([Ok(Bytes::from(text.clone()))]).boxed();
        store.put(&item(key), content, Put::default()).await.unwrap();
    }
}

/// Verifies the chain with the catalogue or without, with a hash that was noted; what is said, and the totals.
pub(super) async fn verify(world: &World, has_catalogue: bool, noted: Option<&str>) -> (Vec<String>, ChainTotals) {
    let chain = ReportChain {
        account: world.duplicator.accounts["account1"].clone(),
        stores: world.bare.iter().map(|(name, store)| (name.clone(), Ok(Arc::clone(store)))).collect(),
        catalogue: has_catalogue.then(|| world.catalogue.clone()),
        noted: noted.map(str::to_owned),
    };
    let mut lines = Vec::new();
    let totals = chain.verify(&mut |line| lines.push(line)).await.unwrap();
    assert_eq!(totals.wrong, lines.len() as u64);
    (lines, totals)
}
