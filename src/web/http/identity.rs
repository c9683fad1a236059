//! The identity of a client, and what it may do.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};

use super::context::HttpContext;
use super::problem::Problem;
use crate::actions::deposit::Allowance;
use crate::actions::{Actor, Role, Source};

/// Headers that a proxy on this machine adds for a client elsewhere.
const FORWARDED: [HeaderName; 5] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
];

/// How a client was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// It was not.
    Anonymous,
    /// By a user's password.
    Password,
    /// By a token.
    Token,
    /// It connects from this machine, and the server trusts all such clients.
    Loopback,
}

impl AuthMethod {
    /// The name in the API.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Password => "password",
            Self::Token => "token",
            Self::Loopback => "loopback",
        }
    }
}

/// The client of a request; an extension of every request that passes authentication, and an argument of handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name of the user or the token; empty for an anonymous client.
    pub(crate) name: String,
    /// What the client may do.
    pub(crate) role: Role,
    /// How the client was authenticated.
    pub(crate) method: AuthMethod,
    /// The address of the client, or of a proxy.
    pub(crate) peer: Option<IpAddr>,
}

impl Identity {
    pub(in crate::web) fn known(name: String, role: Role, method: AuthMethod, peer: Option<IpAddr>) -> Self {
        Self { name, role, method, peer }
    }

    /// An anonymous client of a role, to render pages for.
    pub(in crate::web) fn of_role(role: Role) -> Self {
        Self::known(String::new(), role, AuthMethod::Anonymous, None)
    }

    /// The role of users that the configuration gives none.
    pub(in crate::web) fn default_role() -> Role {
        Role::Viewer
    }

    /// Whether it may read the pages of the queue.
    pub(in crate::web) fn may_read(&self) -> bool {
        self.role >= Role::Viewer
    }

    fn anonymous(peer: Option<IpAddr>) -> Self {
        Self::known(String::new(), Self::default_role(), AuthMethod::Anonymous, peer)
    }
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = Infallible;

    /// The client as [`super::auth::check`] authenticated it; anonymous without that layer.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self::anonymous(None)))
    }
}

