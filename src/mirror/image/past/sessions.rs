//! The sessions that records name.

use hashbrown::HashMap;

use super::NO_SESSION;

/// The sessions that records name, each kept once and for as long as one does.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    slots: Vec<(i64, u32)>,
    pub(super) by_session: HashMap<i64, u16>,
    free: Vec<u16>,
}

impl Sessions {
    /// The place of a session, for one more record.
    pub(super) fn take(&mut self, session: i64) -> u16 {
        if session == 0 {
            return NO_SESSION;
        }
        if let Some(at) = self.by_session.get(&session) {
            self.slots[usize::from(*at)].1 += 1;
            return *at;
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => match u16::try_from(self.slots.len()) {
                Ok(at) if at != NO_SESSION => {
                    self.slots.push((0, 0));
                    at
                }
                Ok(_) | Err(_) => return NO_SESSION,
            },
        };
        self.slots[usize::from(at)] = (session, 1);
        self.by_session.insert(session, at);
        at
    }

    /// One more record has a session that is here.
    pub(super) fn keep(&mut self, at: u16) {
        if at != NO_SESSION {
            self.slots[usize::from(at)].1 += 1;
        }
    }

    /// These sessions with the same places, kept without a record until [`Sessions::unpin`].
    pub(super) fn pinned(&self) -> Self {
        let mut pinned = self.clone();
        for at in self.by_session.values() {
            pinned.slots[usize::from(*at)].1 = 1;
        }
        pinned
    }

    /// Forgets those of another's [`Sessions::pinned`] that no record has.
    pub(super) fn unpin(&mut self, other: &Self) {
        other.by_session.values().for_each(|at| self.release(*at));
    }

    pub(super) fn get(&self, at: u16) -> Option<i64> {
        self.slots.get(usize::from(at)).map(|(session, _)| *session).filter(|_| at != NO_SESSION)
    }

    pub(super) fn release(&mut self, at: u16) {
        if at == NO_SESSION {
            return;
        }
        let (session, uses) = &mut self.slots[usize::from(at)];
        *uses -= 1;
        if *uses == 0 {
            self.by_session.remove(session);
            self.free.push(at);
        }
    }
}

#[cfg(test)]
mod tests;
