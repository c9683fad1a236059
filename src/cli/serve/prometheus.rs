//! The Prometheus server that scrapes this one.

use clap::Args;

use crate::cli::UsageError;
use crate::config::{ExternalUrl, PrometheusConfig};

/// The options of charts that reach further back than the mirror.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Charts")]
pub(in crate::cli) struct PrometheusArgs {
    /// The Prometheus server that scrapes this one, for charts of more than six hours
    #[arg(long = "prometheus.url", value_name = "URL", help_heading = "Charts")]
    url: Option<ExternalUrl>,

    /// Label matchers that select the series of this queue there, such as job="queuekeeper"; by default, all series
    #[arg(
        long = "prometheus.matchers",
        value_name = "MATCHERS",
        default_value = "",
        hide_default_value = true,
        help_heading = "Charts"
    )]
    matchers: String,
}

impl PrometheusArgs {
    /// The server, where one is named.
    ///
    /// # Errors
    /// When there are matchers for no server, or they are not written as within a selector.
    pub(in crate::cli) fn prometheus(self) -> Result<Option<PrometheusConfig>, UsageError> {
        let Self { url, matchers } = self;
        let refused = |why: &str| Err(UsageError::flag("--prometheus.matchers", why));
        let matchers = matchers.trim().to_owned();
        match url {
            None if !matchers.is_empty() => refused("it requires --prometheus.url"),
            _ if matchers.contains(['{', '}', '\n']) => {
                refused("expected matchers without braces, such as job=\"queuekeeper\"")
            }
            url => Ok(url.map(|url| PrometheusConfig { url, matchers })),
        }
    }
}
