//! The keys of a profile's file, and their checks.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::file::yaml;
use super::{Credentials, EzidOptions, LAST_PRIORITY, Minter, Profile, ProfileError};
use crate::name::{is_visible, shown};
use crate::url::ContentUrl;
use queuekeeper_mail::address;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    name: Spanned<String>,
    #[serde(default)]
    collections: Vec<Spanned<String>>,
    owner: Spanned<String>,
    store: Spanned<String>,
    account: Option<Spanned<String>>,
    space: Option<Spanned<String>>,
    node: Option<u32>,
    minter: MinterKeys,
    #[serde(default)]
    notification: NotificationKeys,
    callback: Option<Spanned<String>>,
    priority: Option<Spanned<u64>>,
    hosts: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    internal_hosts: Vec<Spanned<String>>,
    credentials_file: Option<Spanned<String>>,
    #[serde(default)]
    report: ReportKeys,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MinterKeys {
    kind: Spanned<String>,
    shoulder: Spanned<String>,
    url: Option<Spanned<String>>,
    target: Option<Spanned<String>>,
    owner: Option<Spanned<String>>,
    #[serde(default)]
    mints: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotificationKeys {
    #[serde(default)]
    addresses: Vec<Spanned<String>>,
    #[serde(default)]
    queued: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReportKeys {
    #[serde(default = "yes")]
    mail: bool,
    #[serde(default)]
    suppress: bool,
}

fn yes() -> bool {
    true
}

impl Default for ReportKeys {
    fn default() -> Self {
        Self { mail: true, suppress: false }
    }
}

/// Parses the value of a key.
fn value<T: FromStr<Err: Display>>(path: &Path, key: &str, text: &Spanned<String>) -> Result<T, ProfileError> {
    let line = text.referenced.line();
    text.value.parse().map_err(|error: T::Err| ProfileError::new(path, line, format!("{key}: {error}")))
}

fn values<T: FromStr<Err: Display>>(path: &Path, key: &str, all: &[Spanned<String>]) -> Result<Vec<T>, ProfileError> {
    all.iter().map(|text| value(path, key, text)).collect()
}

/// A URL of a service: no query and no local file.
fn service(path: &Path, key: &str, text: &Spanned<String>) -> Result<ContentUrl, ProfileError> {
    let url: ContentUrl = value(path, key, text)?;
    check_service(&url).map_err(|why| ProfileError::new(path, text.referenced.line(), format!("{key}: {why}")))?;
    Ok(url)
}

/// Whether a URL may be that of a service.
pub(super) fn check_service(url: &ContentUrl) -> Result<(), &'static str> {
    if url.is_file() || url.has_query() { Err("use an https or http URL without a query") } else { Ok(()) }
}

impl Profile {
    /// Checks the content of a file; `read` gives that of another one by its path.
    pub(crate) fn parse(
        path: &Path,
        bytes: &[u8],
        mut read: impl FnMut(&Path) -> Result<Vec<u8>, ProfileError>,
    ) -> Result<Self, ProfileError> {
        let keys: Keys = yaml(path, bytes)?;
        let line = |text: &Spanned<String>| text.referenced.line();
        let name = value(path, "name", &keys.name)?;
        let priority = keys.priority.map(|priority| {
            let fits = u8::try_from(priority.value).ok().filter(|number| *number <= LAST_PRIORITY);
            let why = "priority: use a number from 0 (most urgent) to 99";
            fits.ok_or_else(|| ProfileError::new(path, priority.referenced.line(), why))
        });
        for address in &keys.notification.addresses {
            address::check(&address.value)
                .map_err(|error| ProfileError::new(path, line(address), format!("notification: {error}")))?;
        }
        let credentials = match &keys.credentials_file {
            None => Credentials::default(),
            Some(file) if file.value.is_empty() => {
                return Err(ProfileError::new(path, line(file), "credentials_file is empty"));
            }
            Some(file) if !is_visible(&file.value) => {
                let why = format!("credentials_file {:?} has a character that is not visible", shown(&file.value));
                return Err(ProfileError::new(path, line(file), why));
            }
            Some(file) => {
                let beside = path.parent().unwrap_or(Path::new("")).join(&file.value);
                Credentials::parse(&beside, &read(&beside)?)?
            }
        };
        Ok(Self {
            collections: values(path, "collections", &keys.collections)?,
            owner: value(path, "owner", &keys.owner)?,
            store: value(path, "store", &keys.store)?,
            account: match &keys.account {
                // It has the form of a space's name, too.
                Some(account) => value::<queuekeeper_store::SpaceName>(path, "account", account)?.to_string(),
                None => keys.name.value.clone(),
            },
            space: value(path, "space", keys.space.as_ref().unwrap_or(&keys.name))?,
            node: keys.node.unwrap_or(1),
            minter: minter(path, &keys.minter)?,
            addresses: keys.notification.addresses.into_iter().map(|address| address.value).collect(),
            is_mailed_when_queued: keys.notification.queued,
            callback: keys.callback.as_ref().map(|url| service(path, "callback", url)).transpose()?,
            fixed_priority: priority.transpose()?,
            hosts: keys.hosts.as_deref().map(|hosts| values(path, "hosts", hosts)).transpose()?,
            internal_hosts: values(path, "internal_hosts", &keys.internal_hosts)?,
            credentials,
            is_report_mailed: keys.report.mail,
            is_success_suppressed: keys.report.suppress,
            name,
        })
    }
}

fn minter(path: &Path, keys: &MinterKeys) -> Result<Minter, ProfileError> {
    let shoulder = value(path, "minter: shoulder", &keys.shoulder)?;
    let refuse = |why: &str| Err(ProfileError::new(path, keys.kind.referenced.line(), format!("minter: {why}")));
    let is_plain = keys.target.is_none() && keys.owner.is_none() && !keys.mints;
    match (keys.kind.value.as_str(), &keys.url) {
        ("noid", None) if is_plain => Ok(Minter::Noid(shoulder)),
        ("noid", _) => refuse("noid has no url, target, owner and mints"),
        ("ezid", Some(url)) => {
            let wrong = |owner: &Spanned<String>| {
                let why = "minter: owner is empty, or has a character that is not visible";
                ProfileError::new(path, owner.referenced.line(), why)
            };
            let is_name = |owner: &Spanned<String>| !owner.value.is_empty() && is_visible(&owner.value);
            if let Some(owner) = keys.owner.as_ref().filter(|owner| !is_name(owner)) {
                return Err(wrong(owner));
            }
            let options = EzidOptions {
                target: keys.target.as_ref().map(|url| service(path, "minter: target", url)).transpose()?,
                owner: keys.owner.as_ref().map(|owner| owner.value.clone()),
                mints: keys.mints,
            };
            Ok(Minter::Ezid { shoulder, url: service(path, "minter: url", url)?, options: options.into() })
        }
        ("ezid", None) => refuse("ezid needs the url of the service"),
        _ => refuse("kind is neither noid nor ezid"),
    }
}
