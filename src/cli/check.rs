//! `queuekeeper check-web-config` and `check-config`, as `promtool check` for Prometheus.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::probe::Probed;
use queuekeeper_ingest::profile::Profiles;
use queuekeeper_store::store::Capabilities;
use queuekeeper_store::{StoreFamilies, StoreName};

use super::exit::{CommandError, FAILED};
use super::{UsageError, output};
use crate::config::{CatalogueUrl, ConfigFile, FileError, Validity, WebFile};
use crate::words::{counted, moment};

/// Check files for --web.config.file, and the certificates and keys that they refer to
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl CheckArgs {
    /// Reports for each file whether it is valid, and whether clients refuse its certificate, one line each.
    ///
    /// # Errors
    /// When a file is not valid ([`UsageError`]).
    pub fn run(&self) -> anyhow::Result<()> {
        let now = Timestamp::now();
        check(&self.files, |path| {
            let validity = WebFile::read(path)?.certificate_validity();
            let refused = validity.and_then(|validity| Some((validity, validity.refusal(now)?)));
            Ok(refused.map_or("is valid".to_owned(), |(Validity { not_before, not_after }, why)| {
                format!(
                    "is valid, but its certificate {why}, so that clients refuse it \
                     (valid from {} until {}); replace it with a valid one",
                    moment(not_before),
                    moment(not_after)
                )
            }))
        })
    }
}

/// Check files for --config.file, and the tokens file that they refer to, and the collections' profiles
#[derive(Clone, Debug, Args)]
pub struct CheckConfigArgs {
    /// The files
    #[arg(required_unless_present = "profiles", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The directory of the collections' profiles: check each, and that the stores that they name are in one of the
    /// files
    #[arg(long = "profiles", value_name = "DIR")]
    profiles: Option<PathBuf>,

    /// The web configuration, to check that the users are the same
    #[arg(long = "web.config.file", value_name = "FILE")]
    web: Option<PathBuf>,

    /// Connect to each store and the catalogue, write and delete a probe in each store, and show what it can do. The
    /// catalogue is not changed: writes are rolled back, and a file is checked for damage
    #[arg(long)]
    probe: bool,
}

impl CheckConfigArgs {
    /// Reports for each file whether it is valid and which roles it has, and for each profile whether it is, one line
    /// each.
    ///
    /// # Errors
    /// When a file is not valid ([`UsageError`]), or a store cannot be used.
    pub async fn run(&self) -> anyhow::Result<()> {
        let files = self.check_files();
        let profiles = self.profiles.as_deref().map_or(Ok(()), |directory| self.check_profiles(directory));
        files.and(profiles)?;
        let mut failed = 0_u64;
        if self.probe {
            super::log::begin_plain();
            for path in &self.files {
                failed += probe(path).await?;
            }
        }
        if failed > 0 {
            let places = counted(failed, "store or catalogue", "stores and catalogues");
            return Err(CommandError::new(FAILED, format!("{places} cannot be used")).into());
        }
        Ok(())
    }

    fn check_files(&self) -> anyhow::Result<()> {
        let web = self.web.as_deref().map(WebFile::read).transpose();
        let web = web.map_err(|error| UsageError::flag("--web.config.file", error))?;
        let now = Timestamp::now();
        check(&self.files, |path| {
            let file = ConfigFile::read(path)?;
            let compared =
                if web.is_some() || file.users() == 0 { "" } else { " (set --web.config.file to compare them)" };
            if web.is_some() {
                file.check_users(web.as_ref())?;
            }
            let expired: Vec<_> = file.tokens().expired(now).collect();
            let expired =
                if expired.is_empty() { String::new() } else { format!(" (expired: {})", expired.join(", ")) };
            let off = if file.allows_actions() { "" } else { "; it allows no actions" };
            let (users, tokens) = (file.users(), file.tokens().len());
            let stores = match (file.stores().names().count(), file.stores().catalogue()) {
                (0, None) => String::new(),
                (stores, catalogue) => {
                    format!("; stores: {stores}, catalogue: {}", if catalogue.is_some() { "yes" } else { "no" })
                }
            };
            let mill = limits_of(&file) + &mail_of(&file);
            Ok(format!("is valid: roles for users: {users}{compared}, tokens: {tokens}{expired}{off}{stores}{mill}"))
        })
    }
}

impl CheckConfigArgs {
    fn check_profiles(&self, directory: &Path) -> anyhow::Result<()> {
        let profiles = Profiles::read(directory).map_err(|error| UsageError::flag("--profiles", error))?;
        let mut wrong: Vec<String> = profiles.errors().iter().map(ToString::to_string).collect();
        // What is wrong with a file has been reported.
        let files: Vec<ConfigFile> = self.files.iter().filter_map(|path| ConfigFile::read(path).ok()).collect();
        let stores: Vec<&StoreName> = files.iter().flat_map(|file| file.stores().names()).collect();
        let mut valid = 0_u64;
        for profile in profiles.iter() {
            if !files.is_empty() && !stores.contains(&&profile.store) {
                wrong.push(format!("profile {}: store {} is in none of the files", profile.name, profile.store));
                continue;
            }
            valid += 1;
        }
        for why in &wrong {
            output::note(why);
        }
        let at = directory.display();
        output::write(&format!("{at}: {}\n", counted(valid, "valid profile", "valid profiles")))?;
        match wrong.len() as u64 {
            0 => Ok(()),
            count => Err(UsageError(format!("{} in {at}", counted(count, "problem", "problems"))).into()),
        }
    }
}

