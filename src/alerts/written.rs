//! Whether what rules do can be written down. Where it cannot, they do nothing.

use super::server::Shared;

/// What the log has said about the audit trail is kept by this name.
const TRAIL: &str = "audit trail";

impl Shared {
    /// Finds out whether what alerts bring about can be written down now, shows it, and logs it once.
    pub(super) async fn look_at_trail(&self) -> bool {
        let checked = self.actions.audit().check_alerts().await;
        let mut said = self.said.lock();
        match &checked {
            Ok(()) => {
                if said.remove(TRAIL).is_some() {
                    tracing::info!("the audit trail can be written again; automatic action goes on");
                }
            }
            Err(why) => {
                let text = why.to_string();
                if said.get(TRAIL) != Some(&text) {
                    tracing::error!("{text}; alerts are refused and nothing is done about them until it can");
                    said.insert(TRAIL.to_owned(), text);
                }
            }
        }
        checked.is_ok()
    }

    /// Whether it was so when it was last looked at.
    pub(super) fn is_trail_lost(&self) -> bool {
        self.said.lock().contains_key(TRAIL)
    }
}
