//! What runs in a process of its own: puts, gets and listings, and the S3 server.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use queuekeeper_store::s3::{AccessKey, Credentials, S3Config, S3Store};
use queuekeeper_store::store::Put;
use queuekeeper_store::{Algorithm, DirectoryStore, Hashers, Item, Key, SpaceName, Store, StoreFamilies};
use queuekeeper_testkit::s3::{S3Server, Settings};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio_util::io::ReaderStream;

use super::{SPACE, TRANSFERS, rivals};

/// The first argument of such a process.
pub(super) const MARK: &str = "--child";

/// The kinds of stores.
pub(super) const KINDS: [&str; 2] = ["directory", "s3"];

/// The bucket of the server.
const BUCKET: &str = "bench";

/// What a process took.
pub(super) struct Ran {
    /// From its start to its end.
    pub(super) seconds: f64,
    pub(super) peak_mb: u64,
}

/// Runs `put KIND PLACE SOURCE`, `get KIND PLACE TARGET` or `list KIND PLACE COUNT`.
pub(super) fn time(arguments: &[&str], server: Option<&Served>) -> Ran {
    rivals::settle(&std::env::temp_dir());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(MARK).args(arguments).stdout(Stdio::piped());
    if let Some(server) = server {
        command.env("BENCH_ENDPOINT", &server.endpoint);
    }
    let began = Instant::now();
    let output = command.output().unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert!(output.status.success(), "{arguments:?}");
    Ran { seconds, peak_mb: String::from_utf8(output.stdout).unwrap().trim().parse().unwrap() }
}

/// The S3 server, in a process that ends with this.
pub(super) struct Served {
    child: Child,
    /// Where it is reached.
    pub(super) endpoint: String,
}

impl Served {
    /// Starts it with content in a directory, and so many keys.
    pub(super) fn start(directory: &Path, keys: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([MARK, "serve", directory.to_str().unwrap(), &keys.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut endpoint = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut endpoint).unwrap();
        Self { child, endpoint: endpoint.trim().to_owned() }
    }

    /// What rclone has to know, as `bench:`.
    pub(super) fn rclone(&self) -> Vec<(String, String)> {
        let Settings { access_key, secret_key, region, .. } = Settings::default();
        let values = [
            ("TYPE", "s3"),
            ("PROVIDER", "Other"),
            ("ACCESS_KEY_ID", &access_key),
            ("SECRET_ACCESS_KEY", &secret_key),
            ("REGION", &region),
            ("ENDPOINT", &self.endpoint),
            ("NO_CHECK_BUCKET", "true"),
        ];
        values.map(|(name, value)| (format!("RCLONE_CONFIG_BENCH_{name}"), value.to_owned())).to_vec()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// What such a process does.
pub(super) fn run(arguments: &[String]) {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments[..] {
            ["serve", directory, keys] => return serve(directory, keys.parse().unwrap()).await,
            ["put", kind, place, source] => put_all(&*store(kind, place).await, Path::new(source)).await,
            ["get", kind, place, target] => get_all(&*store(kind, place).await, Path::new(target)).await,
            ["list", kind, place, count] => list(&*store(kind, place).await, count.parse().unwrap()).await,
            _ => panic!("{arguments:?}"),
        }
        println!("{}", peak_mb());
    });
}

async fn serve(directory: &str, keys: usize) {
    let settings = Settings { directory: Some(PathBuf::from(directory)), ..Settings::default() };
    let server = S3Server::start(settings).await.unwrap();
    server.create_bucket(BUCKET);
    server.plant(BUCKET, (0..keys).map(|key| format!("{SPACE}/{:03}/{key:09}", key / 1000)), b"");
    println!("{}", server.endpoint());
    let wait = || std::io::stdin().read_to_end(&mut Vec::new());
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
}

async fn store(kind: &str, place: &str) -> Arc<dyn Store> {
    let name = "bench".parse().unwrap();
    let store: Arc<dyn Store> = if kind == "s3" {
        let Settings { access_key, secret_key, .. } = Settings::default();
        let mut config = S3Config::new(name, place.parse().unwrap());
        config.endpoint = Some(std::env::var("BENCH_ENDPOINT").unwrap());
        config.credentials = Credentials::Key(AccessKey::new(&access_key, &secret_key));
        let metrics = StoreFamilies::default().store(&config.name);
        Arc::new(S3Store::new(config, metrics).await.unwrap())
    } else {
        Arc::new(DirectoryStore::open(name, PathBuf::from(place)).await.unwrap())
    };
    store.create_space(&space()).await.unwrap();
    store
}

fn space() -> SpaceName {
    SPACE.parse().unwrap()
}

fn key(source: &Path, file: &Path) -> Key {
    file.strip_prefix(source).unwrap().to_str().unwrap().parse().unwrap()
}

async fn put_all(store: &dyn Store, source: &Path) {
    let folders = fs::read_dir(source).unwrap().map(|folder| folder.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
    let mut files: Vec<_> = files.collect();
    files.sort();
    let puts = stream::iter(files).map(|path| async move {
        let file = File::open(&path).await.unwrap();
        let size = Some(file.metadata().await.unwrap().len());
        let content = ReaderStream::with_capacity(file, 256 << 10).boxed();
        let put = Put { size, compute: vec![Algorithm::Sha256], ..Put::default() };
        store.put(&Item::new(space(), key(source, &path)), content, put).await.unwrap();
    });
    puts.buffer_unordered(TRANSFERS).collect::<Vec<_>>().await;
}

/// Reads what is listed, compares it with its checksums, and writes it to files.
async fn get_all(store: &dyn Store, target: &Path) {
    fs::create_dir(target).unwrap();
    let keys = store.list(&space(), b"", None).map_ok(|listed| listed.key);
    let gets = keys.map(|key| async move {
        let item = Item::new(space(), key.unwrap());
        let path = target.join(item.key.as_str().unwrap());
        let got = store.get(&item, None, None).await.unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let kept = got.properties.checksums.get(Algorithm::Crc64Nvme).map(|_| Algorithm::Crc64Nvme);
        let mut hashers = Hashers::new([Algorithm::Sha256].into_iter().chain(kept));
        let mut file = File::create(path).await.unwrap();
        let mut chunks = got.chunks;
        while let Some(chunk) = chunks.try_next().await.unwrap() {
            // What was written before is still on its way to the file while this is digested.
            hashers.update(&chunk);
            file.write_all(&chunk).await.unwrap();
        }
        file.flush().await.unwrap();
        assert_eq!(got.properties.checksums.agree(&hashers.finish()), Some(true));
    });
    gets.buffer_unordered(TRANSFERS).collect::<Vec<_>>().await;
}

async fn list(store: &dyn Store, count: usize) {
    let found = store.list(&space(), b"", None).try_fold(0_usize, async |count, _| Ok(count + 1)).await.unwrap();
    assert_eq!(found, count);
}

/// The peak of this process's memory.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}
