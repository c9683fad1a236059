//! Content rots at random, while those who check and repair it are killed: each that rotted is found and repaired once,
//! and nothing else is written over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use queuekeeper_mill::bit::producer::BitSettings;
use queuekeeper_mill::producer::Step;
use queuekeeper_testkit::s3::S3Server;
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use tokio::time::{Instant, sleep};

use super::operator::{LIMIT, Operator};
use super::oracle::{Contents, differences, in_bucket, in_directory};
use super::processes::{PRODUCER, Processes};
use super::run::PEACE;
use super::world::{self, BUCKET, CLOUD, Deployment, FOREIGN, MAIN, PREFIX, REPLICA, SPACE};
use tokio_util::sync::CancellationToken;

/// How many copies rot in a round: fewer than are repaired automatically in one store within a day.
const ROTTEN: usize = 8;

/// One in so many looks at the loop is followed by a kill.
const KILLS: u32 = 3;

/// What each store has.
fn contents(place: &Deployment, bucket: &S3Server) -> BTreeMap<&'static str, Contents> {
    let of = |store: &str| in_directory(&place.directory.join(store), SPACE);
    BTreeMap::from([(MAIN, of(MAIN)), (REPLICA, of(REPLICA)), (CLOUD, in_bucket(bucket, SPACE))])
}

/// The file of a key, as the documentation says.
fn file(top: &Path, key: &str) -> PathBuf {
    let parts = key.split('/').map(|part| if part.is_empty() { "%2F" } else { part });
    top.join(SPACE).join(parts.collect::<Vec<_>>().join("/"))
}

/// Flips a byte of a copy; its time stays.
fn rot(place: &Deployment, bucket: &S3Server, store: &str, key: &str, rng: &mut StdRng) {
    if store == CLOUD {
        return bucket.rot(BUCKET, &format!("{PREFIX}/{SPACE}/{key}"));
    }
    let file = file(&place.directory.join(store), key);
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    let mut content = fs::read(&file).unwrap();
    let at = rng.random_range(0..content.len());
    content[at] ^= 1 << rng.random_range(0..8);
    fs::write(&file, content).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
}

/// Goes through all copies by a loop of checks, while processes are killed.
async fn check_all(place: &Deployment, processes: &mut Processes, operator: &mut Operator, rng: &mut StdRng) {
    let mut mill = world::mill(place, "operator", 0).await.unwrap();
    mill.settings.bit = Some(BitSettings::default());
    operator.end_lead_of("bit");
    let (mut deadline, end) = (Instant::now() + LIMIT, Instant::now() + 5 * LIMIT);
    loop {
        assert!(Instant::now() < end, "the checks do not end");
        match mill.check_once(&CancellationToken::new()).await {
            Ok(Step::Idle) => break,
            Ok(Step::Advanced | Step::Checking | Step::Full | Step::Follows) => {
                if rng.random_range(0..KILLS) == 0 {
                    processes.kill(rng.random_range(0..PRODUCER));
                }
                operator.hurry(&processes.names()).await;
                sleep(PEACE.mul_f64(rng.random_range(0.0..0.5))).await;
                deadline = Instant::now() + LIMIT;
            }
            // A store or the database did not answer in time, which is not to be so again and again.
            Ok(Step::Stuck(_)) | Err(_) if Instant::now() < deadline => sleep(PEACE).await,
            other => panic!("{other:?}"),
        }
    }
    mill.catalogue.close().await;
}

/// Lets copies rot, and has all copies checked: how many rotted, and what is wrong then, as lines.
pub(super) async fn round(
    place: &Deployment,
    bucket: &S3Server,
    processes: &mut Processes,
    operator: &mut Operator,
    rng: &mut StdRng,
) -> (usize, Vec<String>) {
    // What was repaired before was repaired long ago.
    drop(operator.query("UPDATE repairs SET started = started - 800000000, ended = ended - 800000000"));
    let last = operator.query("SELECT COALESCE(MAX(id), 0) FROM repairs");
    let before = contents(place, bucket);
    let mut keys: Vec<_> = before[MAIN].keys().filter(|key| *key != FOREIGN).cloned().collect();
    keys.shuffle(rng);
    let mut planted = BTreeSet::new();
    for key in keys.into_iter().take(ROTTEN) {
        let store = [MAIN, REPLICA, CLOUD][rng.random_range(0..3)];
        rot(place, bucket, store, &key, rng);
        planted.insert(format!("{store}|{key}|repaired"));
    }
    check_all(place, processes, operator, rng).await;
    operator.await_quiet(&processes.names(), "after content rotted").await;
    processes.none_has_ended();
    let after = contents(place, bucket);
    let mut wrong: Vec<_> =
        before.iter().flat_map(|(store, contents)| differences(contents, &after[store], store)).collect();
    let sql = format!(
        "SELECT store, encode(key, 'escape'), COALESCE(outcome, 'open') FROM repairs WHERE id > {} ORDER BY id",
        last.trim()
    );
    let mut repaired: Vec<_> = operator.query(&sql).lines().map(str::to_owned).collect();
    repaired.sort_unstable();
    if repaired != planted.iter().cloned().collect::<Vec<_>>() {
        wrong.push(format!("rotted: {planted:?}, repairs: {repaired:?}"));
    }
    let open = operator.query("SELECT store, encode(key, 'escape'), detail FROM bit_errors WHERE ended IS NULL");
    wrong.extend(open.lines().filter(|line| !line.contains(FOREIGN)).map(|line| format!("still wrong: {line}")));
    (planted.len(), wrong)
}
