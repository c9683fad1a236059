//! A deposit by way of a server: over HTTP, uploaded in as many parts as the connection breaks it into.

mod receipt;
mod upload;
mod withdraw;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use futures::TryStreamExt as _;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_store::{Algorithm, Hashers};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::Value;
use uuid::Uuid;

use super::SubmitArgs;
use super::payload::{Content, Payload};
use crate::actions::deposit::DepositRequest;
use crate::cli::UsageError;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND, REFUSED, UNKNOWN};
use crate::cli::output::{Spinner, note};
use crate::config::Secret;

/// How long an answer to a request without content may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer that is read, in bytes.
const MOST_ANSWER: usize = 4 << 20;

/// For how long a request is repeated to a server that does not answer.
const RETRY_LIMIT: Duration = Duration::from_mins(3);

/// The pause before it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// How much of the content its type is guessed from, in bytes.
const START: u64 = 4_096;

/// Which server takes the deposit.
#[derive(Clone, Debug, Args)]
pub(super) struct ServerArgs {
    /// The URL of a server that accepts deposits: that of its overview page
    #[arg(long = "server", value_name = "URL", conflicts_with_all = ["data", "working", "profiles"])]
    server: Option<String>,

    /// The file with the token for that server; without it, the request is made as a local user
    #[arg(long = "token-file", value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,

    /// A text of your choice that identifies this deposit: repeated with it, the same deposit is made only once and its
    /// upload resumes; a different deposit is refused [default: a new one]
    #[arg(long = "key", value_name = "TEXT", conflicts_with = "uuid", help_heading = "Deposit")]
    pub(super) key: Option<String>,
}

/// A server that takes deposits.
pub(super) struct Server {
    client: Client,
    /// Without a slash at the end.
    url: String,
    token: Option<Secret>,
    key: String,
    /// Whether the deposit has a key that was made for this run: without it, the same command makes another one.
    has_own_key: bool,
}

/// Why a request was not answered as it should be.
enum SubmitFailure {
    /// It may be by the next time.
    Passing(String),
    /// The same where another request may be the reason.
    Conflict(String),
    /// It is refused.
    Final(CommandError),
}

impl ServerArgs {
    /// The server, where one is named; whether a deposit is made there.
    pub(super) fn connect(&self, makes_deposit: bool) -> anyhow::Result<Option<Server>> {
        let Some(text) = &self.server else { return Ok(None) };
        let url: Url = text.parse().map_err(|error| UsageError::flag("--server", error))?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_bare {
            let why = "expected http or https, without a user, a password and a query; a token is for --token-file";
            return Err(UsageError::flag("--server", why).into());
        }
        let token = self.token_file.as_ref().map(|path| {
            let wrong =
                |why: &dyn std::fmt::Display| UsageError::flag("--token-file", format!("{}: {why}", path.display()));
            let file = File::open(path).map_err(|error| wrong(&error))?;
            Secret::read(file).map_err(|error| wrong(&error))
        });
        let client = Client::builder().redirect(redirect::Policy::none()).no_proxy();
        // An answer to an upload may be long in coming, as its digest is computed first.
        let client = client.connect_timeout(TIMEOUT).tcp_keepalive(TIMEOUT).build().context("cannot set up TLS")?;
        let key = self.key.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let url = url.as_str().trim_end_matches('/').to_owned();
        let has_own_key = makes_deposit && self.key.is_none();
        Ok(Some(Server { client, url, token: token.transpose()?, key, has_own_key }))
    }
}

