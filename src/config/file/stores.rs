//! The stores in the file of `--config.file`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_mill::limits::ColdStore;
use queuekeeper_store::s3::{AccessKey, Addressing, Credentials, S3Config};
use queuekeeper_store::{
    Counted, DirectoryStore, Error as StoreError, S3Store, SpaceName, Store, StoreFamilies, StoreName,
};
use serde::Deserialize;
use serde_saphyr::Spanned;
use url::Url;

use super::super::source::{FileError, Files, refuse};
use super::catalogue::{self, CatalogueUrl};
use super::cold;

/// The most requests to a store that may be under way at once.
const MOST_REQUESTS: usize = 1_000;

/// What is wrong with other keys of a directory.
const NO_KEYS: &str = "a directory supports only the key url";

/// The keys of a store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoreKeys {
    url: Spanned<String>,
    endpoint: Option<Spanned<String>>,
    region: Option<String>,
    credentials_file: Option<Spanned<String>>,
    profile: Option<String>,
    ca_file: Option<Spanned<String>>,
    #[serde(default)]
    addressing: AddressingKey,
    storage_class: Option<String>,
    #[serde(default = "yes")]
    checksums: bool,
    concurrency: Option<Spanned<usize>>,
    restore: Option<cold::RestoreKeys>,
    budget: Option<cold::BudgetKeys>,
}

/// How a bucket is named in a request.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AddressingKey {
    #[default]
    Auto,
    Path,
    VirtualHost,
}

fn yes() -> bool {
    true
}

/// The stores of the file, by name, the catalogue, and where access requests are delivered to. Nothing is opened yet.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    stores: BTreeMap<StoreName, Location>,
    cold: BTreeMap<StoreName, ColdStore>,
    catalogue: Option<CatalogueUrl>,
    access: Option<AccessSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Location {
    Directory(PathBuf),
    S3(Arc<S3Config>),
}

impl Location {
    /// Whether they share content, as far as their names say.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => one.starts_with(other) || other.starts_with(one),
            (Self::S3(one), Self::S3(other)) => {
                one.endpoint == other.endpoint && one.location.overlaps(&other.location)
            }
            (Self::Directory(_), Self::S3(_)) | (Self::S3(_), Self::Directory(_)) => false,
        }
    }
}

impl StoreSettings {
    pub(super) fn check(
        path: &Path,
        stores: BTreeMap<String, Spanned<StoreKeys>>,
        catalogue: Option<catalogue::Keys>,
        files: &mut Files,
    ) -> Result<Self, FileError> {
        let (mut checked, mut cold) = (BTreeMap::new(), BTreeMap::new());
        for (name, keys) in stores {
            let line = keys.referenced.line();
            let name: StoreName = name.parse().map_err(|error| refuse(path, line, format!("stores: {error}")))?;
            let mut keys = keys.value;
            let wrong = |line, why: &dyn fmt::Display| refuse(path, line, format!("stores: {name}: {why}"));
            let of_store = cold::check(keys.restore.take(), keys.budget.take(), wrong)?;
            let location = location(path, &name, keys, files)?;
            if of_store.is_limited() && matches!(location, Location::Directory(_)) {
                return Err(wrong(line, &NO_KEYS));
            }
            // What is changed through one of them would not be recorded of the other.
            if let Some((other, _)) = checked.iter().find(|(_, other)| location.overlaps(other)) {
                let why = format!("stores: {name} and {other} are the same location, or one is within the other");
                return Err(refuse(path, line, why));
            }
            cold.insert(name.clone(), of_store);
            checked.insert(name, location);
        }
        let catalogue = catalogue.map(|keys| catalogue::check(path, &keys, files)).transpose()?;
        Ok(Self { stores: checked, cold, catalogue, access: None })
    }

    /// Whether a store is one in S3.
    pub(super) fn is_bucket(&self, name: &StoreName) -> bool {
        matches!(self.stores.get(name), Some(Location::S3(_)))
    }

    /// Directories as the stores `main`, `copies` and `deliveries`, and a catalogue in a file of SQLite: a repository
    /// on one machine.
    ///
    /// # Errors
    /// When a store cannot have the name.
    pub fn local(
        objects: PathBuf,
        copies: PathBuf,
        deliveries: PathBuf,
        catalogue: &Path,
    ) -> Result<Self, queuekeeper_store::name::NameError> {
        let name: StoreName = "deliveries".parse()?;
        let access = Some(AccessSettings::new(name.clone()));
        let stores = BTreeMap::from([
            ("main".parse()?, Location::Directory(objects)),
            ("copies".parse()?, Location::Directory(copies)),
            (name, Location::Directory(deliveries)),
        ]);
        let catalogue = Some(CatalogueUrl::of_file(catalogue));
        Ok(Self { stores, cold: BTreeMap::new(), catalogue, access })
    }

    /// Whether the stores are those of another version, with the same credentials and limits.
    pub(super) fn has_stores_of(&self, other: &Self) -> bool {
        self.stores == other.stores && self.cold == other.cold
    }

