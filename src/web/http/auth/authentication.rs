//! The authentication of a request, kept for as long as its response takes.

use jiff::Timestamp;

use crate::config::TokenHash;
use crate::web::http::context::HttpContext;
use crate::web::http::identity::Identity;

/// An identity with the evidence for it, so that a response that does not complete can check it again. It has no
/// `Debug`: the hash of a secret belongs in no log.
#[derive(Clone)]
pub(in crate::web) struct Authentication {
    pub(in crate::web) identity: Identity,
    evidence: Evidence,
}

/// What an identity was accepted by.
#[derive(Clone)]
pub(super) enum Evidence {
    /// Nothing, where reading needs no login.
    None,
    /// A password with this bcrypt hash.
    Password(String),
    /// A token.
    Token(TokenHash),
}

impl Authentication {
    pub(super) fn new(identity: Identity, evidence: Evidence) -> Self {
        Self { identity, evidence }
    }
}

impl HttpContext {
    /// Whether the same credentials would still be accepted now, for the same identity and role.
    pub(in crate::web) fn is_still_valid(&self, authentication: &Authentication, now: Timestamp) -> bool {
        let Authentication { identity, evidence } = authentication;
        let (users, file) = (self.users(), self.config_file());
        let role = match evidence {
            Evidence::None => users.is_none().then_some(identity.role),
            Evidence::Password(hash) => users
                .filter(|users| users.hash(&identity.name) == Some(hash))
                .map(|_| file.map_or_else(Identity::default_role, |file| file.role(&identity.name))),
            Evidence::Token(hash) => file.and_then(|file| {
                let token = file.tokens().valid(hash, now)?;
                (token.name == identity.name).then_some(token.role)
            }),
        };
        role == Some(identity.role)
    }
}
