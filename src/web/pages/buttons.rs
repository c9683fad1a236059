//! Buttons for actions: links to the page with the preview and confirmation of an action.
//!
//! They depend on the role of the user and on the state that the page shows. Whether an action is allowed is checked
//! again when it is requested.

use crate::actions::{ActionKind, ActionSpec, Role, Target};
use crate::mirror;
use crate::views::show::visible;
use crate::web::http::query::{Pairs, address};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{BatchNode, JobNode, LockFolder, Path};
use queuekeeper_queue::state::{AccessState, BatchState, State as _};

/// A link to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Button {
    pub(super) text: &'static str,
    pub(super) href: String,
    /// The target, for screen readers.
    pub(super) on: String,
}

/// The buttons for one user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buttons<'a> {
    /// The way up from the page.
    pub(super) root: &'a str,
    role: Role,
}

impl<'a> Buttons<'a> {
    /// For a reader of that role, on a page whose way up is `root`.
    pub(super) fn new(root: &'a str, role: Role) -> Self {
        Self { root, role }
    }

    fn button(self, kind: ActionKind, target: &Target, more: &Pairs) -> Option<Button> {
        let needed = target.role(kind)?;
        (self.role >= needed).then(|| {
            let what = [("action", kind.label().to_owned()), ("on", target.to_string())];
            let what = what.map(|(name, value)| (name.to_owned(), value));
            let href = address(&format!("{}action", self.root), what.iter().chain(more));
            Button { text: kind.title(), href, on: visible(&target.to_string()) }
        })
    }

    fn fitting(self, target: &Target, fits: impl Fn(&&ActionSpec) -> bool) -> Vec<Button> {
        let kinds = target.actions().filter(fits).map(|spec| spec.kind);
        kinds.filter_map(|kind| self.button(kind, target, &Pairs::new())).collect()
    }

    /// The actions on a job in its state, and on its faults.
    pub(super) fn job(self, job: &mirror::Job, faults: &[mirror::FoundFault]) -> Vec<Button> {
        let fits = |spec: &&ActionSpec| job.state.is_some_and(|state| spec.fits_job(state));
        let mut buttons = self.fitting(&Target::Job(job.id), fits);
        if let Some(lock) = job.lock {
            buttons.extend(self.lock(&Path::JobNode(job.id, JobNode::Lock), Some(lock.czxid)));
        }
        buttons.extend(faults.iter().filter_map(|found| self.fault(found.fault, &found.item.to_string())));
        buttons
    }

    /// The actions on a batch in its state, without those that its jobs do not allow.
    pub(super) fn batch(self, id: &str, state: &str, is_locked: bool, without: &[ActionKind]) -> Vec<Button> {
        let Ok(id) = id.parse::<BatchId>() else { return Vec::new() };
        let state = BatchState::ALL.iter().copied().find(|known| known.label() == state);
        let fits =
            |spec: &&ActionSpec| state.is_some_and(|state| spec.fits_batch(state)) && !without.contains(&spec.kind);
        let mut buttons = self.fitting(&Target::Batch(id), fits);
        if is_locked {
            buttons.extend(self.lock(&Path::BatchNode(id, BatchNode::Lock), None));
        }
        buttons
    }

    /// The actions on an access request in its state.
    pub(super) fn request(self, queue: &str, id: &str, state: &str) -> Vec<Button> {
        let Ok(target) = format!("{queue}/{id}").parse::<Target>() else { return Vec::new() };
        let state = AccessState::ALL.iter().copied().find(|known| known.label() == state);
        self.fitting(&target, |spec| state.is_some_and(|state| spec.fits_request(state)))
    }

    /// The action on a lock: a pause or a hold is released, any other lock broken.
    pub(super) fn lock(self, path: &Path, czxid: Option<i64>) -> Option<Button> {
        let (action, target) = match path {
            Path::QueueLock(queue) => (ActionKind::Unpause, Target::Queue(*queue)),
            Path::NamedLock(LockFolder::Collections, mnemonic) => {
                (ActionKind::Release, Target::Collection(mnemonic.clone()))
            }
            path => (ActionKind::BreakLock, Target::Lock(path.clone())),
        };
        let czxid = czxid.map(|czxid| ("czxid".to_owned(), czxid.to_string()));
        self.button(action, &target, &czxid.into_iter().collect())
    }

