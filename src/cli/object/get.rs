//! `queuekeeper object get`: reads the files of a version.

use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_ingest::file_root::{self, FileRoot};
use queuekeeper_ingest::name;
use queuekeeper_store::Algorithm;
use queuekeeper_store::ocfl::{FileEntry, OcflError, Snapshot};
use queuekeeper_store::store::Content;
use rustix::io::Errno;
use serde::Serialize;

use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, IN_PART, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, Screen, Spinner, without_csv};
use crate::cli::repository::{ObjectName, Repository, RepositoryArgs};
use crate::words::{counted, size};

/// Read the files of a version into a directory, or one of them to standard output
///
/// Each file appears when all of it has been read and has the digest in the object's inventory. Existing files with the
/// same content are kept, so the same command resumes after an interruption; other files are not overwritten, and
/// symbolic links are not followed. An interrupted command leaves a file *.part, which the same command replaces. Exits
/// with 3 if a file or a link is in the way, and with 6 if some files could not be read.
///
/// Content is written to standard output as it is read: if the exit code is not 0, discard it.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct GetArgs {
    #[command(flatten)]
    name: ObjectName,

    /// The directory, which is created if it does not exist; - for standard output, with --file
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// The number of the version [default: the newest one]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,

    /// Only this file, by its path in the object, such as producer/page-1.tif
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What was read.
#[derive(Debug, Serialize)]
struct Report {
    ark: String,
    version: u32,
    directory: String,
    /// How many files were written, and their bytes.
    files: u64,
    bytes: u64,
    /// How many were there already, with the same content.
    kept: u64,
    /// What could not be read, a sentence for each file.
    errors: Vec<String>,
}

impl GetArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let is_stdout = self.to.as_os_str() == "-";
        if is_stdout && self.file.is_none() {
            return Err(UsageError::flag(
                "--to",
                "only one file can be written to standard output; name it with --file",
            )
            .into());
        }
        if is_stdout && std::io::stdout().is_terminal() {
            return Err(UsageError::flag("--to", "the content is not written to a terminal; redirect it").into());
        }
        let repository = self.repository.open().await?;
        let opened = self.open(&repository).await;
        repository.catalogue.close().await;
        let (ark, snapshot) = opened?;
        let head = snapshot.inventory().head();
        let version = self.version.unwrap_or(head);
        if version > head {
            return Err(CommandError::new(
                NOT_FOUND,
                format!("{ark} has no version {version}; its newest version is {head}"),
            )
            .into());
        }
        if let (true, Some(path)) = (is_stdout, &self.file) {
            return to_stdout(&snapshot, version, path).await;
        }
        let report = self.to_directory(&ark, &snapshot, version).await?;
        self.output.show(&report, |screen: &mut Screen| {
            screen.say(&format!("{}, version {}", report.ark, report.version));
            screen.fact("written", &format!("{}, {}", counted(report.files, "file", "files"), size(report.bytes)));
            if report.kept > 0 {
                screen.fact("kept", &format!("{} with the same content", counted(report.kept, "file", "files")));
            }
            screen.fact("directory", &report.directory);
            for error in &report.errors {
                screen.entry(error);
            }
        })?;
        if report.errors.is_empty() {
            return Ok(());
        }
        let count = counted(report.errors.len() as u64, "file", "files");
        Err(CommandError::new(IN_PART, format!("{ark}: {count} could not be read")).into())
    }

    async fn open(&self, repository: &Repository) -> anyhow::Result<(String, Snapshot)> {
        let recorded = repository.find(&self.name).await?;
        let located = repository.locate(&recorded.ark, &recorded.collection).await?;
        let snapshot = located.object.read().await.map_err(|error| failed(&error))?;
        let snapshot = snapshot.ok_or_else(|| CommandError::new(FAILED, located.nothing_there(&recorded.ark)))?;
        Ok((recorded.ark, snapshot))
    }

    async fn to_directory(&self, ark: &str, snapshot: &Snapshot, version: u32) -> anyhow::Result<Report> {
        let inventory = snapshot.inventory();
        fs::create_dir_all(&self.to).with_context(|| format!("cannot create {}", self.to.display()))?;
        let place = FileRoot::open(&self.to, &self.to).with_context(|| format!("cannot open {}", self.to.display()))?;
        let mut report = Report {
            ark: ark.to_owned(),
            version,
            directory: self.to.display().to_string(),
            files: 0,
            bytes: 0,
            kept: 0,
            errors: Vec::new(),
        };
        let _spinner = Spinner::start("reading files");
        match &self.file {
            Some(path) => {
                let file = inventory.file(version, path)?.ok_or_else(|| no_file(version, path))?;
                self.get(snapshot, version, &file, &place, &mut report).await?;
            }
            None => {
                for file in inventory.files(version) {
                    self.get(snapshot, version, &file?, &place, &mut report).await?;
                }
            }
        }
        Ok(report)
    }

    /// Reads a file; what is wrong with its content is reported, what is wrong with the directory ends the command.
    async fn get(
        &self,
        snapshot: &Snapshot,
        version: u32,
        file: &FileEntry,
        place: &FileRoot,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        // The paths of an object come from its writer.
        if let Err(error) = name::check(&file.path) {
            report.errors.push(format!("{:?}: {error}", file.path));
            return Ok(());
        }
        let target = self.to.join(&file.path);
        let cannot = || format!("cannot write {}", target.display());
        if let Some(there) = there(place, &file.path, &target)? {
            let (_, digests) = file_root::digests(&there, [Algorithm::Sha512]).with_context(cannot)?;
            if digests.get(Algorithm::Sha512) == Some(&file.digest) {
                report.kept += 1;
                return Ok(());
            }
            return Err(in_the_way(&target, "exists and has other content").into());
        }
        let mut chunks = match snapshot.open(version, &file.path).await {
            Ok(Content { chunks, .. }) => chunks,
            Err(error) => {
                report.errors.push(format!("{:?}: {error}", file.path));
                return Ok(());
            }
        };
        let part = place.begin(&file.path).with_context(cannot)?;
        let mut bytes = 0;
        loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => {
                    part.file().write_all(&chunk).with_context(cannot)?;
                    bytes += chunk.len() as u64;
                }
                Ok(None) => break,
                Err(error) => {
                    place.discard(&file.path).with_context(cannot)?;
                    report.errors.push(format!("{:?}: {error}", file.path));
                    return Ok(());
                }
            }
        }
        // Another program may have made a file of that name meanwhile.
        if there(place, &file.path, &target)?.is_some() {
            place.discard(&file.path).with_context(cannot)?;
            return Err(in_the_way(&target, "has just been created by another process").into());
        }
        place.publish(&part, &file.path).map_err(|error| not_opened(&target, error))?;
        report.files += 1;
        report.bytes += bytes;
        Ok(())
    }
}

