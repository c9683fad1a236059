//! `queuekeeper store verify`: reads an item and compares it with what is known of it.

use clap::Args;
use queuekeeper_store::store::Content;
use queuekeeper_store::{Algorithm, Digest, Digests};
use serde::Serialize;

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::read::digests;
use super::recorded::{Recorded, damaged};
use super::report::ItemReport;
use crate::cli::exit::{CommandError, REFUSED};
use crate::cli::output::{OutputArgs, without_csv};

/// Read an item and compare it with the checksums of its store and of the catalogue
///
/// Exits with 0 if the content is proven, with 1 if it is damaged, or changed since it was recorded, and with 3 if there
/// is nothing to compare it with.
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
    /// Those that the catalogue has recorded.
    recorded: Digests,
    /// Those of the content as it was read.
    read: Digests,
    result: &'static str,
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stores = self.config.stores()?;
        let store = stores.read(&self.item.store).await?;
        let recorded = match stores.known().await {
            Some(catalogue) => {
                let recorded = Recorded::of(&catalogue, &self.item).await;
                catalogue.close().await;
                recorded?
            }
            None => None,
        };
        let Content { properties, chunks } =
            store.get(&self.item.item, None, None).await.map_err(|error| failed(&error))?;
        let kept = &properties.checksums;
        let known = kept.iter().chain(recorded.iter().flat_map(|recorded| recorded.digests.iter()));
        let algorithms = known.map(Digest::algorithm).chain([Algorithm::Sha256]);
        let read = digests(&self.item, properties.size, algorithms, chunks).await?;
        let difference = recorded.as_ref().and_then(|it| it.difference(&self.item, properties.size, &read));
        let is_recorded = recorded.as_ref().is_some_and(|recorded| recorded.digests.agree(&read) == Some(true));
        let (result, outcome) = match (kept.difference(&read), difference) {
            (Some((kept, found)), _) => ("damaged", Err(damaged(&self.item, kept, found))),
            (None, Some(changed)) => ("changed", Err(changed)),
            (None, None) if is_recorded || kept.agree(&read) == Some(true) => ("proven", Ok(())),
            (None, None) => {
                let why = format!(
                    "{}: not proven: neither the store nor the catalogue has a checksum of it",
                    self.item.short()
                );
                ("unproven", Err(CommandError::new(REFUSED, why)))
            }
        };
        let recorded = recorded.map(|recorded| recorded.digests).unwrap_or_default();
        let item = ItemReport::found(&self.item, &properties);
        let verified = Verified { item, recorded, read, result };
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
