//! Which processes of the mill there are: each reports itself in the catalogue.

use std::time::Duration;

use queuekeeper_catalogue::Catalogue;
use queuekeeper_catalogue::tasks::MillProcess;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often a process reports itself.
const REPORT: Duration = Duration::from_mins(1);

/// A process that has not reported itself for so long does not run any more, as far as others know.
pub const SEEN_WITHIN: Duration = Duration::from_mins(3);

/// Reports a process until the token is cancelled, and then that it has ended.
pub(crate) async fn report(catalogue: &Catalogue, process: &MillProcess, stop: &CancellationToken) {
    loop {
        if let Err(error) = catalogue.report_process(process).await {
            tracing::warn!(%error, "cannot report this process as running; retrying");
        }
        if stop.run_until_cancelled(sleep(REPORT)).await.is_none() {
            break;
        }
    }
    if let Err(error) = catalogue.forget_process(process.id).await {
        tracing::warn!(%error, "cannot report the end of this process; it is shown as running for some minutes");
    }
}
