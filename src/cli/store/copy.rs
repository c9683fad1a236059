//! `queuekeeper store cp`: copies an item, within a store or to another one.

use clap::Args;
use queuekeeper_store::store::{Content, Put};

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::write::WriteArgs;
use crate::cli::output::{OutputArgs, without_csv};
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

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

impl CopyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stores = self.config.stores()?;
        let writable = stores.write(&self.to.store).await?;
        let interrupts = Interrupts::listen()?;
        self.write.prepare(&self.to, &writable).await?;
        let written = if self.from.store == self.to.store {
            writable.store.copy(&self.from.item, None, &self.to.item, &self.write.condition()).await
        } else {
            let source = stores.read(&self.from.store).await?;
            let got = source.get(&self.from.item, None, None).await.map_err(|error| failed(&error))?;
            let Content { properties, chunks } = got;
            let put = Put {
                size: Some(properties.size),
                expected: properties.checksums,
                user: properties.user,
                ..Put::default()
            };
            let what = format!("copying {}", self.from);
            self.write.send((&writable, &interrupts), (&what, &self.to), chunks, put).await
        };
        interrupts.close().await;
        writable.close().await;
        self.write.report(self.output, &self.to, written)
    }
}
