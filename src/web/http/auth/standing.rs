//! What lets somebody in, kept for as long as an answer goes on.

use jiff::Timestamp;

use crate::actions::Role;
use crate::config::TokenHash;
use crate::web::State;
use crate::web::http::identity::Identity;

/// Who was let in and by what, so that it can be checked again while an answer without an end goes on. It has no `Debug`:
/// a hash of a secret belongs in no log.
#[derive(Clone)]
pub(in crate::web) struct Standing {
    pub(in crate::web) identity: Identity,
    by: By,
}

/// By what somebody was let in.
#[derive(Clone)]
pub(super) enum By {
    /// By nothing, where nobody has to log in.
    Nothing,
    /// By a password, of which this is the bcrypt hash.
    Password(String),
    /// By a token.
    Token(TokenHash),
}

impl Standing {
    pub(super) fn new(identity: Identity, by: By) -> Self {
        Self { identity, by }
    }
}

impl State {
    /// The role of somebody who was let in, if the same credentials would still let the same one in now.
    pub(in crate::web) fn still_is(&self, standing: &Standing, now: Timestamp) -> Option<Role> {
        let Standing { identity, by } = standing;
        let (users, file) = (self.users(), self.file());
        let role = match by {
            By::Nothing => users.is_none().then_some(identity.role),
            By::Password(hash) => {
                let stands = users?.hash(&identity.name) == Some(hash);
                stands.then(|| file.map_or_else(Identity::least, |file| file.role(&identity.name)))
            }
            By::Token(hash) => {
                let file = file?;
                let token = file.tokens().valid(hash, now)?;
                (token.name == identity.name).then_some(token.role)
            }
        }?;
        (role == identity.role).then(|| self.rights(identity))
    }
}
