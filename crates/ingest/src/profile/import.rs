//! Profiles of Merritt's ingest service, converted into ours.
//!
//! These are files of properties, one a collection. What has no correspondence is named with its lines and left out;
//! what is unknown or cannot be converted is refused, since a profile decides where objects go.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::path::Path;
use std::str::FromStr;

use queuekeeper_store::{SpaceName, StoreName};

use super::keys::check_service;
use super::properties::{self, Property};
use super::{LAST_PRIORITY, Profile, ProfileError};
use crate::ark::{Ark, Shoulder};
use crate::name::shown;
use crate::url::ContentUrl;
use queuekeeper_mail::address;

#[cfg(test)]
mod tests;

/// The keys that say nothing to our daemons, without their numbers.
const WITHOUT_CORRESPONDENCE: [&str; 31] = [
    "Aggregate",
    "CharacterizationURL",
    "Context",
    "CoordinatingNodeURL",
    "CreationDate",
    "DataoneNodeID",
    "DataoneURL",
    "EzidCoowner",
    "FixityURL",
    "Handler",
    "HandlerBatchProcess",
    "HandlerBatchReport",
    "HandlerDownload",
    "HandlerEstimate",
    "HandlerInitialize",
    "HandlerNotify",
    "HandlerProcess",
    "HandlerProvision",
    "HandlerQueue",
    "HandlerRecord",
    "Identifier-namespace",
    "Identifier-scheme",
    "ModificationDate",
    "NotificationFormat",
    "NotificationType",
    "ProfileDescription",
    "Role",
    "StatusURL",
    "StatusView",
    "SuppressDublinCoreLocalID",
    "Type",
];

/// What the files do not say.
#[derive(Clone, Debug, Default)]
pub struct ImportSettings {
    /// The store of the objects of a storage service, by the service's URL.
    pub stores: BTreeMap<String, StoreName>,
    /// The store where the service is not among these.
    pub store: Option<StoreName>,
    /// Where a file names no EZID: the beginning of the identifiers that are made here.
    pub shoulder: Option<Shoulder>,
}

/// A profile that was converted.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The collection, by which its file is called.
    pub name: SpaceName,
    /// The content of the file.
    pub yaml: String,
    /// What is to be looked at, a line each.
    pub notes: Vec<String>,
    /// The URL by which its store was found among [`ImportSettings::stores`].
    pub service: Option<String>,
}

/// Converts a file. All that is wrong with it is reported.
///
/// # Errors
/// Each key that is unknown, is there twice, is missing, or has a value that cannot be converted.
pub fn import(path: &Path, bytes: &[u8], settings: &ImportSettings) -> Result<Imported, Vec<ProfileError>> {
    // As Java reads them, where they are not UTF-8.
    let text = String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| bytes.iter().copied().map(char::from).collect());
    let read = properties::read(&text).map_err(|(line, why)| vec![ProfileError::new(path, line, why)])?;
    let (keys, service) = Default::default();
    let mut import = Import { path, keys, errors: Vec::new(), notes: Vec::new(), service };
    import.sort(read);
    let yaml = import.convert(settings);
    let Import { mut errors, notes, service, .. } = import;
    errors.sort_by_key(|error| error.line);
    match yaml {
        Some((name, yaml)) if errors.is_empty() => {
            // What is written is what our own reader accepts.
            Profile::parse(path, yaml.as_bytes(), |_| Ok(Vec::new())).map_err(|error| {
                let why = format!("the result is not a valid profile: {}", error.why);
                vec![ProfileError::new(path, 0, why)]
            })?;
            Ok(Imported { name, yaml, notes, service })
        }
        Some(_) | None => Err(errors),
    }
}

struct Import<'a> {
    path: &'a Path,
    /// The keys that correspond to one of ours, by their names and numbers.
    keys: BTreeMap<(&'static str, u32), Property>,
    errors: Vec<ProfileError>,
    notes: Vec<String>,
    service: Option<String>,
}

