//! `queuekeeper store verify`: reads an item and compares it with what is known of it.

use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_store::store::Content;
use queuekeeper_store::{Algorithm, Digest, Digests, Hashers};
use serde::Serialize;

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::report::ItemReport;
use crate::cli::exit::{CommandError, FAILED, REFUSED};
use crate::cli::output::{OutputArgs, Transfer, without_csv};

/// Read an item and compare it with the checksums that its store keeps
///
/// Exits with 0 if the content is proven, with 1 if it is damaged, and with 3 if there is nothing to compare it with.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct VerifyArgs {
    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    item: ItemPath,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Verified {
    #[serde(flatten)]
    item: ItemReport,
    /// Those of the content as it was read.
    read: Digests,
    result: &'static str,
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let store = self.config.stores()?.read(&self.item.store).await?;
        let Content { properties, chunks } =
            store.get(&self.item.item, None, None).await.map_err(|error| failed(&error))?;
        let known = properties.checksums.iter().map(Digest::algorithm);
        let mut hashers = Hashers::new(known.chain([Algorithm::Sha256]));
        let transfer = Transfer::start(&format!("reading {}", self.item), Some(properties.size));
        let mut chunks = transfer.watch(chunks);
        while let Some(chunk) = chunks.try_next().await.map_err(|error| {
            CommandError::new(FAILED, format!("{}: it cannot be read to its end: {error}", self.item))
        })? {
            hashers.update(&chunk);
        }
        drop(chunks);
        drop(transfer);
        let read = hashers.finish();
        let (result, outcome) = match (properties.checksums.difference(&read), properties.checksums.agree(&read)) {
            (Some((kept, found)), _) => (
                "damaged",
                Err(CommandError::new(
                    FAILED,
                    format!("{}: damaged: {} is {found}, the store keeps {kept}", self.item, kept.algorithm()),
                )),
            ),
            (None, Some(_)) => ("proven", Ok(())),
            (None, None) => (
                "unproven",
                Err(CommandError::new(
                    REFUSED,
                    format!("{}: not proven: the store keeps no checksum of it", self.item),
                )),
            ),
        };
        let verified = Verified { item: ItemReport::found(&self.item, &properties), read, result };
        self.output.show(&verified, |screen| {
            verified.item.show(screen);
            if let Some(strongest) = verified.read.strongest() {
                screen.fact("read", &format!("{} {}", strongest.algorithm(), strongest.hex()));
            }
            screen.fact("result", verified.result);
        })?;
        Ok(outcome?)
    }
}