impl SubmitArgs {
    /// Makes the deposit by way of a server, and waits for its report where that is requested.
    ///
    /// # Errors
    /// When it is refused, cannot be made, or a job of it failed.
    pub(super) async fn send_to(&self, server: &Server) -> anyhow::Result<()> {
        let payload = self.payload()?;
        let mut deposit = self.deposit(&payload)?;
        let content = payload.content().await?;
        if self.check {
            let found = match &content {
                Some(content) => Some(self.read_manifest(&deposit, content).await?),
                None => None,
            };
            if let Some(found) = found.as_ref().filter(|found| !found.problems.is_empty()) {
                return self.print_findings(found);
            }
            let request = request(&deposit, &payload, content.as_ref());
            let mut view = server.begin(&request, true).await?;
            let (batches, warnings) = found.map(|found| (found.batches, found.warnings)).unwrap_or_default();
            if let Some(batches) = batches {
                view["batches"] = batches.into();
            }
            view["warnings"] = warnings.clone().into();
            let left = view["urls_not_requested"].as_u64().unwrap_or(0);
            let left = if left > 0 { format!("; {left} URLs were not requested") } else { String::new() };
            let batches = view["batches"].as_u64().filter(|batches| *batches > 1);
            let batches = batches.map(|batches| format!(", as {batches} batches")).unwrap_or_default();
            return self.output.show(&view, |screen| {
                screen.say(&format!("the server would accept it{batches}{left}"));
                for warning in warnings {
                    screen.say(&format!("warning: {warning}"));
                }
            });
        }
        let start = match &content {
            Some(content) => read(content, Some(START)).await?.0,
            None => Vec::new(),
        };
        deposit.check_start(&start).map_err(|error| CommandError::new(REFUSED, error.to_string()))?;
        if let (Some(content), None) = (&content, &deposit.digest) {
            // What arrives is compared with it.
            let _spinner = Spinner::start("computing the digest");
            deposit.digest = read(content, None).await?.1;
        }
        let request = request(&deposit, &payload, content.as_ref());
        let mut view = server.begin(&request, false).await?;
        if let (Some(content), "uploading") = (&content, state(&view)) {
            view = server.upload(&view, content).await?;
        }
        let id = view["id"].as_str().unwrap_or_default().to_owned();
        let batch = view["batch"].as_str().and_then(|batch| batch.parse().ok());
        let batch = batch.ok_or_else(|| CommandError::new(FAILED, format!("{id} has no batch; {}", said(&view))))?;
        self.receive(server, (batch, &id, Some(deposit.kind_of(&start)))).await
    }
}

/// What is requested of the server.
fn request(deposit: &NewDeposit, payload: &Payload, content: Option<&Content>) -> DepositRequest {
    DepositRequest {
        profile: deposit.profile.clone(),
        filename: deposit.file_name.clone(),
        kind: deposit.kind.map(|kind| kind.to_string()),
        url: if let Payload::Url(url) = payload { Some(url.reveal().to_string()) } else { None },
        size: content.map(Content::size),
        digest: deposit.digest.as_ref().map(|digest| format!("{}:{}", digest.algorithm(), digest.hex())),
        title: deposit.title.clone(),
        creator: deposit.creator.clone(),
        date: deposit.date.clone(),
        note: deposit.note.clone(),
        ark: deposit.primary_id.clone(),
        local_ids: deposit.local_ids.clone(),
        notification: deposit.notification.clone(),
        update: deposit.is_update,
    }
}

/// The first bytes of the content, or its digest by reading all of it.
async fn read(content: &Content, most: Option<u64>) -> anyhow::Result<(Vec<u8>, Option<queuekeeper_store::Digest>)> {
    use std::io::Read as _;
    let mut content = content.read_from(0);
    let read = tokio::task::spawn_blocking(move || {
        if let Some(most) = most {
            let mut start = Vec::new();
            content.take(most).read_to_end(&mut start)?;
            return Ok((start, None));
        }
        let (mut hashers, mut piece) = (Hashers::new([Algorithm::Sha256]), vec![0; upload::PIECE]);
        loop {
            match content.read(&mut piece)? {
                0 => return Ok((Vec::new(), hashers.finish().get(Algorithm::Sha256).cloned())),
                bytes => hashers.update(&piece[..bytes]),
            }
        }
    });
    read.await?.map_err(|error: std::io::Error| CommandError::new(FAILED, error.to_string()).into())
}

fn state(view: &Value) -> &str {
    view["state"].as_str().unwrap_or_default()
}

/// A text of an answer.
fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// A sentence of a server as errors are written here: a name at its beginning stays as it is.
fn unsentence(detail: &str) -> String {
    let text = detail.trim_end_matches('.');
    let word = text.split(' ').next().unwrap_or_default();
    let is_word = word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    match text.get(..1) {
        Some(first) if is_word => format!("{}{}", first.to_ascii_lowercase(), &text[1..]),
        Some(_) | None => text.to_owned(),
    }
}

