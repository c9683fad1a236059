//! The addresses in the files: where people reach the status page, and where programs reach the server.

use std::borrow::Cow;

use crate::config::Web;

/// Where the files expect the status page.
const LOCAL: &str = "http://127.0.0.1:12181";

/// Where the alerts' links lead: to the queuekeeper that was scraped.
const SCRAPED: &str = "http://{{ $labels.instance }}";

/// Where Prometheus expects the metrics.
const METRICS_PATH: &str = "metrics_path: /metrics\n";

/// How the server that the files are for is reached.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Where the status page is, without a slash at the end.
    page: String,
    /// What the links of alerts begin with.
    of_alerts: String,
    /// The line that says where Prometheus finds the metrics. It scrapes the server itself, whatever proxy stands before
    /// the page, so only the prefix that the server knows stands before their path.
    metrics_path: String,
}

impl Addresses {
    pub(crate) fn of(web: &Web) -> Self {
        let prefix = web.route_prefix.as_str();
        let external = web.external_url.as_ref().map(|url| url.to_string().trim_end_matches('/').to_owned());
        let or = |other: &str| external.clone().unwrap_or_else(|| format!("{other}{prefix}"));
        let metrics_path = format!("metrics_path: {prefix}{}\n", web.telemetry_path.as_str());
        Self { page: or(LOCAL), of_alerts: or(SCRAPED), metrics_path }
    }

    /// What a file says, with these addresses in it.
    pub(crate) fn put_into(&self, text: &'static str) -> Cow<'static, str> {
        let mut text = Cow::Borrowed(text);
        for (there, wanted) in [(SCRAPED, &self.of_alerts), (LOCAL, &self.page), (METRICS_PATH, &self.metrics_path)] {
            if there != wanted && text.contains(there) {
                text = text.replace(there, wanted).into();
            }
        }
        text
    }
}
