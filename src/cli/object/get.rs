//! `queuekeeper object get`: reads the files of a version.

use std::fs::{self, File};
use std::io::{ErrorKind, IsTerminal as _, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_store::ocfl::{FileEntry, OcflError, Snapshot};
use queuekeeper_store::store::Content;
use queuekeeper_store::{Algorithm, Digest, Hashers};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::place::{ObjectName, PlaceArgs, Repository};
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, IN_PART, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, Screen, Spinner, without_csv};
use crate::mirror::words::{counted, size};

/// Read the files of a version into a directory, or one of them to standard output
///
/// Each file appears when all of it has been read and has the digest that the object's inventory names. Files that are
/// there already with the same content are kept, so that the same command goes on where it was interrupted; others are
/// not written over. Exits with 3 if there is such a file, and with 6 if some files could not be read.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct GetArgs {
    #[command(flatten)]
    name: ObjectName,

    /// The directory, which is made where it is missing; - for standard output, with --file
    #[arg(long, value_name = "DIR")]
    to: PathBuf,

    /// The number of the version, the newest one where it is not named
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,

    /// This file only, by its path in the object, such as producer/page-1.tif
    #[arg(long, value_name = "PATH")]
    file: Option<String>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    place: PlaceArgs,
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
            return Err(UsageError::flag("--to", "standard output takes one file; name it by --file").into());
        }
        if is_stdout && std::io::stdout().is_terminal() {
            return Err(UsageError::flag("--to", "the content is not for a terminal; redirect it").into());
        }
        let repository = self.place.open().await?;
        let opened = self.open(&repository).await;
        repository.catalogue.close().await;
        let (ark, snapshot) = opened?;
        let head = snapshot.inventory().head();
        let version = self.version.unwrap_or(head);
        if version > head {
            return Err(
                CommandError::new(NOT_FOUND, format!("{ark} has no version {version}; its newest is {head}")).into()
            );
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
        fs::create_dir_all(&self.to).with_context(|| format!("cannot make {}", self.to.display()))?;
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
                self.get(snapshot, version, &file, &mut report).await?;
            }
            None => {
                for file in inventory.files(version) {
                    self.get(snapshot, version, &file?, &mut report).await?;
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
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let Some(target) = below(&self.to, &file.path) else {
            report.errors.push(format!("{:?}: a name that could leave the directory", file.path));
            return Ok(());
        };
        if target.symlink_metadata().is_ok() {
            if has_content(&target, &file.digest).with_context(|| format!("cannot read {}", target.display()))? {
                report.kept += 1;
                return Ok(());
            }
            let why =
                format!("{} exists and has other content; remove it, or name another directory", target.display());
            return Err(CommandError::new(REFUSED, why).into());
        }
        let cannot = || format!("cannot write {}", target.display());
        let parent = target.parent().unwrap_or(&self.to);
        fs::create_dir_all(parent).with_context(cannot)?;
        let mut chunks = match snapshot.open(version, &file.path).await {
            Ok(Content { chunks, .. }) => chunks,
            Err(error) => {
                report.errors.push(format!("{:?}: {error}", file.path));
                return Ok(());
            }
        };
        let mut part = NamedTempFile::with_prefix_in(".queuekeeper-", parent).with_context(cannot)?;
        let mut bytes = 0;
        loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => {
                    part.write_all(&chunk).with_context(cannot)?;
                    bytes += chunk.len() as u64;
                }
                Ok(None) => break,
                Err(error) => {
                    report.errors.push(format!("{:?}: {error}", file.path));
                    return Ok(());
                }
            }
        }
        part.as_file().sync_all().with_context(cannot)?;
        part.persist_noclobber(&target).with_context(cannot)?;
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

/// Where a file of an object goes; `None` for a path that is not a plain one below the directory.
fn below(directory: &Path, path: &str) -> Option<PathBuf> {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    (is_plain && !path.is_empty() && !path.contains('\0')).then(|| directory.join(path))
}

/// Whether a file has the content of a digest.
fn has_content(path: &Path, digest: &Digest) -> std::io::Result<bool> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let (mut file, mut hashers) = (File::open(path)?, Hashers::new([Algorithm::Sha512]));
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hashers.finish().get(Algorithm::Sha512) == Some(digest)),
            read => hashers.update(&buffer[..read]),
        }
    }
}

fn no_file(version: u32, path: &str) -> CommandError {
    CommandError::new(NOT_FOUND, format!("version {version} has no file {path:?}"))
}

fn failed(error: &OcflError) -> CommandError {
    CommandError::new(FAILED, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_the_directory() {
        let directory = Path::new("to");
        assert_eq!(below(directory, "producer/a/b.txt"), Some(PathBuf::from("to/producer/a/b.txt")));
        for path in ["", "/etc/passwd", "../a", "a/../../b", ".", "a\0b"] {
            assert_eq!(below(directory, path), None, "{path:?}");
        }
    }
}
