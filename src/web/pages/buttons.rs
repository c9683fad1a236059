//! What may be ordered where one looks at something: links to the page that shows what it would do and asks once more.
//!
//! They follow the reader's role and the state that the page shows. Whether an order is taken is decided when it is
//! given, whatever buttons there were.

use crate::actions::{Action, Role, Subject};
use crate::mirror;
use crate::web::query::{Pairs, address};
use crate::web::show::visible;
use queuekeeper_queue::MendKind;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::path::{BatchNode, JobNode, LockFolder, Path};
use queuekeeper_queue::state::{AccessState, BatchState, JobState, State};

/// Something that may be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Button {
    pub(super) text: &'static str,
    pub(super) href: String,
    /// What it is about, for those who hear the page.
    pub(super) on: String,
}

/// The buttons of one reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Desk<'a> {
    /// The way up from the page.
    pub(super) root: &'a str,
    role: Role,
}

impl<'a> Desk<'a> {
    /// For a reader of that role, on a page whose way up is `root`.
    pub(super) fn new(root: &'a str, role: Role) -> Self {
        Self { root, role }
    }

    fn button(self, action: Action, subject: &Subject, more: &Pairs) -> Option<Button> {
        let needed = subject.role(action)?;
        (self.role >= needed).then(|| {
            let what = [("action", action.label().to_owned()), ("on", subject.to_string())];
            let what = what.map(|(name, value)| (name.to_owned(), value));
            let href = address(&format!("{}order", self.root), what.iter().chain(more));
            Button { text: action.title(), href, on: visible(&subject.to_string()) }
        })
    }

    fn buttons(self, subject: &Subject, actions: impl IntoIterator<Item = Action>) -> Vec<Button> {
        actions.into_iter().filter_map(|action| self.button(action, subject, &Pairs::new())).collect()
    }

    /// What may be done to a job in its state, and to what is broken about it.
    pub(super) fn job(self, job: &mirror::Job, faults: &[mirror::FoundFault]) -> Vec<Button> {
        let subject = Subject::Job(job.id);
        let fits = |action: &Action| job.state.is_some_and(|state| fits_job(*action, state));
        let mut buttons = self.buttons(&subject, subject.actions().iter().map(|(action, _)| *action).filter(fits));
        if let Some(lock) = job.lock {
            buttons.extend(self.lock(&Path::JobNode(job.id, JobNode::Lock), Some(lock.czxid)));
        }
        buttons.extend(faults.iter().filter_map(|found| self.fault(found.fault, &found.item.to_string())));
        buttons
    }

    /// What may be done to a batch in its state.
    pub(super) fn batch(self, id: &str, state: &str, is_locked: bool) -> Vec<Button> {
        let Ok(id) = id.parse::<BatchId>() else { return Vec::new() };
        let subject = Subject::Batch(id);
        let state = BatchState::ALL.iter().copied().find(|known| known.label() == state);
        let fits = |action: &Action| {
            state.is_some_and(|state| match action {
                Action::Release => state == BatchState::Held,
                Action::ReportAgain => state == BatchState::Failed,
                Action::Delete => state.may_become(BatchState::Deleted),
                Action::Purge => state.is_final(),
                Action::Resume
                | Action::Hold
                | Action::Fail
                | Action::SetPriority
                | Action::CleanUp
                | Action::BreakLock
                | Action::Pause
                | Action::Unpause
                | Action::Mend => false,
            })
        };
        let mut buttons = self.buttons(&subject, subject.actions().iter().map(|(action, _)| *action).filter(fits));
        if is_locked {
            buttons.extend(self.lock(&Path::BatchNode(id, BatchNode::Lock), None));
        }
        buttons
    }

    /// What may be done to an access request in its state.
    pub(super) fn request(self, queue: &str, id: &str, state: &str) -> Vec<Button> {
        let Ok(subject) = format!("{queue}/{id}").parse::<Subject>() else { return Vec::new() };
        let Some(state) = AccessState::ALL.iter().copied().find(|known| known.label() == state) else {
            return Vec::new();
        };
        let actions = [
            (Action::Resume, state == AccessState::Failed),
            (Action::Delete, state.may_become(AccessState::Deleted)),
            (Action::Purge, state.is_final()),
        ];
        self.buttons(&subject, actions.into_iter().filter(|(_, fits)| *fits).map(|(action, _)| action))
    }

    /// What may be done to a lock: a pause and a hold are taken back, and all others broken.
    pub(super) fn lock(self, path: &Path, czxid: Option<i64>) -> Option<Button> {
        let (action, subject) = match path {
            Path::QueueLock(queue) => (Action::Unpause, Subject::Queue(*queue)),
            Path::NamedLock(LockFolder::Collections, mnemonic) => {
                (Action::Release, Subject::Collection(mnemonic.clone()))
            }
            path => (Action::BreakLock, Subject::Lock(path.clone())),
        };
        let czxid = czxid.map(|czxid| ("czxid".to_owned(), czxid.to_string()));
        self.button(action, &subject, &czxid.into_iter().collect())
    }

