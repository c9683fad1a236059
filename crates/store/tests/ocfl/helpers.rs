//! What the tests of objects share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_store::ocfl::{Begun, NewFile, NewVersion, Object, OcflError, Root, Snapshot, Start, User, Writer};
use queuekeeper_store::{Algorithm, Digests, Hashers, Item, Store};
use uuid::Uuid;

use crate::memory::{MemoryStore, StoreKind};
use crate::steps::Steps;

pub(crate) const ID: &str = "ark:/99999/fk4w95qx0v";

/// The files of a version, with their content.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn files<const N: usize>(files: [(&str, &str); N]) -> Files {
    files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect()
}

/// A store in memory with the steps at which it stops, and a storage root in it.
pub(crate) async fn memory(kind: StoreKind) -> (Arc<MemoryStore>, Steps, Root) {
    let steps = Steps::default();
    let store = Arc::new(MemoryStore::new("memory", kind, steps.clone()));
    let root = Root::open(store.clone() as Arc<dyn Store>, "objects".parse().unwrap()).await.unwrap();
    (store, steps, root)
}

pub(crate) fn job(number: u128) -> Uuid {
    Uuid::from_u128(0x0193_5a7e_0000_7000_8000_0000_0000_0000 + number)
}

pub(crate) fn new_version(job: Uuid, start: Start) -> NewVersion {
    let user = User { name: "A. Depositor".to_owned(), address: Some("mailto:depositor@example.edu".to_owned()) };
    let created = Timestamp::from_second(1_764_000_000).unwrap();
    NewVersion { job, content: job, user, message: "a deposit".to_owned(), created, start }
}

/// The paths that a version has while it is made.
pub(crate) fn paths(writer: &Writer) -> Vec<String> {
    writer.paths().collect::<Result<_, _>>().unwrap()
}

/// A writer of the next version; the job must not have made it.
pub(crate) async fn begin(object: &Object, job: Uuid, start: Start) -> Writer {
    match object.begin(new_version(job, start)).await.unwrap() {
        Begun::Writer(writer) => *writer,
        Begun::Done(version) => panic!("{job} made version {version} already"),
    }
}

/// Content in two pieces, with its digests expected.
pub(crate) fn content(bytes: &[u8]) -> NewFile {
    let mut file = undigested(bytes);
    file.expected = digests(bytes);
    file
}

/// Content of which no digest is known before.
pub(crate) fn undigested(bytes: &[u8]) -> NewFile {
    let bytes = Bytes::copy_from_slice(bytes);
    let size = bytes.len() as u64;
    let mut file = NewFile::new(move || {
        let half = bytes.len() / 2;
        stream::iter([Ok(bytes.slice(..half)), Ok(bytes.slice(half..))]).boxed()
    });
    file.size = Some(size);
    file
}

pub(crate) fn digests(bytes: &[u8]) -> Digests {
    let mut hashers = Hashers::new([Algorithm::Md5, Algorithm::Sha512]);
    hashers.update(bytes);
    hashers.finish()
}

/// Makes a version with exactly these files, whatever the version before has; what a job does from its beginning.
pub(crate) async fn make(object: &Object, job: Uuid, wanted: &Files) -> Result<u32, OcflError> {
    let mut writer = match object.begin(new_version(job, Start::Empty)).await? {
        Begun::Done(version) => return Ok(version),
        Begun::Writer(writer) => writer,
    };
    for (path, bytes) in wanted {
        writer.add(path, content(bytes)).await?;
    }
    writer.commit().await
}

/// Every file of a version, by reading and verifying it.
pub(crate) async fn read_version(snapshot: &Snapshot, version: u32) -> Files {
    let mut files = Files::new();
    for file in snapshot.inventory().files(version) {
        let path = file.unwrap().path;
        let content = snapshot.open(version, &path).await.unwrap();
        let bytes: Vec<Bytes> = content.chunks.try_collect().await.unwrap();
        files.insert(path, bytes.concat());
    }
    files
}

/// All versions of an object, the oldest first; none where it does not exist.
pub(crate) async fn read_all(object: &Object) -> Vec<Files> {
    let Some(snapshot) = object.read().await.unwrap() else { return Vec::new() };
    let mut versions = Vec::new();
    for version in 1..=snapshot.inventory().head() {
        versions.push(read_version(&snapshot, version).await);
    }
    versions
}

/// Writes what a store in memory holds below a directory, as files.
pub(crate) fn export(contents: &BTreeMap<Item, Bytes>, to: &Path) {
    for (item, bytes) in contents {
        let file = to.join(item.key.as_str().unwrap());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

/// Lets `ocfl-py` validate storage roots, and `rocfl` where `QUEUEKEEPER_ROCFL` names the program: what they say of
/// them, where they do not call all of them valid.
pub(crate) fn validate(roots: &[PathBuf]) -> Result<(), String> {
    validate_by_ocfl_py(roots)?;
    let Some(rocfl) = std::env::var_os("QUEUEKEEPER_ROCFL") else { return Ok(()) };
    for root in roots {
        let mut command = Command::new(&rocfl);
        command.arg("--root").arg(root).args(["validate", "--level", "error"]);
        succeeds(&mut command)?;
    }
    Ok(())
}

/// The output of a program, where it does not end with success.
fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(printed) }
}

/// The same by `ocfl-py` alone. It judges the structure of a root by its exit code, and not the objects in it: each of
/// these is named beside the roots.
pub(crate) fn validate_by_ocfl_py(roots: &[PathBuf]) -> Result<(), String> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin");
    let tool = tools.join("ocfl-validate.py");
    assert!(tool.exists(), "{} is not installed: run .ci/install", tool.display());
    let mut paths = roots.to_vec();
    for root in roots {
        objects_below(root, &mut paths);
    }
    succeeds(Command::new(tool).arg("--quiet").args(paths))
}

/// Adds the directories of the objects below one.
fn objects_below(directory: &Path, found: &mut Vec<PathBuf>) {
    if directory.join("0=ocfl_object_1.1").exists() {
        return found.push(directory.to_owned());
    }
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            objects_below(&entry.path(), found);
        }
    }
}

/// Asserts that what a store holds is valid, to our verification and to `ocfl-py`.
pub(crate) async fn assert_valid(object: &Object, store: &MemoryStore) {
    let verified = object.verify().await.unwrap();
    assert!(verified.is_valid(), "{:#?}", verified.findings);
    let top = tempfile::tempdir().unwrap();
    export(&store.contents(), top.path());
    validate(&[top.path().to_owned()]).unwrap();
}
