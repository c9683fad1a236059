//! `queuekeeper profiles`: the files that say what holds for the deposits of collections.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use queuekeeper_ingest::ark::Shoulder;
use queuekeeper_ingest::profile::{ImportSettings, Imported, Profiles, import};
use queuekeeper_store::StoreName;
use queuekeeper_zookeeper::files;
use tempfile::NamedTempFile;

use super::exit::{CommandError, FAILED, REFUSED};
use super::{UsageError, output};
use crate::words::counted;

/// The largest file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Convert profiles
#[derive(Clone, Debug, Args)]
pub(super) struct ProfilesArgs {
    #[command(subcommand)]
    command: ProfilesCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum ProfilesCommand {
    Import(ImportArgs),
}

/// Convert profiles of Merritt's ingest service, which are property files, to YAML files for --profiles
///
/// All are converted, or nothing is written. Properties without an equivalent, and values that have to be added, are
/// printed to standard error.
#[derive(Clone, Debug, Args)]
struct ImportArgs {
    /// The directory with Merritt's profiles, one file for each collection
    #[arg(value_name = "DIR")]
    from: PathBuf,

    /// The directory to write the collections' profiles to, one YAML file for each
    #[arg(long = "profiles", value_name = "DIR")]
    to: PathBuf,

    /// The store for the objects; as URL=NAME, for those whose storage service has this URL; may be repeated
    #[arg(long = "store", value_name = "[URL=]NAME", value_parser = store)]
    stores: Vec<(Option<String>, StoreName)>,

    /// The shoulder of the ARKs that queuekeeper mints for collections whose profiles name no EZID
    #[arg(long, value_name = "ARK")]
    shoulder: Option<Shoulder>,

    /// Replace existing files with other contents
    #[arg(long)]
    force: bool,
}

fn store(text: &str) -> Result<(Option<String>, StoreName), String> {
    let (url, name) = text.rsplit_once('=').map_or((None, text), |(url, name)| (Some(url.to_owned()), name));
    name.parse::<StoreName>().map(|name| (url, name)).map_err(|error| error.to_string())
}

impl ProfilesArgs {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// When it is not done.
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            ProfilesCommand::Import(args) => args.run(),
        }
    }
}

impl ImportArgs {
    fn run(self) -> anyhow::Result<()> {
        let mut settings = ImportSettings { shoulder: self.shoulder, ..ImportSettings::default() };
        for (url, name) in self.stores {
            match url {
                Some(url) => drop(settings.stores.insert(url, name)),
                None => settings.store = Some(name),
            }
        }
        let converted = convert(&self.from, &settings)?;
        let used: BTreeSet<_> = converted.iter().filter_map(|(_, profile)| profile.service.as_deref()).collect();
        if let Some((url, name)) = settings.stores.iter().find(|(url, _)| !used.contains(url.as_str())) {
            let why = format!("{url}={name}: no profile in {} has this StorageService", self.from.display());
            return Err(UsageError::flag("--store", why).into());
        }
        let mut planned = Vec::new();
        for (source, profile) in converted {
            let path = self.to.join(format!("{}.yaml", profile.name));
            let state = State::of(&path, &profile.yaml)?;
            if state == State::Different && !self.force {
                let why = format!("{} exists and has other contents; --force replaces it", path.display());
                return Err(CommandError::new(REFUSED, why).into());
            }
            let nothing = || format!("cannot write {}; nothing was written", path.display());
            let file =
                if state == State::Same { None } else { Some(prepare(&path, &profile.yaml).with_context(nothing)?) };
            planned.push((source, path, state, file));
        }
        // All of them are on the disk: what is left is to give them their names.
        for (at, (source, path, state, file)) in planned.into_iter().enumerate() {
            if let Some(file) = file {
                let named = if self.force { file.persist(&path) } else { file.persist_noclobber(&path) };
                let rest = if at == 0 { "nothing was written" } else { "only the files above were written" };
                named.with_context(|| format!("cannot write {}; {rest}", path.display()))?;
            }
            output::write(&format!("{}: {} {}\n", source.display(), path.display(), state.done()))?;
        }
        let read = Profiles::read(&self.to)?;
        if read.errors().is_empty() {
            return Ok(());
        }
        for error in read.errors() {
            output::note(&error.to_string());
        }
        let why = format!("not all profiles in {} are valid", self.to.display());
        Err(CommandError::new(FAILED, why).into())
    }
}

/// Whether the file of a profile is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Missing,
    Same,
    Different,
}

impl State {
    fn of(path: &Path, yaml: &str) -> anyhow::Result<Self> {
        match std::fs::read(path) {
            Ok(found) if found == yaml.as_bytes() => Ok(Self::Same),
            Ok(_) => Ok(Self::Different),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::Missing),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// What was done with it.
    fn done(self) -> &'static str {
        match self {
            Self::Missing => "was written",
            Self::Same => "is unchanged",
            Self::Different => "was replaced",
        }
    }
}

/// Converts all profiles of a directory, by the names of their collections; or none.
fn convert(directory: &Path, settings: &ImportSettings) -> anyhow::Result<Vec<(PathBuf, Imported)>> {
    let unreadable = || format!("cannot read the profiles in {}", directory.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // One may be a link to a file that has another version's name.
        if !is_hidden && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let (mut converted, mut by_name, mut wrong) = (Vec::new(), BTreeMap::new(), 0_u64);
    let total = paths.len() as u64;
    for path in paths {
        let bytes = files::read(&path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
        match import(&path, &bytes, settings) {
            Ok(profile) => match by_name.insert(profile.name.clone(), path.clone()) {
                None => converted.push((path, profile)),
                Some(other) => {
                    wrong += 1;
                    let name = &profile.name;
                    output::note(&format!("{}: {name} is also the ProfileID of {}", path.display(), other.display()));
                }
            },
            Err(errors) => {
                wrong += 1;
                for error in errors {
                    output::note(&error.to_string());
                }
            }
        }
    }
    if wrong > 0 || converted.is_empty() {
        let why = match total {
            0 => format!("there are no files in {}", directory.display()),
            total => format!("{wrong} of {} cannot be converted; nothing was written", counted(total, "file", "files")),
        };
        return Err(CommandError::new(FAILED, why).into());
    }
    for note in converted.iter().flat_map(|(_, profile)| &profile.notes) {
        output::note(note);
    }
    Ok(converted)
}

/// Writes what becomes a file of that path, readable for daemons that run as another user: no secret is in it. It is
/// removed again unless it is given its name.
fn prepare(path: &Path, yaml: &str) -> std::io::Result<NamedTempFile> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new()
        .prefix(".import-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    new.write_all(yaml.as_bytes())?;
    new.as_file().sync_all()?;
    Ok(new)
}
