//! Authentication: users with passwords, and programs with tokens.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use self::authentication::Evidence;
use self::authenticator::LoginOutcome;
use super::address::ConnectionAddresses;
use super::context::HttpContext;
use super::identity::{AuthMethod, Identity};
use super::problem::Problem;
use crate::actions::Role;
use crate::web::routes::{
    ALERTS, ASSETS, DELIVERY, DEPOSITS, HEALTHY, ICON, IDENTITY, POSTER_ROOT, READY, STORE_EVENTS, SUBMIT,
};
use crate::words::moment;

mod authentication;
pub(super) mod authenticator;
mod credentials;
mod metrics;
mod throttle;

pub(in crate::web) use authentication::Authentication;
pub(in crate::web) use credentials::Credentials;

const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"queuekeeper\", charset=\"UTF-8\"");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"queuekeeper\"");
const BAD_BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"queuekeeper\", error=\"invalid_token\"");

/// The routes besides those of deposits that depositors need: the caller itself, and what pages are made of.
const OF_DEPOSITORS: [&str; 3] = [IDENTITY, ASSETS, ICON];

/// The detail of a 401 where the server has users.
pub(super) const LOGIN_REQUIRED: &str = "Authentication required: a user and a password, or a token.";

impl HttpContext {
    /// Authenticates a request.
    ///
    /// # Errors
    /// Where the credentials are missing or not accepted: a problem to answer with.
    async fn authenticate(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Authentication, Problem> {
        let (users, file) = (self.users(), self.config_file());
        let tokens = file.as_ref().map(|file| file.tokens()).filter(|tokens| !tokens.is_empty());
        let authenticator = &self.server.authenticator;
        // Without users or tokens here, credentials are meant for another server, such as a proxy.
        let outcome = match (Credentials::read(headers), &users, tokens) {
            (Some(Credentials::Password(login)), Some(users), _) => {
                authenticator.verify_password(users, login, peer).await.map(|name| {
                    let role = file.as_ref().map_or_else(Identity::default_role, |file| file.role(&name));
                    let evidence = Evidence::Password(users.hash(&name).unwrap_or_default().to_owned());
                    Authentication::new(Identity::known(name, role, AuthMethod::Password, peer), evidence)
                })
            }
            (Some(Credentials::Token(token)), _, Some(tokens)) => {
                authenticator.verify_token(tokens, &token, peer).await.map(|token| {
                    let evidence = Evidence::Token(token.hash());
                    Authentication::new(
                        Identity::known(token.name.clone(), token.role, AuthMethod::Token, peer),
                        evidence,
                    )
                })
            }
            (_, Some(_), _) => {
                return Err(self.challenge(LOGIN_REQUIRED));
            }
            (_, None, _) => return Ok(Authentication::new(self.anonymous(headers, peer), Evidence::None)),
        };
        match outcome {
            LoginOutcome::Accepted(authentication) => Ok(authentication),
            LoginOutcome::Rejected if users.is_none() => Err(bad_token("Unknown token.")),
            LoginOutcome::Rejected => Err(self.challenge(LOGIN_REQUIRED)),
            LoginOutcome::Expired(at) => Err(bad_token(format!(
                "The token expired at {}. An administrator of the server can create a new one with queuekeeper token.",
                moment(at)
            ))),
            LoginOutcome::Busy => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many logins in progress. Try again in a moment.",
            )
            .with(header::RETRY_AFTER, HeaderValue::from_static("5"))),
        }
    }

    /// A 401 with a challenge for each method that the server has credentials for.
    pub(in crate::web) fn challenge(&self, why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
        let mut problem = Problem::new(StatusCode::UNAUTHORIZED, why);
        if self.users().is_some() {
            problem = problem.with(header::WWW_AUTHENTICATE, BASIC);
        }
        if self.config_file().is_some_and(|file| !file.tokens().is_empty()) {
            problem = problem.with(header::WWW_AUTHENTICATE, BEARER);
        }
        problem
    }

    /// Whether reading needs a login.
    pub(in crate::web) fn has_users(&self) -> bool {
        self.users().is_some()
    }
}

fn bad_token(why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, why).with(header::WWW_AUTHENTICATE, BAD_BEARER)
}

/// Whether a role may use a route at all. What the roles below viewer may use is named here, and nothing else.
fn is_open_to(role: Role, route: Option<&str>) -> bool {
    let Some(route) = route else { return role >= Role::Viewer };
    match role {
        Role::Alertmanager => route == ALERTS,
        Role::StoreEvents => route == STORE_EVENTS,
        Role::Depositor => {
            let below =
                |root: &str| route.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            below(DEPOSITS) || below(SUBMIT) || route.starts_with(POSTER_ROOT) || OF_DEPOSITORS.contains(&route)
        }
        Role::Viewer | Role::Operator | Role::Admin => true,
    }
}

/// Authenticates every request but those to the probes and those by links that are signed, and passes those that may
/// read.
pub(in crate::web) async fn check(
    FromState(context): FromState<Arc<HttpContext>>,
    mut request: Request,
    next: Next,
) -> Response {
    // By the matched route, so that no spelling of an address can look like a probe and be a page.
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = route.and_then(|route| route.strip_prefix(context.config.route_prefix.as_str()));
    if matches!(route, Some(HEALTHY | READY | DELIVERY)) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<ConnectionAddresses>().map(|addresses| addresses.peer);
    match context.authenticate(request.headers(), peer).await {
        Ok(Authentication { identity, .. }) if !is_open_to(identity.role, route) => {
            let only = match identity.role {
                Role::Alertmanager => "send alerts",
                Role::StoreEvents => "send messages of a store",
                Role::Depositor | Role::Viewer | Role::Operator | Role::Admin => "make deposits",
            };
            let what = if identity.method == AuthMethod::Token { "The token " } else { "" };
            Problem::new(StatusCode::FORBIDDEN, format!("{what}{} may only {only}.", identity.name)).refuse()
        }
        Ok(authentication) => {
            request.extensions_mut().insert(authentication.identity.clone());
            request.extensions_mut().insert(authentication);
            next.run(request).await
        }
        Err(problem) => problem.refuse(),
    }
}