impl Server {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}/api/v1/deposits{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            // Without users, a server takes what a browser does not send on behalf of another page.
            None => request.header("sec-fetch-site", "none"),
        }
    }

    /// Sends what is deposited. Sent again with its key, it is the same deposit.
    async fn begin(&self, request: &DepositRequest, is_dry_run: bool) -> Result<Value, CommandError> {
        let path = if is_dry_run { "?dry_run=true" } else { "" };
        // It holds texts and numbers.
        let body = serde_json::to_string(request).unwrap_or_default();
        self.insist(async || {
            let request = self.request(Method::POST, path).header("content-type", "application/json");
            let request = request.header("idempotency-key", &self.key).timeout(TIMEOUT).body(body.clone());
            self.answer(request.send().await).await
        })
        .await
    }

    /// The deposit as it is.
    async fn find(&self, id: &str) -> Result<Value, SubmitFailure> {
        self.answer(self.request(Method::GET, &format!("/{id}")).timeout(TIMEOUT).send().await).await
    }

    /// Asks again while there is no answer.
    async fn insist(&self, ask: impl AsyncFn() -> Result<Value, SubmitFailure>) -> Result<Value, CommandError> {
        self.insist_on(ask, |why| self.given_up(why)).await
    }

    /// The same, with what is said once the server was asked for long enough.
    async fn insist_on(
        &self,
        ask: impl AsyncFn() -> Result<Value, SubmitFailure>,
        given_up: impl Fn(&str) -> CommandError,
    ) -> Result<Value, CommandError> {
        let began = tokio::time::Instant::now();
        let mut said = None;
        loop {
            let why = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(SubmitFailure::Final(error)) => return Err(error),
                Err(SubmitFailure::Passing(why) | SubmitFailure::Conflict(why)) if began.elapsed() > RETRY_LIMIT => {
                    return Err(given_up(&why));
                }
                Err(SubmitFailure::Passing(why) | SubmitFailure::Conflict(why)) => why,
            };
            // Each failure once: who waits knows for what.
            if said.as_ref() != Some(&why) {
                let left = RETRY_LIMIT.saturating_sub(began.elapsed()).as_secs();
                note(&format!("{why}; trying again for up to {left} s"));
                said = Some(why);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// That the server was asked for long enough.
    fn given_up(&self, why: &str) -> CommandError {
        let how = if self.has_own_key {
            format!("with --key '{}'; without it, a second deposit is made", self.key)
        } else {
            "again".to_owned()
        };
        CommandError::new(UNKNOWN, format!("{why}; to resume, run the same command {how}"))
    }

    /// The answer of a request, or what is wrong.
    async fn answer(&self, sent: Result<Response, reqwest::Error>) -> Result<Value, SubmitFailure> {
        let passing = |error: reqwest::Error| SubmitFailure::Passing(self.unreachable(&error));
        let response = sent.map_err(passing)?;
        let status = response.status();
        let (mut body, mut pieces) = (Vec::new(), response.bytes_stream());
        while let Some(piece) = pieces.try_next().await.map_err(passing)? {
            body.extend_from_slice(&piece);
            if body.len() > MOST_ANSWER {
                let why = format!("{} answers with more than {} MiB", self.url, MOST_ANSWER >> 20);
                return Err(SubmitFailure::Final(CommandError::new(FAILED, why)));
            }
        }
        let value: Option<Value> = serde_json::from_slice(&body).ok();
        if status.is_success()
            && let Some(value) = value
        {
            return Ok(value);
        }
        let detail = value.as_ref().and_then(|problem| problem["detail"].as_str());
        let Some(detail) = detail else {
            let why = format!(
                "{} answers {status} with a body that is not from queuekeeper; is it another program?",
                self.url
            );
            return Err(if status.is_server_error() {
                SubmitFailure::Passing(why)
            } else {
                SubmitFailure::Final(CommandError::new(FAILED, why))
            });
        };
        let why = unsentence(detail);
        let code = match status {
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                return Err(SubmitFailure::Passing(why));
            }
            StatusCode::CONFLICT => return Err(SubmitFailure::Conflict(why)),
            StatusCode::NOT_FOUND => NOT_FOUND,
            status if status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE => REFUSED,
            _ => FAILED,
        };
        Err(SubmitFailure::Final(CommandError::new(code, why)))
    }

    fn unreachable(&self, error: &reqwest::Error) -> String {
        // Its innermost cause says what went wrong; the outer ones repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = if error.is_timeout() { format!("not within {} s", TIMEOUT.as_secs()) } else { cause.to_string() };
        format!("{} does not answer: {why}", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_gives_up_says_how_the_same_deposit_goes_on() {
        let said = |key: Option<&str>, makes_deposit| {
            let (server, key) = (Some("http://localhost:1".to_owned()), key.map(ToOwned::to_owned));
            let server = ServerArgs { server, token_file: None, key }.connect(makes_deposit).unwrap().unwrap();
            (server.given_up("no answer").to_string(), server.key)
        };
        let (made, key) = said(None, true);
        let with_key = format!(
            "no answer; to resume, run the same command with --key '{key}'; without it, a second deposit is made"
        );
        assert_eq!(made, with_key);
        for (key, makes_deposit) in [(Some("mine"), true), (None, false)] {
            assert_eq!(said(key, makes_deposit).0, "no answer; to resume, run the same command again");
        }
    }
}
