//! `queuekeeper probe`: the health check of a container that has no other program.

use std::time::Duration;

use clap::Args;
use reqwest::{Client, Url, redirect};

use super::exit::{CommandError, FAILED};
use super::{UsageError, exit, output};
use crate::config::ListenAddress;
use crate::views::show::visible;

/// The part of an answer that is shown, in characters: of several queues it has a line for each that is not ready.
const SHOWN: usize = 4096;

/// Request /-/ready or /-/healthy of a service, for the health check of a container; exits with 0 if it answers 200
///
/// Like the probes of Kubernetes, it does not verify the certificate of an https address: the service is usually
/// reached by an address that its certificate does not name, and nothing secret is sent.
#[derive(Clone, Debug, Args)]
pub(super) struct ProbeArgs {
    /// The address of the probe
    #[arg(value_name = "URL", default_value_t = ready())]
    url: Url,

    /// The timeout in seconds
    #[arg(long = "timeout", value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=300))]
    seconds: u64,
}

/// Where a service with the default address answers whether it is ready.
fn ready() -> Url {
    let url = format!("http://{}/-/ready", ListenAddress::DEFAULT);
    Url::parse(&url).expect("the default address is one")
}

impl ProbeArgs {
    /// Requests the address, and writes what it answers.
    ///
    /// # Errors
    /// When there is no answer in time, or another than 200.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        if !matches!(self.url.scheme(), "http" | "https") {
            return Err(UsageError::flag("URL", "must begin with http:// or https://").into());
        }
        let client = Client::builder()
            .timeout(Duration::from_secs(self.seconds))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .tls_danger_accept_invalid_certs(true)
            .build()?;
        let url = self.url.to_string();
        let failed = |why: String| CommandError::new(FAILED, format!("{} {why}", visible(&url)));
        let response = client.get(self.url).send().await.map_err(|error| {
            let why = exit::with_causes(&error.without_url().into());
            failed(format!("does not answer: {why}"))
        })?;
        let status = response.status();
        let body = response.text().await.unwrap_or_default();
        let shown: String = body.trim().chars().take(SHOWN).collect();
        let lines: Vec<_> = shown.lines().map(|line| format!("{}\n", visible(line))).collect();
        output::write(&lines.concat())?;
        if status == reqwest::StatusCode::OK { Ok(()) } else { Err(failed(format!("answers {status}")).into()) }
    }
}
