//! Whether what a filter of reports names exists.

use std::collections::BTreeSet;

use queuekeeper_catalogue::bit::Reports;
use queuekeeper_store::{SpaceName, StoreName};

use super::{Mill, ReportFilter, ViewError, unavailable};
use crate::views::error::quoted;

impl Mill {
    /// Refuses a store that no account has, and a space in which nothing is recorded, unless a report is on it.
    ///
    /// # Errors
    /// For such a name, and when the catalogue cannot be read.
    pub(super) async fn check_names(&self, filter: &ReportFilter) -> Result<(), ViewError> {
        let ReportFilter { account, store, space, .. } = filter;
        let has_report = async |of: Reports<'_>| {
            let found = self.catalogue().bit_reports(of, None, 1).await.map_err(|error| unavailable(&error))?;
            Ok::<_, ViewError>(!found.is_empty())
        };
        let accounts = || self.accounts().filter(move |known| account.is_empty() || known.name == *account);
        let stores: BTreeSet<&StoreName> = accounts().flat_map(|account| account.stores.values()).collect();
        if !store.is_empty()
            && !stores.iter().any(|known| known.as_str() == store)
            && !has_report(Reports { account, store, ..Reports::default() }).await?
        {
            let why = format!("There is no store “{}” of an account, and no report on one.", quoted(store));
            return Err(ViewError::not_found(why).of("store").allowing(stores.into_iter().map(ToString::to_string)));
        }
        if !space.is_empty() && !has_report(Reports { account, space, ..Reports::default() }).await? {
            let figures = self.catalogue().counters().await.map_err(|error| unavailable(&error))?;
            let name = space.parse::<SpaceName>().ok();
            if !name.is_some_and(|name| accounts().any(|account| account.spaces(&figures).contains(&name))) {
                let why = format!(
                    "There is no space “{}”: no item of it is recorded, and no report is on it.",
                    quoted(space)
                );
                return Err(ViewError::not_found(why).of("space"));
            }
        }
        Ok(())
    }
}
