//! `queuekeeper store get`: reads an item, and goes on where it was interrupted.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::PathBuf;

use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_store::store::{Content, Properties};
use queuekeeper_store::{Digests, Store};

use super::ConfigArgs;
use super::open::failed;
use super::part::{self, Part};
use super::path::{ItemPath, StorePath};
use super::read::broken;
use super::recorded::damaged;
use super::report::ItemReport;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, IN_PART, NOT_FOUND};
use crate::cli::output::{OutputArgs, Screen, Transfer, note, without_csv};
use crate::cli::prompt::Interrupts;

/// Read an item into a file or to standard output
///
/// The file appears when all of it has been read and matches the checksums of the store. After an interruption, the
/// content is kept in FILE.part, and the same command resumes there, unless the item has changed.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct GetArgs {
    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    item: ItemPath,

    /// The file; - for standard output
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    #[command(flatten)]
    output: OutputArgs,

    /// Replace an existing file
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl GetArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let is_stdout = self.file.as_os_str() == "-";
        if is_stdout && std::io::stdout().is_terminal() {
            return Err(UsageError::flag(
                "FILE",
                "the content is not written to a terminal; name a file, or redirect it",
            )
            .into());
        }
        if !is_stdout {
            part::check_target(&self.file, self.replace)?;
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
        let part = Part::open(&self.file, &self.item, &found)?;
        let interrupts = Interrupts::listen()?;
        let read = tokio::select! {
            read = self.to_part(&*store, &found, part) => read,
            () = interrupts.wait() => Err(CommandError::new(
                IN_PART,
                format!("interrupted; the same command resumes with {}", part::beside(&self.file).display()),
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
        let mut hashers = part::hashers(&properties);
        let transfer = Transfer::start(&format!("reading {}", self.item), Some(properties.size));
        let mut chunks = transfer.watch(chunks);
        let mut out = std::io::stdout();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| broken(&self.item, &error))? {
            hashers.update(&chunk);
            out.write_all(&chunk)?;
        }
        out.flush()?;
        self.compare(&properties, (hashers.bytes(), hashers.finish()))
    }

    /// Reads what is missing, and gives the file its name.
    async fn to_part(&self, store: &dyn Store, found: &Properties, mut part: Part) -> anyhow::Result<()> {
        let there = part.bytes();
        if there > 0 {
            note(&format!("resuming after {there} bytes"));
        }
        self.read_rest(store, found, &mut part).await?;
        let mut compared = self.compare(found, part.digests());
        if compared.is_err() && there > 0 {
            note("the part that was there does not match; reading everything again");
            part.empty(found)?;
            self.read_rest(store, found, &mut part).await?;
            compared = self.compare(found, part.digests());
        }
        match compared {
            Ok(()) => part.finish(&self.file, self.replace),
            Err(error) => {
                part.remove();
                Err(error)
            }
        }
    }

    async fn read_rest(&self, store: &dyn Store, found: &Properties, part: &mut Part) -> anyhow::Result<()> {
        let there = part.bytes();
        if there == found.size {
            return Ok(());
        }
        let range = Some(there..found.size);
        let Content { chunks, .. } =
            store.get(&self.item.item, range, Some(&found.etag)).await.map_err(|error| failed(&error))?;
        let transfer = Transfer::start(&format!("reading {}", self.item), Some(found.size - there));
        let mut chunks = transfer.watch(chunks);
        while let Some(chunk) = chunks.try_next().await.map_err(|error| broken(&self.item, &error))? {
            part.write(&chunk)?;
        }
        Ok(())
    }

    fn compare(&self, found: &Properties, (bytes, digests): (u64, Digests)) -> anyhow::Result<()> {
        if bytes != found.size {
            let why = format!("{}: {bytes} bytes were read, not {}", self.item.short(), found.size);
            return Err(CommandError::new(FAILED, why).into());
        }
        match found.checksums.difference(&digests) {
            None => Ok(()),
            Some((kept, read)) => Err(damaged(&self.item, kept, read).into()),
        }
    }
}
