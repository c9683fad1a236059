//! Users and their passwords.

use std::collections::BTreeMap;
use std::ops::Range;

/// The maximum cost of a hash. Each step doubles the work; at 16 it takes seconds.
const MAX_COST: u32 = 16;

/// Users and the bcrypt hashes of their passwords.
#[derive(Default)]
pub struct Users {
    hashes: BTreeMap<String, Hash>,
    /// The maximum cost among them.
    cost: u32,
}

struct Hash {
    text: String,
    cost: u32,
}

impl Users {
    /// Adds a user.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(super) fn add(&mut self, name: String, hash: String) -> Result<(), String> {
        if name.contains(':') {
            return Err(format!("the user {name}: a name must not contain a colon"));
        }
        let parts: bcrypt::HashParts = hash.parse().map_err(|_| {
            format!(
                "the user {name}: not a bcrypt hash, $2y$10$ and 53 characters; queuekeeper password {name} creates one"
            )
        })?;
        let cost = parts.get_cost();
        if !(4..=MAX_COST).contains(&cost) {
            return Err(format!("the user {name}: the cost of the hash is {cost}; expected 4 to {MAX_COST}"));
        }
        self.cost = self.cost.max(cost);
        self.hashes.insert(name, Hash { text: hash, cost });
        Ok(())
    }

    /// Whether there are no users, so that no password is required.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hash of a user's password.
    #[must_use]
    pub fn hash(&self, name: &str) -> Option<&str> {
        self.hashes.get(name).map(|hash| hash.text.as_str())
    }

    /// Whether that is the user's password.
    ///
    /// It takes long, and the same time for known and unknown names. Not for a thread that must not block.
    #[must_use]
    pub fn verify(&self, name: &str, password: &[u8]) -> bool {
        // bcrypt repeats the password with a zero byte after it: one with a zero byte could equal another's repetition.
        let is_possible = !password.contains(&0);
        let known = self.hashes.get(name);
        let is_right = known
            .is_some_and(|hash| bcrypt::verify(password, &hash.text).is_ok_and(|is_right| is_right && is_possible));
        for cost in self.rest(known) {
            // The hash of no user; the result is ignored.
            let unknown = format!("$2b${cost:02}$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi");
            std::hint::black_box(bcrypt::verify(password, &unknown).is_ok());
        }
        is_right
    }

    /// The costs of the hashes that are computed in addition to the user's own, if the user exists.
    ///
    /// A hash of cost n takes 2^n rounds: one of each cost from n to m - 1 adds up to 2^m, the time of the most
    /// expensive hash and that for an unknown name.
    fn rest(&self, known: Option<&Hash>) -> Range<u32> {
        known.map_or(self.cost..self.cost + 1, |hash| hash.cost..self.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(costs: &[u32]) -> Users {
        let mut users = Users::default();
        for cost in costs {
            users.add(format!("user{cost}"), bcrypt::hash("secret", *cost).unwrap()).unwrap();
        }
        users
    }

    #[test]
    fn only_the_right_password_of_the_right_user_is_right() {
        let mut users = users(&[4, 6]);
        users.add("long".to_owned(), bcrypt::hash("x".repeat(72), 4).unwrap()).unwrap();
        assert!(users.verify("user4", b"secret") && users.verify("user6", b"secret"));
        // bcrypt uses no more than 72 bytes.
        assert!(users.verify("long", "x".repeat(80).as_bytes()));
        for (name, password) in [
            ("user4", &b"Secret"[..]),
            ("user4", b""),
            ("user4", b"secret\0secret"),
            ("user4", b"\xff\xfe"),
            ("User4", b"secret"),
            ("", b"secret"),
            ("nobody", b"secret"),
            ("long", b"x"),
        ] {
            assert!(!users.verify(name, password), "{name}");
        }
    }

    #[test]
    fn a_name_cannot_be_found_out_by_the_time_that_it_takes() {
        let users = users(&[4, 9]);
        let rounds = |name: &str| -> u64 {
            let known = users.hashes.get(name);
            let own = known.map(|hash| 1 << hash.cost);
            own.into_iter().chain(users.rest(known).map(|cost| 1 << cost)).sum()
        };
        assert_eq!(["user4", "user9", "nobody"].map(rounds), [512; 3]);
    }
}