/// The keys that correspond to one of ours, and whether they have numbers.
const KEYS: [(&str, bool); 10] = [
    ("ProfileID", false),
    ("Collection", true),
    ("Owner", false),
    ("StorageService", false),
    ("StorageNode", false),
    ("ObjectMinterURL", false),
    ("CallbackURL", false),
    ("Notification", true),
    ("NotificationSuppression", false),
    ("Priority", false),
];

impl Import<'_> {
    fn refuse(&mut self, line: u64, why: impl Into<String>) {
        self.errors.push(ProfileError::new(self.path, line, why));
    }

    fn note(&mut self, what: impl Display) {
        self.notes.push(format!("{}: {what}", self.path.display()));
    }

    /// Finds out which keys correspond to which.
    fn sort(&mut self, read: Vec<Property>) {
        let mut without: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for property in read {
            let (name, number) = match property.key.split_once('.') {
                Some((name, digits)) => (name, digits.parse().ok()),
                None => (property.key.as_str(), None),
            };
            let is_numbered = property.key.contains('.');
            let known = KEYS.into_iter().find(|(key, numbered)| *key == name && *numbered == is_numbered);
            let line = property.line;
            if let Some((key, _)) = known.filter(|_| number.is_some() == is_numbered) {
                if property.value.is_empty() {
                    continue;
                }
                if let Some(other) = self.keys.insert((key, number.unwrap_or(0)), property) {
                    self.refuse(line, format!("{} is also in line {}", other.key, other.line));
                }
            } else if WITHOUT_CORRESPONDENCE.contains(&name) {
                without.entry(name.to_owned()).or_default().push(line.to_string());
            } else {
                self.refuse(line, format!("the key {:?} is unknown", shown(&property.key)));
            }
        }
        for (name, lines) in without {
            let word = if lines.len() == 1 { "line" } else { "lines" };
            self.note(format_args!("{word} {}: {name} has no equivalent", lines.join(", ")));
        }
    }

    /// The values of a key, by number.
    fn all(&self, key: &str) -> Vec<Property> {
        self.keys.iter().filter(|((name, _), _)| *name == key).map(|(_, property)| property.clone()).collect()
    }

    /// The value of a key with the line that it is in.
    fn value<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        let Property { line, value, .. } = self.all(key).pop()?;
        value.parse().map_err(|error: T::Err| self.refuse(line, format!("{key}: {error}"))).ok()
    }

    fn needed<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        if self.all(key).is_empty() {
            self.refuse(0, format!("it has no {key}"));
        }
        self.value(key)
    }

    fn convert(&mut self, settings: &ImportSettings) -> Option<(SpaceName, String)> {
        let name: Option<SpaceName> = self.needed("ProfileID");
        let owner: Option<Ark> = self.needed("Owner");
        let collections = self.collections();
        let store = self.store(settings);
        let node: Option<u32> = self.value("StorageNode");
        let minter = self.minter(settings);
        let addresses = self.addresses();
        let callback: Option<ContentUrl> = self.value("CallbackURL");
        if let Some(why) = callback.as_ref().and_then(|url| check_service(url).err()) {
            let line = self.all("CallbackURL").first().map_or(0, |callback| callback.line);
            self.refuse(line, format!("CallbackURL: {why}"));
        }
        let priority: Option<u8> = self.value("Priority");
        if let Some(line) = priority.filter(|priority| *priority > LAST_PRIORITY).and(self.all("Priority").first()) {
            let line = line.line;
            self.refuse(line, format!("Priority: use a number from 0 (most urgent) to {LAST_PRIORITY}"));
        }
        let suppress: Option<bool> = self.value("NotificationSuppression");
        self.note("add hosts, from which content may be fetched: without it, all public hosts are allowed");

        let (name, owner, store) = (name?, owner?, store?);
        let mut yaml = String::new();
        let mut write = |key: &str, value: &str| {
            let _ = writeln!(yaml, "{key}: {value}");
        };
        write("name", &quoted(name.as_str()));
        if !collections.is_empty() {
            write("collections", &list(collections.iter().map(Ark::as_str)));
        }
        write("owner", &quoted(owner.as_str()));
        write("store", &quoted(&store.to_string()));
        if let Some(node) = node {
            write("node", &node.to_string());
        }
        write("minter", &minter?);
        if !addresses.is_empty() {
            write("notification", &format!("{{addresses: {}}}", list(addresses.iter().map(String::as_str))));
        }
        if let Some(callback) = callback {
            write("callback", &quoted(callback.reveal().as_str()));
        }
        if let Some(priority) = priority {
            write("priority", &priority.to_string());
        }
        if suppress == Some(true) {
            write("report", "{mail: true, suppress: true}");
        }
        Some((name, yaml))
    }

    fn collections(&mut self) -> Vec<Ark> {
        let mut arks = Vec::new();
        for Property { line, key, value } in self.all("Collection") {
            match value.parse() {
                Ok(ark) => arks.push(ark),
                Err(error) => self.refuse(line, format!("{key}: {error}")),
            }
        }
        arks
    }

    fn addresses(&mut self) -> Vec<String> {
        let mut addresses = Vec::new();
        for Property { line, key, value } in self.all("Notification") {
            match address::check(&value) {
                Ok(address) => addresses.push(address.to_string()),
                Err(error) => self.refuse(line, format!("{key}: {error}")),
            }
        }
        addresses
    }

    fn store(&mut self, settings: &ImportSettings) -> Option<StoreName> {
        let service = self.all("StorageService").pop();
        let url = service.as_ref().map_or("", |service| service.value.trim_end_matches('/'));
        let named = settings.stores.iter().find(|(known, _)| known.trim_end_matches('/') == url);
        self.service = named.map(|(known, _)| known.clone());
        let store = named.map(|(_, name)| name).or(settings.store.as_ref());
        if store.is_none() {
            let why = match &service {
                Some(service) => {
                    let url = shown(&service.value);
                    format!("StorageService: set the store that replaces {url}: --store {url}=NAME")
                }
                None => "it has no StorageService; set the store for its objects: --store NAME".to_owned(),
            };
            self.refuse(service.map_or(0, |service| service.line), why);
        }
        store.cloned()
    }

    /// The value of `minter`: EZID's by its URL, `https://HOST/shoulder/ark:/NAAN/SHOULDER`.
    fn minter(&mut self, settings: &ImportSettings) -> Option<String> {
        let url = self.all("ObjectMinterURL").pop();
        let ezid = url.as_ref().and_then(|url| url.value.split_once("/shoulder/"));
        let line = url.as_ref().map_or(0, |url| url.line);
        if let Some((service, shoulder)) = ezid {
            let url = service.parse::<ContentUrl>().map_err(|error| error.to_string());
            let parsed = url.and_then(|url| {
                check_service(&url)?;
                let shoulder = shoulder.parse::<Shoulder>().map_err(|error| error.to_string())?;
                Ok((url, shoulder))
            });
            return match parsed {
                Ok((url, shoulder)) => {
                    // Not as it stands in the file, where it may have what a URL's reader passes over.
                    let url = url.reveal().as_str();
                    self.note(format_args!(
                        "line {line}: add credentials_file, a file with the login for {}: {{HOST: {{username: .., \
                         password: ..}}}}",
                        shown(url)
                    ));
                    let (shoulder, url) = (quoted(&shoulder.to_string()), quoted(url));
                    Some(format!("{{kind: ezid, shoulder: {shoulder}, url: {url}}}"))
                }
                Err(why) => {
                    self.refuse(line, format!("ObjectMinterURL: {why}"));
                    None
                }
            };
        }
        let Some(shoulder) = &settings.shoulder else {
            let what =
                if url.is_some() { "ObjectMinterURL names no shoulder of EZID" } else { "it has no ObjectMinterURL" };
            self.refuse(
                line,
                format!("{what}; set the shoulder of the identifiers that are minted here: --shoulder ARK"),
            );
            return None;
        };
        if url.is_some() {
            self.note(format_args!("line {line}: identifiers are minted here instead of by ObjectMinterURL"));
        }
        Some(format!("{{kind: noid, shoulder: {}}}", quoted(&shoulder.to_string())))
    }
}

fn list<'a>(values: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", values.map(quoted).collect::<Vec<_>>().join(", "))
}

/// A text as YAML has it, in double quotes, which are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
