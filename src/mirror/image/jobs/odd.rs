//! Entries and references that do not fit into a row, kept apart by job.

use hashbrown::HashMap;

use queuekeeper_queue::id::JobId;

pub(super) fn holds<T: PartialEq>(odd: &HashMap<JobId, Vec<T>>, job: JobId, item: &T) -> bool {
    odd.get(&job).is_some_and(|items| items.contains(item))
}

pub(super) fn set_odd<T: PartialEq>(odd: &mut HashMap<JobId, Vec<T>>, job: JobId, item: T, present: bool) -> bool {
    if present {
        let items = odd.entry(job).or_default();
        let is_new = !items.contains(&item);
        if is_new {
            items.push(item);
        }
        return is_new;
    }
    let Some(items) = odd.get_mut(&job) else { return false };
    let before = items.len();
    items.retain(|other| *other != item);
    let changed = items.len() != before;
    if items.is_empty() {
        odd.remove(&job);
    }
    changed
}