    /// What mends a fault.
    pub(super) fn fault(self, fault: Fault, item: &str) -> Option<Button> {
        if let MendKind::Another(_) = fault.mend_kind_of(&Path::parse(item)) {
            return None;
        }
        // A path that is cut, or none that the grammar knows, names nothing that could be mended.
        let subject = format!("fault:{fault}:{item}").parse::<Subject>().ok()?;
        self.button(Action::Mend, &subject, &Pairs::new())
    }

    /// What purges an item that the daemons cannot load: where no repair helps, this is taken.
    pub(super) fn purge_of(self, fault: Fault, item: &str) -> Option<Button> {
        use Fault::{UnfinishedCreation, UnloadableBatch, UnloadableJob, UnloadableRequest};
        if !matches!(fault, UnfinishedCreation | UnloadableBatch | UnloadableJob | UnloadableRequest) {
            return None;
        }
        let subject = match Path::parse(item) {
            Path::Job(id) => Subject::Job(id),
            Path::Batch(id) => Subject::Batch(id),
            Path::Request(queue, id) => Subject::Request(queue, id),
            _ => return None,
        };
        self.button(Action::Purge, &subject, &Pairs::new())
    }

    /// Whether the reader may order an action on some of the jobs of a list.
    pub(super) fn may(self, needed: Role) -> bool {
        self.role >= needed
    }

    /// An order on something that stands for itself.
    pub(super) fn on(self, action: Action, subject: &Subject) -> Option<Button> {
        self.button(action, subject, &Pairs::new())
    }
}

/// Whether an action makes sense for a job in a state.
fn fits_job(action: Action, state: JobState) -> bool {
    match action {
        Action::Resume => state == JobState::Failed,
        Action::Hold => state == JobState::Pending,
        Action::Release => state == JobState::Held,
        Action::Fail => state.may_become(JobState::Failed),
        Action::SetPriority => !state.is_final(),
        Action::Delete => state.may_become(JobState::Deleted),
        Action::Purge => state.is_final(),
        Action::ReportAgain | Action::CleanUp | Action::BreakLock | Action::Pause | Action::Unpause | Action::Mend => {
            false
        }
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
        let desk = |role| Desk::new("../", role);
        for (state, operator, admin) in [
            ("held", &["Release"][..], &["Release", "Delete"][..]),
            ("failed", &["Report again"], &["Report again", "Delete"]),
            ("completed", &[], &["Purge"]),
            ("processing", &[], &[]),
            ("other", &[], &[]),
        ] {
            let of = |role| desk(role).batch("bid0000000042", state, false);
            assert_eq!(texts(&of(Role::Viewer)), [""; 0], "{state}");
            assert_eq!(texts(&of(Role::Operator)), operator, "{state}");
            assert_eq!(texts(&of(Role::Admin)), admin, "{state}");
        }
        let locked = desk(Role::Admin).batch("bid0000000042", "processing", true);
        assert_eq!(locked[0].href, "../order?action=break_lock&on=lock%3A%2Fbatches%2Fbid0000000042%2Flock");
        assert_eq!(texts(&desk(Role::Admin).request("small", "qid0000000001", "failed")), ["Resume", "Delete"]);
        assert_eq!(texts(&desk(Role::Operator).request("large", "qid0000000001", "failed")), ["Resume"]);
        assert!(desk(Role::Admin).request("medium", "qid0000000001", "failed").is_empty());
        let pause = Path::parse("/locks/queue/ingest");
        assert_eq!(desk(Role::Operator).lock(&pause, Some(7)).unwrap().text, "Unpause");
        assert!(desk(Role::Operator).lock(&Path::parse("/locks/storage/ark_1"), None).is_none());
        let item = "/jobs/jid0000000042";
        assert!(desk(Role::Operator).fault(Fault::OrphanEntry, item).is_some());
        assert!(desk(Role::Operator).fault(Fault::UnloadableJob, item).is_some());
        assert!(desk(Role::Operator).fault(Fault::LeakedLock, item).is_none());
        assert!(desk(Role::Admin).fault(Fault::LeakedLock, item).is_some());
        assert!(desk(Role::Admin).fault(Fault::UnfinishedCreation, item).is_none());
        assert!(desk(Role::Operator).purge_of(Fault::UnfinishedCreation, item).is_none());
        let purge = desk(Role::Admin).purge_of(Fault::UnfinishedCreation, item).unwrap();
        assert_eq!(purge.href, "../order?action=purge&on=jid0000000042");
        assert!(desk(Role::Admin).purge_of(Fault::OrphanEntry, item).is_none());
        assert!(desk(Role::Admin).fault(Fault::StuckState, "/jobs/states/pending").is_none());
    }
}
