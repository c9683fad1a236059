//! `queuekeeper store verify`: reads an item and compares it with what is known of it.

use std::time::Duration;

use clap::Args;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_store::store::{Content, Properties};
use queuekeeper_store::{Algorithm, Digest, Digests, Store};
use serde::Serialize;

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::read::digests;
use super::recorded::{Recorded, damaged};
use super::report::ItemReport;
use crate::cli::exit::{CommandError, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, without_csv};

/// After how long a change that was made is recorded, if its process lives.
const SETTLED: Duration = Duration::from_secs(1);

/// How often an item is looked at that others change meanwhile.
const TRIES: usize = 5;

/// Read an item and compare it with the checksums of its store and of the catalogue
///
/// Exits with 0 if the content is proven, with 1 if it is damaged, changed since it was recorded, or missing although
/// it is recorded, and with 3 if there is no checksum to compare it with.
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

/// An item as it was read, and what is recorded of it.
struct Read {
    properties: Properties,
    recorded: Option<Recorded>,
    digests: Digests,
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stores = self.config.stores()?;
        let store = stores.read(&self.item.store).await?;
        let catalogue = stores.known().await;
        let found = self.find(&*store, catalogue.as_ref()).await;
        if let Some(catalogue) = catalogue {
            catalogue.close().await;
        }
        let Read { properties, recorded, digests: read } = found?;
        let kept = &properties.checksums;
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

    /// Reads the item. Where that is not what is recorded, both are looked at again after a moment: a change is
    /// recorded after it is made, and only what stays different is so.
    async fn find(&self, store: &dyn Store, catalogue: Option<&Catalogue>) -> Result<Read, CommandError> {
        let record = async || match catalogue {
            Some(catalogue) => Recorded::of(catalogue, &self.item).await,
            None => Ok(None),
        };
        let mut recorded = record().await?;
        for is_last in (1..=TRIES).map(|attempt| attempt == TRIES) {
            let read = self.read(store, recorded.as_ref()).await;
            let is_as_recorded = match (&read, &recorded) {
                (Ok(_), None) => true,
                (Ok((found, read)), Some(recorded)) => recorded.difference(&self.item, found.size, read).is_none(),
                (Err(error), recorded) => recorded.is_none() || !is_missing(error),
            };
            let mut is_settled = is_as_recorded || is_last;
            if !is_settled {
                tokio::time::sleep(SETTLED).await;
                let (now, head) = (record().await?, store.head(&self.item.item).await.map_err(|error| failed(&error))?);
                let etag = read.as_ref().ok().map(|(found, _)| &found.etag);
                is_settled = now == recorded && head.as_ref().map(|found| &found.etag) == etag;
                if !is_settled {
                    recorded = now;
                    continue;
                }
            }
            return match (read, recorded) {
                (Ok((properties, digests)), recorded) => Ok(Read { properties, recorded, digests }),
                (Err(error), Some(recorded)) if is_missing(&error) => Err(recorded.missing(&self.item)),
                (Err(error), _) => Err(error),
            };
        }
        Err(CommandError::new(REFUSED, format!("{} keeps changing; try again later", self.item.short())))
    }

    async fn read(
        &self,
        store: &dyn Store,
        recorded: Option<&Recorded>,
    ) -> Result<(Properties, Digests), CommandError> {
        let got = store.get(&self.item.item, None, None).await;
        let Content { properties, chunks } = got.map_err(|error| failed(&error))?;
        let known = properties.checksums.iter().chain(recorded.iter().flat_map(|recorded| recorded.digests.iter()));
        let algorithms: Vec<_> = known.map(Digest::algorithm).chain([Algorithm::Sha256]).collect();
        let read = digests(&self.item, properties.size, algorithms, chunks).await?;
        Ok((properties, read))
    }
}

fn is_missing(error: &CommandError) -> bool {
    error.code == NOT_FOUND
}
