//! `queuekeeper store cp`: copies an item, within a store or to another one.

use clap::Args;
use queuekeeper_store::store::{Condition, Content, Put};
use queuekeeper_store::{Algorithm, ErrorKind};

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::report::ItemReport;
use crate::cli::exit::{CommandError, REFUSED};
use crate::cli::output::{OutputArgs, Transfer, without_csv};
use crate::cli::prompt::Interrupts;

/// Copy an item with its properties, within a store or to another one
///
/// Between stores the content is compared with the checksums that its store keeps, while it is copied: damaged content
/// is not copied.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct CopyArgs {
    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    from: ItemPath,

    /// The copy
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    to: ItemPath,

    #[command(flatten)]
    output: OutputArgs,

    /// Write over an item that exists
    #[arg(long)]
    replace: bool,

    /// Make the space if there is none
    #[arg(long = "create-space")]
    create_space: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl CopyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stores = self.config.stores()?;
        let writable = stores.write(&self.to.store).await?;
        let interrupts = Interrupts::listen()?;
        if self.create_space {
            writable.store.create_space(&self.to.item.space).await.map_err(|error| failed(&error))?;
        }
        let condition = if self.replace { Condition::None } else { Condition::IfAbsent };
        let written = if self.from.store == self.to.store {
            writable.store.copy(&self.from.item, None, &self.to.item, &condition).await
        } else {
            let source = stores.read(&self.from.store).await?;
            let Content { properties, chunks } =
                source.get(&self.from.item, None, None).await.map_err(|error| failed(&error))?;
            let put = Put {
                size: Some(properties.size),
                expected: properties.checksums,
                compute: vec![Algorithm::Sha256, Algorithm::Sha512],
                condition,
                user: properties.user,
                ..Put::default()
            };
            let abort = put.abort.clone();
            let transfer = Transfer::start(&format!("copying {}", self.from), Some(properties.size));
            let writing = writable.store.put(&self.to.item, transfer.watch(chunks), put);
            tokio::pin!(writing);
            tokio::select! {
                written = &mut writing => written,
                () = interrupts.wait() => {
                    abort.cancel();
                    writing.await
                }
            }
        };
        interrupts.close().await;
        writable.close().await;
        let written = written.map_err(|error| match error.kind {
            ErrorKind::Precondition if !self.replace => {
                CommandError::new(REFUSED, format!("{} exists; --replace writes over it", self.to))
            }
            _ => failed(&error),
        })?;
        let report = ItemReport::written(&self.to, &written);
        self.output.show(&report, |screen| report.show(screen))
    }
}
