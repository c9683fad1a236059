//! Who asks, and what he may request.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};

use super::problem::Problem;
use crate::actions::{Actor, Role, Source};
use crate::web::State;

/// What a proxy on this machine says of somebody who is elsewhere.
const FORWARDED: [HeaderName; 5] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
];

/// How we know who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// We do not.
    Nobody,
    /// By a user's password.
    Password,
    /// By a token.
    Token,
    /// He is on this machine, and this server trusts whoever is.
    Loopback,
}

impl AuthMethod {
    /// The name in answers.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Password => "password",
            Self::Token => "token",
            Self::Loopback => "loopback",
        }
    }
}

/// Who asks; an extension of every request that is let in, and an argument of handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// His name, or that of the token; empty for nobody.
    pub(crate) name: String,
    /// What he may request.
    pub(crate) role: Role,
    /// How we know.
    pub(crate) means: AuthMethod,
    /// Where he is.
    pub(crate) peer: Option<IpAddr>,
}

impl Identity {
    pub(in crate::web) fn known(name: String, role: Role, means: AuthMethod, peer: Option<IpAddr>) -> Self {
        Self { name, role, means, peer }
    }

    /// Anybody of a role, for whom something is only shown.
    pub(in crate::web) fn of_role(role: Role) -> Self {
        Self::known(String::new(), role, AuthMethod::Nobody, None)
    }

    /// The role of whoever was given none.
    pub(in crate::web) fn least() -> Role {
        Role::Viewer
    }

    fn nobody(peer: Option<IpAddr>) -> Self {
        Self::known(String::new(), Self::least(), AuthMethod::Nobody, peer)
    }
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = Infallible;

    /// Who asks, as the layer before all handlers found out; nobody, where it did not.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self::nobody(None)))
    }
}

impl State {
    /// Somebody who does not log in where nobody has to.
    pub(in crate::web) fn nobody(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Identity {
        match &self.shared.config.web.loopback {
            Some(loopback) if is_here(peer, headers) => {
                Identity::known("loopback".to_owned(), loopback.role, AuthMethod::Loopback, peer)
            }
            Some(_) | None => Identity::nobody(peer),
        }
    }

    /// Whether anybody may request anything.
    pub(crate) fn takes_actions(&self) -> bool {
        self.shared.config.web.loopback.is_some() || self.file().is_some_and(|file| file.allows_actions())
    }

    /// Lets somebody action what needs that role.
    ///
    /// # Errors
    /// When he may not: a problem that says what is missing and how to get it.
    pub(crate) fn authorize(&self, who: &Identity, needed: Role, source: Source) -> Result<Actor, Problem> {
        if who.role >= needed && (needed == Role::Viewer || self.takes_actions()) {
            return Ok(Actor { name: who.name.clone(), role: who.role, source, from: who.peer });
        }
        let forbidden = |why: String| Err(Problem::new(StatusCode::FORBIDDEN, why));
        if !self.takes_actions() {
            return forbidden(
                "This server takes no actions, since nobody was named who may give them. Start it with --config.file, a \
                 file that gives users of --web.config.file a role (users: {alice: operator}) or names a file of tokens \
                 (tokens_file: tokens.yml), which queuekeeper token makes."
                    .to_owned(),
            );
        }
        let (name, role) = (&who.name, who.role);
        match who.means {
            AuthMethod::Nobody if self.shared.config.web.loopback.is_some() => forbidden(format!(
                "This needs the role {needed}, which only those have who are on the server's machine."
            )),
            AuthMethod::Nobody if self.has_users() => {
                Err(self.challenge(format!("This needs the role {needed}. Log in.")))
            }
            AuthMethod::Nobody => Err(self.challenge(format!(
                "This needs the role {needed}, and so a token that has it: send it as Authorization: Bearer. A browser \
                 needs a user and a password, of which --web.config.file has none."
            ))),
            AuthMethod::Password => forbidden(format!(
                "This needs the role {needed}, and {name} is {role}. Whoever runs the server gives it in the file of \
                 --config.file, below users."
            )),
            AuthMethod::Token => forbidden(format!(
                "This needs the role {needed}, and the token {name} is one of {role}. Whoever runs the server makes one \
                 with queuekeeper token."
            )),
            AuthMethod::Loopback => forbidden(format!("This needs the role {needed}, and whoever is here is {role}.")),
        }
    }
}

/// Whether somebody is on this machine, as far as can be told.
fn is_here(peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    peer.is_some_and(|peer| peer.is_loopback()) && !FORWARDED.iter().any(|name| headers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::config::{Config, ConfigFile, Loopback, Secret, TokenLine, Web, WebFile};
    use crate::mirror::Store;

    const WEB: &str = "basic_auth_users: {alice: $2b$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}";

    fn state(web: &str, file: &str, loopback: Option<Loopback>) -> State {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, if text.is_empty() { "{}" } else { text }).unwrap();
            path
        };
        let token = TokenLine::new("ci", Role::Operator, None, &Secret::make()).unwrap();
        write("tokens.yml", &token.to_string());
        let web = WebFile::read(&write("web.yml", web)).unwrap();
        let file = ConfigFile::read(&write("config.yml", file)).unwrap();
        file.check_users(Some(&web)).unwrap();
        let base = Config::new(queuekeeper_zookeeper::Config::new("127.0.0.1:1".parse().unwrap()));
        let config = Config { web: Web { file: Some(web), loopback, ..Web::default() }, file: Some(file), ..base };
        State::new(config, Store::default(), None, None, Registry::default())
    }

