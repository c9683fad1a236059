//! One who writes, changes and deletes items at the source all the time, and remembers what was promised.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_store::store::{Item, Put, UserProperties};
use queuekeeper_store::{Audited, Error, Key, Store};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use super::world;

/// How many items there are at most.
const ITEMS: u32 = 60;

/// How long there is peace between two changes, at most.
const PAUSE: Duration = Duration::from_millis(20);

/// One item in so many is large: it is read and written in several parts.
const LARGE: u32 = 10;
const LARGE_BYTES: usize = 700_000;

/// What the source is to have under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Promised {
    /// This content.
    Content(Vec<u8>),
    /// Nothing.
    Nothing,
    /// A change had no answer, or an error: what was there before, or what was to be there.
    Unknown,
}

/// What was done, and what it came to.
#[derive(Debug, Default)]
pub(super) struct Deposited {
    pub(super) promised: BTreeMap<String, Promised>,
    pub(super) done: u64,
    pub(super) failed: u64,
}

/// Changes items until it is stopped. Each content is another one, so that what is written twice is seen.
pub(super) async fn run(source: Audited<dyn Store>, mut rng: StdRng, stop: CancellationToken) -> Deposited {
    let mut deposited = Deposited::default();
    let mut number = 0_u64;
    while !stop.is_cancelled() {
        number += 1;
        let key = key(rng.random_range(0..ITEMS));
        let item = Item::new(world::space(), Key::new(key.as_bytes()).unwrap());
        let what = rng.random_range(0..100);
        let content = content(number, &mut rng);
        let (outcome, promised) = match what {
            0..60 => (put(&source, &item, &content, number).await, Some(Promised::Content(content))),
            60..80 => (source.delete(&item, None).await.map(drop), Some(Promised::Nothing)),
            _ => (describe(&source, &item, number).await, None),
        };
        match (outcome, promised) {
            (Ok(()), Some(promised)) => {
                deposited.promised.insert(key, promised);
                deposited.done += 1;
            }
            (Ok(()), None) => deposited.done += 1,
            (Err(_), Some(_)) => {
                deposited.promised.insert(key, Promised::Unknown);
                deposited.failed += 1;
            }
            (Err(_), None) => deposited.failed += 1,
        }
        let pause = PAUSE.mul_f64(rng.random_range(0.0..1.0));
        let _stopped = stop.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    deposited
}

/// Some keys have folders, and some are no paths.
fn key(number: u32) -> String {
    match number % 3 {
        0 => format!("page-{number:02}"),
        1 => format!("folder-{}/page-{number:02}", number % 4),
        _ => format!("odd//{number:02}/"),
    }
}

fn content(number: u64, rng: &mut StdRng) -> Vec<u8> {
    let mut content = format!("the content with the number {number}\n").into_bytes();
    let is_large = rng.random_range(0..LARGE) == 0;
    let more = if is_large { LARGE_BYTES } else { rng.random_range(0..2000) };
    content.extend((0..more).map(|_| rng.random::<u8>()));
    content
}

async fn put(source: &Audited<dyn Store>, item: &Item, content: &[u8], number: u64) -> Result<(), Error> {
    let parts: Vec<_> = content.chunks(64 << 10).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    let put = Put { user: said(number), ..Put::default() };
    source.put(item, stream::iter(parts).boxed(), put).await.map(drop)
}

async fn describe(source: &Audited<dyn Store>, item: &Item, number: u64) -> Result<(), Error> {
    match source.head(item).await? {
        Some(_) => source.set_properties(item, &said(number), None).await.map(drop),
        None => Ok(()),
    }
}

fn said(number: u64) -> UserProperties {
    UserProperties {
        content_type: Some("application/octet-stream".to_owned()),
        metadata: BTreeMap::from([("number".to_owned(), number.to_string())]),
        ..UserProperties::default()
    }
}