    /// Delivers access requests, too.
    pub(super) fn with_access(self, access: AccessSettings) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Where access requests are delivered to.
    #[must_use]
    pub fn access(&self) -> Option<&AccessSettings> {
        self.access.as_ref()
    }

    /// The names of all stores.
    pub fn names(&self) -> impl Iterator<Item = &StoreName> {
        self.stores.keys()
    }

    /// What may be asked of a store of which reading costs.
    pub(super) fn cold(&self, name: &StoreName) -> ColdStore {
        self.cold.get(name).copied().unwrap_or_default()
    }

    /// The catalogue.
    #[must_use]
    pub fn catalogue(&self) -> Option<&CatalogueUrl> {
        self.catalogue.as_ref()
    }

    /// The bucket of a space of a store in S3, and what the keys of its items begin with there.
    ///
    /// # Errors
    /// With a sentence, when there is no such store, or it is a directory.
    pub(super) fn objects_of(&self, store: &StoreName, space: &SpaceName) -> Result<(String, String), String> {
        match self.stores.get(store) {
            None => Err(format!("there is no {store} below stores")),
            Some(Location::Directory(_)) => Err(format!("{store} is a directory, which sends no messages")),
            Some(Location::S3(config)) => config.location.objects_of(space),
        }
    }

    /// Opens a store, whose requests are counted; `None` if there is none of that name.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn open(&self, name: &StoreName, families: &StoreFamilies) -> Option<Result<Arc<dyn Store>, StoreError>> {
        let opened = match self.stores.get(name)? {
            Location::Directory(top) => {
                let opened = DirectoryStore::open(name.clone(), top.clone()).await;
                opened.map(|store| Arc::new(Counted::new(store, families.store(name))) as Arc<dyn Store>)
            }
            Location::S3(config) => {
                let opened = S3Store::new(S3Config::clone(config), families.store(name)).await;
                opened.map(|store| Arc::new(store) as Arc<dyn Store>)
            }
        };
        Some(opened)
    }
}

