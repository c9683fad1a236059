//! The working storage: small, so that a few large objects fill it.

use std::sync::Arc;
use std::time::Duration;

use queuekeeper_ingest::services::Services;
use queuekeeper_ingest::space::Rules;
use queuekeeper_ingest::working::WorkingStorage;

use super::collections::MIB;
use crate::metrics::working_storage::{MeasuredStorage, Space};

/// Its usual size: five large objects fit below the threshold.
pub(super) const SIZE_BYTES: u64 = 96 * MIB;

/// Its size while an operator has enlarged it: a whole large deposit fits.
pub(super) const ENLARGED_BYTES: u64 = 192 * MIB;

/// The used part above which jobs wait.
pub(super) const THRESHOLD: f64 = Rules::THRESHOLD;

/// How often it is measured.
const PERIOD: Duration = Duration::from_millis(500);

/// What the server exports of it: it has no file system to itself that could be asked.
pub(super) fn exported(storage: &WorkingStorage) -> std::io::Result<MeasuredStorage> {
    let exported = MeasuredStorage::reported(THRESHOLD);
    exported.report(measured(storage)?);
    Ok(exported)
}

fn measured(storage: &WorkingStorage) -> std::io::Result<Space> {
    let (size_bytes, free_bytes) = storage.space()?;
    Ok(Space { size_bytes, free_bytes })
}

/// Measures it again and again; never returns.
pub(super) async fn measure(services: Arc<Services>, exported: MeasuredStorage) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let working = services.working.clone();
        match tokio::task::spawn_blocking(move || measured(&working)).await {
            Ok(Ok(space)) => exported.report(space),
            Ok(Err(error)) => tracing::warn!(%error, "cannot measure the demo's working storage"),
            Err(error) => tracing::warn!(%error, "the measuring of the demo's working storage failed"),
        }
    }
}
