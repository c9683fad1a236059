//! `queuekeeper store rm`: deletes an item, or an empty space.

use clap::Args;
use queuekeeper_store::{Item, Key};
use serde_json::json;

use super::ConfigArgs;
use super::open::failed;
use super::path::{ItemPath, StorePath};
use super::report::ItemReport;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, NOT_FOUND};
use crate::cli::output::{OutputArgs, Screen, is_attended, without_csv};
use crate::cli::prompt::Interrupts;

/// Delete an item, or a space without items
///
/// It shows what will be deleted, and prompts. If the item changes meanwhile, it is kept.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct DeleteArgs {
    /// The item or the space
    #[arg(value_name = "STORE/SPACE[/KEY]", value_parser = StorePath::parser())]
    path: StorePath,

    #[command(flatten)]
    output: OutputArgs,

    /// Do not prompt
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    config: ConfigArgs,
}

impl DeleteArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let StorePath { store, space, rest } = self.path;
        let Some(space) = space else {
            return Err(
                UsageError::flag("STORE/SPACE[/KEY]", "a store cannot be deleted; name a space or an item").into()
            );
        };
        if !self.yes && !is_attended() {
            return Err(UsageError::unprompted("delete").into());
        }
        let stores = self.config.stores()?;
        let interrupts = Interrupts::listen()?;
        let ask = async |what: String| if self.yes { Ok(()) } else { interrupts.confirm(&what).await };
        let deleted = if rest.is_empty() {
            ask(format!("Delete the space {store}/{space}, if it has no items?")).await?;
            let writable = stores.write(&store, &interrupts).await?;
            let deleted = writable.store.delete_space(&space).await.map_err(|error| failed(&error));
            writable.close().await;
            if !deleted? {
                return Err(CommandError::new(NOT_FOUND, format!("there is no space {store}/{space}")).into());
            }
            format!("{store}/{space}")
        } else {
            let key = Key::new(rest).map_err(|error| UsageError::flag("STORE/SPACE[/KEY]", error))?;
            let path = ItemPath { store, item: Item::new(space, key) };
            let found = stores.read(&path.store).await?.head(&path.item).await.map_err(|error| failed(&error))?;
            let found =
                found.ok_or_else(|| CommandError::new(NOT_FOUND, format!("there is no item {}", path.short())))?;
            if !self.yes {
                let mut screen = Screen::beside();
                ItemReport::found(&path, &found).show(&mut screen);
                screen.print();
            }
            ask("Delete it?".to_owned()).await?;
            let writable = stores.write(&path.store, &interrupts).await?;
            let deleted = writable.store.delete(&path.item, Some(&found.etag)).await.map_err(|error| failed(&error));
            writable.close().await;
            deleted?;
            path.to_string()
        };
        interrupts.close().await;
        self.output.show(&json!({ "deleted": deleted }), |screen| screen.say(&format!("deleted {deleted}")))
    }
}