fn location(path: &Path, name: &StoreName, keys: StoreKeys, files: &mut Files) -> Result<Location, FileError> {
    let at = |line: u64, why: &dyn fmt::Display| refuse(path, line, format!("stores: {name}: {why}"));
    let line = keys.url.referenced.line();
    if keys.url.value.starts_with("file:") {
        let is_of_s3 = keys.endpoint.is_some()
            || keys.region.is_some()
            || keys.credentials_file.is_some()
            || keys.profile.is_some()
            || keys.ca_file.is_some()
            || keys.storage_class.is_some()
            || keys.concurrency.is_some()
            || !matches!(keys.addressing, AddressingKey::Auto)
            || !keys.checksums;
        if is_of_s3 {
            return Err(at(line, &NO_KEYS));
        }
        if !keys.url.value.starts_with("file:/") {
            let whole = "the url of a directory is file:///PATH with an absolute path, such as file:///srv/objects";
            return Err(at(line, &whole));
        }
        let url = Url::parse(&keys.url.value).ok();
        if url.as_ref().is_some_and(|url| url.query().is_some() || url.fragment().is_some()) {
            return Err(at(line, &"a ? or # in the name of a directory is written %3F or %23 in its url"));
        }
        let directory = url.and_then(|url| url.to_file_path().ok());
        let directory = directory.ok_or_else(|| at(line, &"the url of a directory is file:///PATH"))?;
        return Ok(Location::Directory(directory));
    }
    if !keys.url.value.starts_with("s3:") {
        return Err(at(line, &"url is file:///PATH or s3://BUCKET/PREFIX"));
    }
    let place = keys.url.value.parse().map_err(|error| at(line, &error))?;
    let mut config = S3Config::new(name.clone(), place);
    if let Some(endpoint) = keys.endpoint {
        let line = endpoint.referenced.line();
        let parsed = Url::parse(&endpoint.value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| at(line, &"endpoint is the URL of the service, http:// or https://"))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(at(line, &"endpoint must not contain a user or a password; use credentials_file"));
        }
        config.endpoint = Some(endpoint.value);
    }
    config.region = keys.region;
    config.storage_class = keys.storage_class;
    config.checksums = keys.checksums;
    config.addressing = match keys.addressing {
        AddressingKey::Auto => Addressing::Auto,
        AddressingKey::Path => Addressing::Path,
        AddressingKey::VirtualHost => Addressing::VirtualHost,
    };
    if let Some(concurrency) = keys.concurrency {
        let line = concurrency.referenced.line();
        if !(1..=MOST_REQUESTS).contains(&concurrency.value) {
            return Err(at(line, &format!("concurrency is from 1 to {MOST_REQUESTS}")));
        }
        config.concurrency = concurrency.value;
    }
    if let Some(file) = keys.credentials_file {
        let text = files.text(path, &file)?;
        let line = file.referenced.line();
        let key = AccessKey::parse(&text, keys.profile.as_deref()).map_err(|error| at(line, &error))?;
        config.credentials = Credentials::Key(key);
    } else if keys.profile.is_some() {
        return Err(at(line, &"profile requires credentials_file"));
    }
    if let Some(file) = keys.ca_file {
        config.ca_pem = Some(files.text(path, &file)?.into_bytes());
    }
    Ok(Location::S3(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::ConfigFile;

    /// What reading such a file says.
    fn read(text: &str) -> Result<super::StoreSettings, String> {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        for (name, text) in [
            ("keys", "AKID\nsecret-text\n"),
            ("password", "p@ss/word\n"),
            ("aws", "[default]\naws_access_key_id = A\naws_secret_access_key = secret-text\n"),
            ("config.yml", text),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let read = ConfigFile::read(&directory.path().join("config.yml"));
        read.map(|file| file.stores().clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn stores_and_the_catalogue_are_read_with_their_secrets_from_files() {
        let text = "
stores:
  main: {url: \"file:///srv/my%20objects\"}
  replica: {url: \"s3://preservation/copies\", endpoint: \"https://s3.example.edu\", region: us-west-2, credentials_file: keys,
            addressing: path, concurrency: 8}
  cold: {url: \"s3://{space}-cold\", storage_class: GLACIER_IR, credentials_file: aws, profile: default, checksums: false}
catalogue: {url: \"postgres://keeper@db.example.edu/catalogue\", password_file: password}
";
        let settings = read(text).unwrap();
        let names: Vec<_> = settings.names().map(ToString::to_string).collect();
        assert_eq!(names, ["cold", "main", "replica"]);
        let url = settings.catalogue().unwrap();
        assert_eq!(url.expose(), "postgres://keeper:p%40ss%2Fword@db.example.edu/catalogue");
        let shown = format!("{settings:?}");
        assert!(shown.contains("/srv/my objects") && shown.contains("us-west-2"), "{shown}");
        assert!(!shown.contains("secret-text") && !shown.contains("p%40ss"), "{shown}");
        let sqlite = read("catalogue: {url: \"sqlite:data/catalogue.db\"}").unwrap();
        let url = sqlite.catalogue().unwrap().expose().to_owned();
        assert!(url.starts_with("sqlite:/") && url.ends_with("/data/catalogue.db"), "{url}");
        assert!(read("users: {}").unwrap().names().next().is_none());
    }

    #[test]
    fn what_is_wrong_with_a_store_is_said_with_its_line() {
        for (text, expected) in [
            ("stores: {main: {url: \"ftp://a\"}}", "line 1: stores: main: url is file:///PATH or s3://BUCKET/PREFIX"),
            (
                "stores:\n  main: {url: \"file://host/a\"}",
                "line 2: stores: main: the url of a directory is file:///PATH",
            ),
            ("stores: {main: {url: \"file:///a\", region: x}}", "a directory supports only the key url"),
            ("stores: {main: {url: \"file:///a\", checksums: false}}", "a directory supports only the key url"),
            ("stores: {main: {url: \"file:///a#b\"}}", "is written %3F or %23"),
            (
                "stores: {a: {url: \"file:///srv/x\"}, b: {url: \"file:///srv/x/\"}}",
                "stores: b and a are the same location, or one is within the other",
            ),
            ("stores: {a: {url: \"file:///srv/x/y\"}, b: {url: \"file:///srv/x\"}}", "one is within the other"),
            ("stores: {a: {url: \"s3://bucket/x/y\"}, b: {url: \"s3://bucket/x\"}}", "one is within the other"),
            ("stores: {a: {url: \"s3://{space}-x\"}, b: {url: \"s3://{space}-x\"}}", "one is within the other"),
            ("stores: {main: {url: \"file:relative\"}}", "file:///PATH with an absolute path"),
            ("stores: {main: {url: \"file:./relative\"}}", "file:///PATH with an absolute path"),
            ("stores: {main: {url: \"s3://a b\"}}", "invalid bucket"),
            ("stores: {main: {url: \"s3://AK:hunter2@bucket\"}}", "they are for credentials_file"),
            ("stores: {main: {url: \"s3://AK:hun/ter2@bucket\"}}", "they are for credentials_file"),
            ("stores: {main: {url: \"s3://bucket\", endpoint: \"minio:9000\"}}", "endpoint is the URL of the service"),
            ("stores: {main: {url: \"s3://bucket\", endpoint: \"http://a:b@c\"}}", "use credentials_file"),
            ("stores: {main: {url: \"s3://bucket\", concurrency: 0}}", "concurrency is from 1 to 1000"),
            ("stores: {main: {url: \"s3://bucket\", credentials_file: password}}", "not a credentials file"),
            ("stores: {main: {url: \"s3://bucket\", credentials_file: gone}}", "cannot read"),
            ("stores: {main: {url: \"s3://bucket\", credentials_file: aws, profile: other}}", "no such profile"),
            ("stores: {main: {url: \"s3://bucket\", profile: other}}", "profile requires credentials_file"),
            ("stores: {main: {url: \"s3://bucket\", secret: x}}", "the key secret is unknown"),
            ("stores: {\"a/b\": {url: \"s3://bucket\"}}", "invalid name \"a/b\""),
        ] {
            let error = read(text).map(drop).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret-text") && !error.contains("p@ss"), "{error}");
        }
    }
}