    /// The repair of a fault.
    pub(super) fn fault(self, fault: Fault, item: &str) -> Option<Button> {
        if fault.help(&Path::parse(item)).is_some() {
            return None;
        }
        // A path that is cut, or none that the grammar knows, names nothing that could be repaired.
        let target = format!("fault:{fault}:{item}").parse::<Target>().ok()?;
        self.button(ActionKind::Repair, &target, &Pairs::new())
    }

    /// What purges an item that the daemons cannot load: where no repair helps, this is taken.
    pub(super) fn purge_of(self, fault: Fault, item: &str) -> Option<Button> {
        use Fault::{UnfinishedCreation, UnloadableBatch, UnloadableJob, UnloadableRequest};
        if !matches!(fault, UnfinishedCreation | UnloadableBatch | UnloadableJob | UnloadableRequest) {
            return None;
        }
        let target = match Path::parse(item) {
            Path::Job(id) => Target::Job(id),
            Path::Batch(id) => Target::Batch(id),
            Path::Request(queue, id) => Target::Request(queue, id),
            _ => return None,
        };
        self.button(ActionKind::Purge, &target, &Pairs::new())
    }

    /// Whether the user may request an action on jobs of a list.
    pub(super) fn may(self, needed: Role) -> bool {
        self.role >= needed
    }

    /// An action on something that stands for itself.
    pub(super) fn on(self, action: ActionKind, target: &Target) -> Option<Button> {
        self.button(action, target, &Pairs::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(buttons: &[Button]) -> Vec<&'static str> {
        buttons.iter().map(|button| button.text).collect()
    }

    #[test]
    fn buttons_follow_the_role_and_the_state() {
        let buttons = |role| Buttons::new("../", role);
        let (no_withdrawal, no_report) = (&[ActionKind::Withdraw][..], &[ActionKind::ReportAgain][..]);
        for (state, without, operator, admin) in [
            ("held", no_withdrawal, &["Release"][..], &["Release", "Delete"][..]),
            ("held", &[], &["Release", "Withdraw"], &["Release", "Withdraw", "Delete"]),
            ("failed", &[], &["Report again"], &["Report again", "Delete"]),
            ("failed", no_report, &[], &["Delete"]),
            ("completed", &[], &[], &["Purge"]),
            ("processing", no_withdrawal, &[], &[]),
            ("reporting", &[], &["Withdraw"], &["Withdraw"]),
            ("other", &[], &[], &[]),
        ] {
            let of = |role| buttons(role).batch("bid0000000042", state, false, without);
            assert_eq!(texts(&of(Role::Viewer)), [""; 0], "{state}");
            assert_eq!(texts(&of(Role::Operator)), operator, "{state}");
            assert_eq!(texts(&of(Role::Admin)), admin, "{state}");
        }
        let locked = buttons(Role::Admin).batch("bid0000000042", "processing", true, no_withdrawal);
        assert_eq!(locked[0].href, "../action?action=break_lock&on=lock%3A%2Fbatches%2Fbid0000000042%2Flock");
        assert_eq!(texts(&buttons(Role::Admin).request("small", "qid0000000001", "failed")), ["Resume", "Delete"]);
        assert_eq!(texts(&buttons(Role::Operator).request("large", "qid0000000001", "failed")), ["Resume"]);
        assert!(buttons(Role::Admin).request("medium", "qid0000000001", "failed").is_empty());
        let pause = Path::parse("/locks/queue/ingest");
        assert_eq!(buttons(Role::Operator).lock(&pause, Some(7)).unwrap().text, "Unpause");
        assert!(buttons(Role::Operator).lock(&Path::parse("/locks/storage/ark_1"), None).is_none());
        let item = "/jobs/jid0000000042";
        assert!(buttons(Role::Operator).fault(Fault::OrphanEntry, item).is_some());
        assert!(buttons(Role::Operator).fault(Fault::UnloadableJob, item).is_some());
        assert!(buttons(Role::Operator).fault(Fault::LeakedLock, item).is_none());
        assert!(buttons(Role::Admin).fault(Fault::LeakedLock, item).is_some());
        assert!(buttons(Role::Admin).fault(Fault::UnfinishedCreation, item).is_none());
        assert!(buttons(Role::Operator).purge_of(Fault::UnfinishedCreation, item).is_none());
        let purge = buttons(Role::Admin).purge_of(Fault::UnfinishedCreation, item).unwrap();
        assert_eq!(purge.href, "../action?action=purge&on=jid0000000042");
        assert!(buttons(Role::Admin).purge_of(Fault::OrphanEntry, item).is_none());
        assert!(buttons(Role::Admin).fault(Fault::StuckState, "/jobs/states/pending").is_none());
    }
}
