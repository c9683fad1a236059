//! Users with passwords, and programs with tokens.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State as FromState};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use self::authenticator::Verdict;
use self::standing::By;
use super::host::Ends;
use super::identity::{AuthMethod, Identity};
use super::layers::Refused;
use super::problem::Problem;
use crate::actions::Role;
use crate::config::Users;
use crate::web::State;
use crate::web::api;

mod authenticator;
mod credentials;
mod logins;
mod standing;
mod throttle;

pub(in crate::web) use authenticator::Authenticator;
pub(in crate::web) use credentials::Credentials;
pub(in crate::web) use standing::Standing;

const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"queuekeeper\", charset=\"UTF-8\"");
const BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"queuekeeper\"");
const BAD_BEARER: HeaderValue = HeaderValue::from_static("Bearer realm=\"queuekeeper\", error=\"invalid_token\"");

impl State {
    /// The users of the web configuration; `None` where there are none, so that everyone may read.
    fn users(&self) -> Option<Arc<Users>> {
        self.web_file().map(|file| Arc::clone(file.users())).filter(|users| !users.is_empty())
    }

    /// Who asks, or why that cannot be believed.
    async fn identify(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Standing, Problem> {
        let (users, file) = (self.users(), self.file());
        let tokens = file.as_ref().map(|file| file.tokens()).filter(|tokens| !tokens.is_empty());
        let authenticator = &self.shared.authenticator;
        // Where there is nobody to log in as, credentials are meant for somebody else, such as a proxy.
        let verdict = match (Credentials::read(headers), &users, tokens) {
            (Some(Credentials::Password(login)), Some(users), _) => {
                authenticator.verify(users, login, peer).await.map(|name| {
                    let role = file.as_ref().map_or_else(Identity::least, |file| file.role(&name));
                    let by = By::Password(users.hash(&name).unwrap_or_default().to_owned());
                    Standing::new(Identity::known(name, role, AuthMethod::Password, peer), by)
                })
            }
            (Some(Credentials::Token(token)), _, Some(tokens)) => {
                authenticator.recognise(tokens, &token, peer).await.map(|token| {
                    let by = By::Token(token.hash());
                    Standing::new(Identity::known(token.name.clone(), token.role, AuthMethod::Token, peer), by)
                })
            }
            (_, Some(_), _) => {
                return Err(self.challenge("This server wants a user and a password, or a token, that it knows."));
            }
            (_, None, _) => return Ok(Standing::new(self.nobody(headers, peer), By::Nothing)),
        };
        match verdict {
            Verdict::Right(standing) => Ok(standing),
            Verdict::Wrong if users.is_none() => Err(bad_token("This server does not know the token.")),
            Verdict::Wrong => {
                Err(self.challenge("This server wants a user and a password, or a token, that it knows."))
            }
            Verdict::Expired(at) => Err(bad_token(format!(
                "The token expired at {at}. Whoever runs the server makes another with queuekeeper token."
            ))),
            Verdict::Busy => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Too many logins are being verified. Try again in a moment.",
            )
            .with(header::RETRY_AFTER, HeaderValue::from_static("5"))),
        }
    }

    /// A request to log in, by each means that there is.
    pub(in crate::web) fn challenge(&self, why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
        let mut problem = Problem::new(StatusCode::UNAUTHORIZED, why);
        if self.users().is_some() {
            problem = problem.with(header::WWW_AUTHENTICATE, BASIC);
        }
        if self.file().is_some_and(|file| !file.tokens().is_empty()) {
            problem = problem.with(header::WWW_AUTHENTICATE, BEARER);
        }
        problem
    }

    /// Whether somebody has to log in to read.
    pub(in crate::web) fn has_users(&self) -> bool {
        self.users().is_some()
    }
}

fn bad_token(why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, why).with(header::WWW_AUTHENTICATE, BAD_BEARER)
}

/// Finds out who asks, and lets him in where he may read; the probes are for everyone.
pub(in crate::web) async fn check(FromState(state): FromState<State>, mut request: Request, next: Next) -> Response {
    // By the route that was found, so that no way of writing an address can look like a probe and be a page.
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let route = route.and_then(|route| route.strip_prefix(state.shared.config.web.route_prefix.as_str()));
    if matches!(route, Some("/-/healthy" | "/-/ready")) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Ends>().map(|ends| ends.peer);
    match state.identify(request.headers(), peer).await {
        // Who tells of alerts looks at nothing.
        Ok(Standing { identity, .. }) if identity.role < Role::Viewer && route != Some(api::ALERTS) => {
            let why = format!("{} tells of alerts, and may do nothing else.", identity.name);
            let mut response = Problem::new(StatusCode::FORBIDDEN, why).into_response();
            response.extensions_mut().insert(Refused);
            response
        }
        Ok(standing) => {
            request.extensions_mut().insert(standing.identity.clone());
            request.extensions_mut().insert(standing);
            next.run(request).await
        }
        Err(problem) => {
            let mut response = problem.into_response();
            response.extensions_mut().insert(Refused);
            response
        }
    }
}