impl HttpContext {
    /// The identity of a client that sends no credentials, where reading needs no login.
    pub(in crate::web) fn anonymous(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Identity {
        match &self.config.loopback {
            Some(loopback) if is_local(peer, headers) => {
                Identity::known("loopback".to_owned(), loopback.role, AuthMethod::Loopback, peer)
            }
            Some(_) | None => Identity::anonymous(peer),
        }
    }

    /// Whether any client may request an action.
    pub(crate) fn takes_actions(&self) -> bool {
        self.config.loopback.is_some() || self.config_file().is_some_and(|file| file.allows_actions())
    }

    /// Authorizes a client for making deposits, and gives what it may deposit.
    ///
    /// # Errors
    /// As [`Self::authorize`].
    pub(crate) fn authorize_deposit(&self, who: &Identity, source: Source) -> Result<(Actor, Allowance), Problem> {
        if who.role == Role::Depositor {
            let allowance = self.config_file().and_then(|file| file.allowance(&who.name));
            let forbidden = || {
                let why = format!("{} has no entry below depositors in the file of --config.file.", who.name);
                Problem::new(StatusCode::FORBIDDEN, why)
            };
            let actor = Actor { name: who.name.clone(), role: who.role, source, from: who.peer };
            return Ok((actor, allowance.ok_or_else(forbidden)?));
        }
        Ok((self.authorize(who, Role::Operator, source)?, Allowance::default()))
    }

    /// Authorizes a client for what needs a role.
    ///
    /// # Errors
    /// When its role is not enough: a problem that names what is missing and how to get it.
    pub(crate) fn authorize(&self, who: &Identity, needed: Role, source: Source) -> Result<Actor, Problem> {
        if who.role >= needed && (needed == Role::Viewer || self.takes_actions()) {
            return Ok(Actor { name: who.name.clone(), role: who.role, source, from: who.peer });
        }
        let forbidden = |why: String| Err(Problem::new(StatusCode::FORBIDDEN, why));
        if !self.takes_actions() {
            return forbidden(
                "This server accepts no actions, because no user or token has a role that allows them. Start it with \
                 --config.file: a file that gives users of --web.config.file a role (users: {alice: operator}) or names a \
                 file of tokens (tokens_file: tokens.yml), which queuekeeper token creates."
                    .to_owned(),
            );
        }
        let (name, role) = (&who.name, who.role);
        match who.method {
            AuthMethod::Anonymous if self.config.loopback.is_some() => forbidden(format!(
                "This requires the role {needed}, which only clients on the server's machine have."
            )),
            AuthMethod::Anonymous if self.has_users() => {
                Err(self.challenge(format!("This requires the role {needed}. Log in.")))
            }
            AuthMethod::Anonymous => Err(self.challenge(format!(
                "This requires a token of the role {needed}: send it as Authorization: Bearer. A browser needs a user and \
                 a password, of which --web.config.file has none."
            ))),
            AuthMethod::Password => forbidden(format!(
                "This requires the role {needed}, but {name} is {role}. An administrator of the server assigns roles in \
                 the file of --config.file, below users."
            )),
            AuthMethod::Token => forbidden(format!(
                "This requires the role {needed}, but the token {name} has the role {role}. An administrator of the server can create one with queuekeeper token."
            )),
            AuthMethod::Loopback => forbidden(format!("This requires the role {needed}, but clients on this machine have {role}.")),
        }
    }
}

/// Whether a client is on this machine, as far as the connection and the headers show.
fn is_local(peer: Option<IpAddr>, headers: &HeaderMap) -> bool {
    peer.is_some_and(|peer| peer.is_loopback()) && !FORWARDED.iter().any(|name| headers.contains_key(name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prometheus_client::registry::Registry;

    use super::*;
    use crate::config::{Config, ConfigFile, Loopback, Secret, TokenLine, Web, WebFile};
    use crate::web::http::context::ServerContext;

    const WEB: &str = "basic_auth_users: {alice: $2b$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}";

    fn context(web: &str, file: &str, loopback: Option<Loopback>) -> HttpContext {
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
        let server = ServerContext::register(&mut Registry::default(), &config, []);
        HttpContext::new(config.web, Arc::new(server))
    }

    fn authorized(context: &HttpContext, who: &Identity, needed: Role) -> Result<(), (u16, usize, String)> {
        context.authorize(who, needed, Source::Api).map(drop).map_err(|problem| {
            let challenges = problem.headers.iter().filter(|(name, _)| name == header::WWW_AUTHENTICATE).count();
            (problem.status, challenges, problem.detail.into_owned())
        })
    }

    #[test]
    fn a_refusal_names_what_is_missing_and_how_to_get_it() {
        let someone = |method, role| {
            let name = if method == AuthMethod::Anonymous { "" } else { "alice" };
            Identity::known(name.to_owned(), role, method, Some("192.0.2.1".parse().unwrap()))
        };
        let trusted = Loopback { role: Role::Operator, notice: "" };
        let (anonymous, viewer) =
            (someone(AuthMethod::Anonymous, Role::Viewer), someone(AuthMethod::Password, Role::Viewer));
        let (open, closed) = ("", "{}");
        for (web, file, loopback, who, needed, expected) in [
            (WEB, "users: {alice: viewer}", None, &viewer, Role::Operator, (403, 0, "accepts no actions")),
            // A role alone is not enough where the server takes no actions any more.
            (open, closed, None, &someone(AuthMethod::Password, Role::Admin), Role::Admin, (403, 0, "--config.file")),
            (WEB, "users: {alice: operator}", None, &anonymous, Role::Operator, (401, 1, "Log in")),
            (
                WEB,
                "users: {alice: operator}\ntokens_file: tokens.yml",
                None,
                &anonymous,
                Role::Admin,
                (401, 2, "Log in"),
            ),
            (open, "tokens_file: tokens.yml", None, &anonymous, Role::Operator, (401, 1, "Authorization: Bearer")),
            (WEB, "users: {alice: admin}", None, &viewer, Role::Operator, (403, 0, "alice is viewer")),
            (
                WEB,
                "users: {alice: admin}",
                None,
                &someone(AuthMethod::Token, Role::Operator),
                Role::Admin,
                (403, 0, "the token alice has the role operator"),
            ),
            (open, closed, Some(&trusted), &anonymous, Role::Operator, (403, 0, "on the server's machine")),
            (
                open,
                closed,
                Some(&trusted),
                &someone(AuthMethod::Loopback, Role::Operator),
                Role::Admin,
                (403, 0, "requires the role admin"),
            ),
        ] {
            let context = context(web, file, loopback.cloned());
            let (status, challenges, text) = authorized(&context, who, needed).unwrap_err();
            assert_eq!((status, challenges), (expected.0, expected.1), "{file:?}: {text}");
            assert!(text.contains(expected.2), "{text}");
        }
    }

    #[test]
    fn each_role_includes_those_below_it_and_the_actor_is_the_client() {
        let context = context(WEB, "users: {alice: operator}", None);
        for role in Role::ALL {
            let peer = "192.0.2.1".parse().unwrap();
            let who = Identity::known("alice".to_owned(), role, AuthMethod::Password, Some(peer));
            for needed in Role::ALL {
                assert_eq!(authorized(&context, &who, needed).is_ok(), needed <= role, "{role} {needed}");
            }
            let actor = context.authorize(&who, role, Source::Web).unwrap();
            assert_eq!(actor, Actor { name: "alice".to_owned(), role, source: Source::Web, from: Some(peer) });
        }
    }

    #[test]
    fn local_clients_are_trusted_only_where_configured_and_not_through_a_proxy() {
        let admin = Some(Loopback { role: Role::Admin, notice: "" });
        for (loopback, peer, header, method) in [
            (None, "127.0.0.1", None, AuthMethod::Anonymous),
            (admin.clone(), "127.0.0.1", None, AuthMethod::Loopback),
            (admin.clone(), "::1", None, AuthMethod::Loopback),
            (admin.clone(), "192.0.2.1", None, AuthMethod::Anonymous),
            (admin.clone(), "127.0.0.1", Some("X-Forwarded-For"), AuthMethod::Anonymous),
            (admin, "127.0.0.1", Some("Forwarded"), AuthMethod::Anonymous),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(name) = header {
                let name: HeaderName = name.parse().unwrap();
                headers.insert(name, "192.0.2.1".parse().unwrap());
            }
            let identity = context("", "", loopback).anonymous(&headers, Some(peer.parse().unwrap()));
            assert_eq!(identity.method, method, "{peer} {header:?}");
        }
    }
}
