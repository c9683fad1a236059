//! What stands still or is wrong, in sentences.

use queuekeeper_catalogue::bit::UnsuccessfulReports;
use queuekeeper_catalogue::counters::{Counter, Figures};

use super::{Mill, ViewError, unavailable};
use crate::words::counted;

impl Mill {
    /// The newest reports on spaces that are no success, by account and store.
    pub(super) async fn unsuccessful_reports(&self) -> Result<Vec<UnsuccessfulReports>, ViewError> {
        let number = self.last_reported_loop().await?;
        self.catalogue().unsuccessful_bit_reports(number).await.map_err(|error| unavailable(&error))
    }

    /// What the newest reports on spaces lack, and what is wrong by them as long as something still is.
    pub(super) async fn report_problems(&self, figures: &Figures) -> Result<Vec<String>, ViewError> {
        let (mut incomplete, mut failed) = (0, 0);
        for of in self.unsuccessful_reports().await? {
            incomplete += of.incomplete;
            let scope = format!("{}/{}", of.account, of.store);
            if figures.get(&(Counter::BitErrors, scope)).is_some_and(|open| *open > 0) {
                failed += of.failed;
            }
        }
        let spaces = |number| counted(number, "space", "spaces");
        let incomplete = (incomplete > 0)
            .then(|| format!("The newest report on {} is incomplete: some items were not proven.", spaces(incomplete)));
        let failed = (failed > 0).then(|| {
            format!("The newest report on {} is a failure, and not all of its errors are repaired.", spaces(failed))
        });
        Ok(incomplete.into_iter().chain(failed).collect())
    }
}