/// What the accounts of the mill are allowed in their stores.
fn limits_of(file: &ConfigFile) -> String {
    let accounts = file.mill().map(|mill| mill.accounts.values()).into_iter().flatten();
    let limits = accounts.flat_map(|account| {
        account.limits.iter().map(|(store, limits)| format!("; {} in {store}: {limits}", account.name))
    });
    limits.collect()
}

/// Whom the reports of the accounts go to that are no success.
fn mail_of(file: &ConfigFile) -> String {
    let accounts = file.mill().map(|mill| mill.accounts.values()).into_iter().flatten();
    let named = accounts.filter(|account| !account.mail.is_empty());
    let named: Vec<_> = named.map(|account| format!("{} to {}", account.name, account.mail.join(", "))).collect();
    if named.is_empty() {
        return String::new();
    }
    format!("; mail on reports: {}, sent by mill run with --mail.server or --mail.directory", named.join("; "))
}

/// Shows of each store what it can do; the answer is how many cannot be used.
async fn probe(path: &Path) -> anyhow::Result<u64> {
    let file = ConfigFile::read(path)?;
    let mut failed = 0;
    for name in file.stores().names() {
        let Some(opened) = file.stores().open(name, &StoreFamilies::default()).await else { continue };
        let probed = match opened {
            Ok(store) => super::store::probe(&*store).await,
            Err(error) => Err(error),
        };
        match probed {
            Ok(capabilities) => output::write(&format!("store {name}: {}\n", in_words(&capabilities)))?,
            Err(error) => {
                failed += 1;
                output::note(&error.to_string());
            }
        }
    }
    if let Some(url) = file.stores().catalogue() {
        match probed(url).await {
            Ok(said) => output::write(&format!("{said}\n"))?,
            Err(error) => {
                failed += 1;
                output::note(&error.to_string());
            }
        }
    }
    Ok(failed)
}

/// Connects to a catalogue, and neither makes nor migrates one.
async fn probed(url: &CatalogueUrl) -> Result<String, queuekeeper_catalogue::Error> {
    let Probed { place, schema, newest } = Catalogue::probe(url.expose()).await?;
    Ok(match schema {
        0 => format!("catalogue {place}: there is none yet; `catalogue migrate`, or the first change, creates it"),
        _ if schema == newest => format!("catalogue {place}: it can be used"),
        _ => format!(
            "catalogue {place}: it can be used; schema {schema}; `catalogue migrate`, or the first command or daemon that opens it, migrates it to {newest}, after which earlier programs refuse it"
        ),
    })
}

fn in_words(can: &Capabilities) -> String {
    let checksums: Vec<_> = can.checksums.iter().map(|algorithm| algorithm.as_str()).collect();
    let kept = if checksums.is_empty() { "no checksums".to_owned() } else { checksums.join(", ") };
    let conditions = match (can.if_absent, can.if_match) {
        (true, true) => "holds conditions",
        (true, false) => "supports conditional writes only for absent items",
        (false, true) => "supports conditional writes only for unchanged items",
        (false, false) => "does not support conditional writes, so concurrent writers overwrite each other",
    };
    let mut words = vec![format!("keeps {kept}"), conditions.to_owned()];
    let refused: Vec<_> = can.refused_keys.iter().map(ToString::to_string).collect();
    let more = [
        (
            !refused.is_empty(),
            format!("does not support keys with {}: it confuses them with others", refused.join(", or ")),
        ),
        (can.versions, "keeps earlier versions".to_owned()),
        (can.object_lock, "can lock items against deletion".to_owned()),
        (can.minimum_days > 0, format!("charges for a minimum of {} days", can.minimum_days)),
        (can.cold_reads, "charges for reads, or takes hours to read".to_owned()),
    ];
    words.extend(more.into_iter().filter(|(is, _)| *is).map(|(_, words)| words));
    words.join("; ")
}

fn check<T: Display>(files: &[PathBuf], read: impl Fn(&PathBuf) -> Result<T, FileError>) -> anyhow::Result<()> {
    let mut wrong = 0;
    for path in files {
        match read(path) {
            Ok(result) => output::write(&format!("{} {result}\n", path.display()))?,
            Err(error) => {
                wrong += 1;
                output::note(&format!("{} is not valid: {error}", path.display()));
            }
        }
    }
    if wrong > 0 {
        let what = if wrong == 1 { "file is" } else { "files are" };
        return Err(UsageError(format!("{wrong} of {} {what} not valid", files.len())).into());
    }
    Ok(())
}