async fn to_stdout(snapshot: &Snapshot, version: u32, path: &str) -> anyhow::Result<()> {
    let Content { mut chunks, .. } = snapshot.open(version, path).await.map_err(|error| match error {
        OcflError::Missing { .. } => no_file(version, path),
        error => failed(&error),
    })?;
    let mut out = std::io::stdout();
    while let Some(chunk) =
        chunks.try_next().await.map_err(|error| CommandError::new(FAILED, format!("{path:?}: {error}")))?
    {
        match out.write_all(&chunk) {
            // The reader of the pipe has closed it, as `head` does.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            wrote => wrote?,
        }
    }
    Ok(out.flush()?)
}

/// The file that is there already, where there is one.
fn there(place: &FileRoot, path: &str, target: &Path) -> anyhow::Result<Option<File>> {
    place.file(path).map_err(|error| not_opened(target, error))
}

/// Why a file beneath the directory can be neither read nor written.
fn not_opened(target: &Path, error: io::Error) -> anyhow::Error {
    match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            in_the_way(target, "leads through a symbolic link, which is not followed").into()
        }
        None => in_the_way(target, "is not a file").into(),
        _ => anyhow::Error::new(error).context(format!("cannot write {}", target.display())),
    }
}

fn in_the_way(target: &Path, why: &str) -> CommandError {
    CommandError::new(REFUSED, format!("{} {why}; remove it, or name another directory", target.display()))
}

fn no_file(version: u32, path: &str) -> CommandError {
    CommandError::new(NOT_FOUND, format!("version {version} has no file {path:?}"))
}

fn failed(error: &OcflError) -> CommandError {
    CommandError::new(FAILED, error.to_string())
}