    fn told(state: &State, who: &Identity, needed: Role) -> Result<(), (u16, usize, String)> {
        state.authorize(who, needed, Source::Api).map(drop).map_err(|problem| {
            let challenges = problem.headers.iter().filter(|(name, _)| name == header::WWW_AUTHENTICATE).count();
            (problem.status, challenges, problem.detail.into_owned())
        })
    }

    #[test]
    fn whoever_may_not_is_told_what_is_missing_and_how_to_get_it() {
        let someone = |means, role| {
            let name = if means == AuthMethod::Nobody { "" } else { "alice" };
            Identity::known(name.to_owned(), role, means, Some("192.0.2.1".parse().unwrap()))
        };
        let trusted = Loopback { role: Role::Operator, notice: "" };
        let (nobody, viewer) = (someone(AuthMethod::Nobody, Role::Viewer), someone(AuthMethod::Password, Role::Viewer));
        let (open, closed) = ("", "{}");
        for (web, file, loopback, who, needed, expected) in [
            (WEB, "users: {alice: viewer}", None, &viewer, Role::Operator, (403, 0, "takes no actions")),
            // A role that is left over from a time when actions were taken is none.
            (open, closed, None, &someone(AuthMethod::Password, Role::Admin), Role::Admin, (403, 0, "--config.file")),
            (WEB, "users: {alice: operator}", None, &nobody, Role::Operator, (401, 1, "Log in")),
            (WEB, "users: {alice: operator}\ntokens_file: tokens.yml", None, &nobody, Role::Admin, (401, 2, "Log in")),
            (open, "tokens_file: tokens.yml", None, &nobody, Role::Operator, (401, 1, "Authorization: Bearer")),
            (WEB, "users: {alice: admin}", None, &viewer, Role::Operator, (403, 0, "alice is viewer")),
            (
                WEB,
                "users: {alice: admin}",
                None,
                &someone(AuthMethod::Token, Role::Operator),
                Role::Admin,
                (403, 0, "the token alice is one of operator"),
            ),
            (open, closed, Some(&trusted), &nobody, Role::Operator, (403, 0, "on the server's machine")),
            (
                open,
                closed,
                Some(&trusted),
                &someone(AuthMethod::Loopback, Role::Operator),
                Role::Admin,
                (403, 0, "needs the role admin"),
            ),
        ] {
            let state = state(web, file, loopback.cloned());
            let (status, challenges, text) = told(&state, who, needed).unwrap_err();
            assert_eq!((status, challenges), (expected.0, expected.1), "{file:?}: {text}");
            assert!(text.contains(expected.2), "{text}");
        }
    }

    #[test]
    fn each_role_may_what_it_and_those_below_it_may_and_the_actor_is_who_asked() {
        let state = state(WEB, "users: {alice: operator}", None);
        for role in Role::ALL {
            let peer = "192.0.2.1".parse().unwrap();
            let who = Identity::known("alice".to_owned(), role, AuthMethod::Password, Some(peer));
            for needed in Role::ALL {
                assert_eq!(told(&state, &who, needed).is_ok(), needed <= role, "{role} {needed}");
            }
            let actor = state.authorize(&who, role, Source::Web).unwrap();
            assert_eq!(actor, Actor { name: "alice".to_owned(), role, source: Source::Web, from: Some(peer) });
        }
    }

    #[test]
    fn whoever_is_here_is_trusted_only_where_that_was_said_and_through_no_proxy() {
        let admin = Some(Loopback { role: Role::Admin, notice: "" });
        for (loopback, peer, header, means) in [
            (None, "127.0.0.1", None, AuthMethod::Nobody),
            (admin.clone(), "127.0.0.1", None, AuthMethod::Loopback),
            (admin.clone(), "::1", None, AuthMethod::Loopback),
            (admin.clone(), "192.0.2.1", None, AuthMethod::Nobody),
            (admin.clone(), "127.0.0.1", Some("X-Forwarded-For"), AuthMethod::Nobody),
            (admin, "127.0.0.1", Some("Forwarded"), AuthMethod::Nobody),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                let name: HeaderName = name.parse().unwrap();
                headers.insert(name, "192.0.2.1".parse().unwrap());
            }
            let identity = state("", "", loopback).nobody(&headers, Some(peer.parse().unwrap()));
            assert_eq!(identity.means, means, "{peer} {header:?}");
        }
    }
}
