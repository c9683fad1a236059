//! Whether the audit trail for alerts can be written. If not, rules do not act.

use super::server::Shared;

/// The key of the audit trail in the logged conditions.
const TRAIL: &str = "audit trail";

impl Shared {
    /// Checks whether the audit trail for alerts can be written now, and logs a change.
    pub(super) async fn check_audit_trail(&self) -> bool {
        let checked = self.actions.audit().check_alerts().await;
        let mut logged = self.logged.lock();
        match &checked {
            Ok(()) => {
                if logged.remove(TRAIL).is_some() {
                    tracing::info!("the audit trail can be written again; automatic actions continue");
                }
            }
            Err(why) => {
                let text = why.to_string();
                if logged.get(TRAIL) != Some(&text) {
                    tracing::error!("{text}; alerts are rejected until it can be written");
                    logged.insert(TRAIL.to_owned(), text);
                }
            }
        }
        checked.is_ok()
    }

    /// Whether the last check failed.
    pub(super) fn is_audit_unwritable(&self) -> bool {
        self.logged.lock().contains_key(TRAIL)
    }
}
