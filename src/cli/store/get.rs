//! `queuekeeper store get`: reads an item, and goes on where it was interrupted.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_store::store::{Content, Properties};
use queuekeeper_store::{Algorithm, Digest, Hashers, Store};

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::read::broken;
use super::recorded::damaged;
use super::report::ItemReport;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, IN_PART, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, Screen, Transfer, note, without_csv};
use crate::cli::prompt::Interrupts;

/// Read an item into a file or to standard output
///
/// A file appears when all of it has been read and fits the checksums that the store keeps. What is interrupted is kept
/// in FILE.part, and the same command resumes there, unless the item has changed.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct GetArgs {
    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    item: ItemPath,

    /// The file, - for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,

    /// Write over a file that exists
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

/// A file that is being read into, and the state of the item that its bytes are of.
struct Part {
    path: PathBuf,
    state: PathBuf,
    file: File,
    hashers: Hashers,
}

impl GetArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let is_stdout = self.file.as_os_str() == "-";
        if is_stdout && std::io::stdout().is_terminal() {
            return Err(
                UsageError::flag("FILE", "the content is not for a terminal; name a file, or redirect it").into()
            );
        }
        let exists = self.file.symlink_metadata().is_ok();
        if !is_stdout && exists && !self.replace {
            let why = format!("{} exists; --replace writes over it", self.file.display());
            return Err(CommandError::new(REFUSED, why).into());
        }
        let store = self.config.stores()?.read(&self.item.store).await?;
        if is_stdout {
            return match self.to_stdout(&*store).await {
                // The reader of the pipe has closed it, as `head` does.
                Err(error)
                    if error
                        .downcast_ref::<std::io::Error>()
                        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) =>
                {
                    Ok(())
                }
                read => read,
            };
        }
        let found = store.head(&self.item.item).await.map_err(|error| failed(&error))?;
        let found =
            found.ok_or_else(|| CommandError::new(NOT_FOUND, format!("there is no item {}", self.item.short())))?;
        let part = Part::open(&self.file, &self.item, &found)
            .with_context(|| format!("cannot write beside {}", self.file.display()))?;
        let interrupts = Interrupts::listen()?;
        let read = tokio::select! {
            read = self.to_part(&*store, &found, part) => read,
            () = interrupts.wait() => Err(CommandError::new(
                IN_PART,
                format!("interrupted; the same command goes on with {}", beside(&self.file, "part").display()),
            ).into()),
        };
        interrupts.close().await;
        read?;
        let report = ItemReport::found(&self.item, &found);
        self.output.show(&report, |screen: &mut Screen| {
            report.show(screen);
            screen.fact("file", &self.file.display().to_string());
        })
    }

    async fn to_stdout(&self, store: &dyn Store) -> anyhow::Result<()> {
        let Content { properties, chunks } =
            store.get(&self.item.item, None, None).await.map_err(|error| failed(&error))?;
        let mut hashers = hashers(&properties);
        let transfer = Transfer::start(&format!("reading {}", self.item), Some(properties.size));
        let mut chunks = transfer.watch(chunks);
        let mut out = std::io::stdout();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| broken(&self.item, &error))? {
            hashers.update(&chunk);
            out.write_all(&chunk)?;
        }
        out.flush()?;
        self.compare(&properties, hashers)
    }

    /// Reads what is missing, and gives the file its name.
    async fn to_part(&self, store: &dyn Store, found: &Properties, mut part: Part) -> anyhow::Result<()> {
        let there = part.hashers.bytes();
        if there > 0 {
            note(&format!("going on after {there} bytes"));
        }
        if there < found.size {
            let range = Some(there..found.size);
            let Content { chunks, .. } =
                store.get(&self.item.item, range, Some(&found.etag)).await.map_err(|error| failed(&error))?;
            let transfer = Transfer::start(&format!("reading {}", self.item), Some(found.size - there));
            let mut chunks = transfer.watch(chunks);
            while let Some(chunk) = chunks.try_next().await.map_err(|error| broken(&self.item, &error))? {
                part.hashers.update(&chunk);
                part.file.write_all(&chunk).with_context(|| format!("cannot write {}", part.path.display()))?;
            }
        }
        let Part { path, state, file, hashers } = part;
        if let Err(error) = self.compare(found, hashers) {
            // Going on would not make it right.
            let _ = fs::remove_file(&path).and_then(|()| fs::remove_file(&state));
            return Err(error);
        }
        let cannot = || format!("cannot write {}", self.file.display());
        file.sync_all().with_context(cannot)?;
        if self.replace {
            fs::rename(&path, &self.file).with_context(cannot)?;
        } else {
            // Another file of that name may have come meanwhile.
            fs::hard_link(&path, &self.file).with_context(cannot)?;
            fs::remove_file(&path).with_context(cannot)?;
        }
        fs::remove_file(&state).with_context(cannot)
    }

    fn compare(&self, found: &Properties, hashers: Hashers) -> anyhow::Result<()> {
        if hashers.bytes() != found.size {
            let why = format!("{}: {} bytes were read, not {}", self.item.short(), hashers.bytes(), found.size);
            return Err(CommandError::new(FAILED, why).into());
        }
        match found.checksums.difference(&hashers.finish()) {
            None => Ok(()),
            Some((kept, read)) => Err(damaged(&self.item, kept, read).into()),
        }
    }
}

/// Hashers of all algorithms that the store's checksums have.
fn hashers(found: &Properties) -> Hashers {
    Hashers::new(found.checksums.iter().map(Digest::algorithm))
}

impl Part {
    /// Opens the file that was begun before, if it is of the same state of the same item; else an empty one.
    fn open(file: &Path, item: &ItemPath, found: &Properties) -> std::io::Result<Self> {
        let (path, state) = (beside(file, "part"), beside(file, "part.state"));
        let mut identity = Hashers::new([Algorithm::Sha256]);
        identity.update(format!("{item}\n{}\n{}", found.etag, found.size).as_bytes());
        let identity = identity.finish().strongest().map(Digest::hex).unwrap_or_default();
        let mut hashers = hashers(found);
        let is_same = fs::read_to_string(&state).is_ok_and(|text| text == identity);
        if !is_same {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::write(&state, &identity)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => hashers.update(&buffer[..read]),
            }
        }
        if hashers.bytes() > found.size {
            file.set_len(0)?;
            hashers = self::hashers(found);
        }
        Ok(Self { path, state, file, hashers })
    }
}

/// The file with another ending beside it.
fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}
