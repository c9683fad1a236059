//! Opening the catalogue of a configuration.

use anyhow::Context as _;
use queuekeeper_catalogue::Catalogue;

use crate::config::StoreSettings;

/// Opens the catalogue; that its schema was brought up to date is logged.
///
/// # Errors
/// One line that names it, or says that there is none.
pub async fn open(settings: &StoreSettings) -> anyhow::Result<Catalogue> {
    let url = settings.catalogue().context("there is no catalogue in the configuration; name one")?;
    let (catalogue, migrated) = Catalogue::migrate(url.expose()).await?;
    if migrated.from != migrated.to {
        let place = catalogue.place();
        let backup = migrated.backup.as_deref().map(|file| file.display().to_string());
        tracing::info!(%place, from = migrated.from, to = migrated.to, backup, "migrated the schema");
    }
    Ok(catalogue)
}
