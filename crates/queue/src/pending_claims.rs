//! Values that one user of a handle stores for another, by their type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

use parking_lot::Mutex;

/// Claims whose outcome is unknown, by their type.
#[derive(Default)]
pub(crate) struct PendingClaims {
    by_type: Mutex<HashMap<TypeId, Vec<Box<dyn Any + Send>>>>,
}

impl PendingClaims {
    /// Stores a value.
    pub(crate) fn put<T: Send + 'static>(&self, value: T) {
        self.by_type.lock().entry(TypeId::of::<T>()).or_default().push(Box::new(value));
    }

    /// Takes one of the values of a type that satisfy a condition; `None` if there is none.
    pub(crate) fn take<T: Send + 'static>(&self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut by_type = self.by_type.lock();
        let values = by_type.get_mut(&TypeId::of::<T>())?;
        let at = values.iter().position(|value| value.downcast_ref().is_some_and(&is_wanted))?;
        values.swap_remove(at).downcast().ok().map(|value| *value)
    }
}

impl fmt::Debug for PendingClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingClaims").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_given_once_to_a_taker_of_its_type_that_wants_it() {
        let pending = PendingClaims::default();
        for value in [1_u32, 2] {
            pending.put(value);
        }
        assert_eq!(pending.take(|_: &i64| true), None);
        assert_eq!(pending.take(|value: &u32| *value == 2), Some(2));
        assert_eq!(pending.take(|value: &u32| *value == 2), None);
        assert_eq!(pending.take(|_: &u32| true), Some(1));
        assert_eq!(format!("{pending:?}"), "PendingClaims { .. }");
    }
}
