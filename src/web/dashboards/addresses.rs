//! What of the files depends on the server: its addresses, and the name of the queue among several.

use std::borrow::Cow;

use crate::config::Web;
use crate::metrics::DEPLOYMENT;

/// The address of the status page in the embedded files.
const LOCAL: &str = "http://127.0.0.1:12181";

/// The address in links of alerts: the scraped instance.
const SCRAPED: &str = "http://{{ $labels.instance }}";

/// The path of the metrics in the embedded files.
const METRICS_PATH: &str = "metrics_path: /metrics\n";

/// The alerts that Alertmanager sends to this server.
const ROUTE: &str = "    - receiver: queuekeeper\n      matchers:\n";

/// The addresses of this server.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The address of the status page, without a slash at the end.
    page: String,
    /// The beginning of links in alerts.
    of_alerts: String,
    /// The line with the path of the metrics. Prometheus scrapes the server itself and not through a proxy, so the path
    /// has only the server's own prefix.
    metrics_path: String,
    /// The beginning of the route of alerts, with the name of the queue among several.
    route: String,
}

impl Addresses {
    pub(crate) fn of(web: &Web) -> Self {
        let below = web.deployment().map(|name| format!("/{name}")).unwrap_or_default();
        // The pages of all queues are beside those of each.
        let prefix = web.route_prefix.as_str();
        let prefix = prefix.strip_suffix(&below).unwrap_or(prefix);
        let external = web.external_url.as_ref().map(|url| url.to_string().trim_end_matches('/').to_owned());
        let or = |other: &str| external.clone().unwrap_or_else(|| format!("{other}{prefix}"));
        let metrics_path = format!("metrics_path: {prefix}{}\n", web.telemetry_path.as_str());
        // An alert of the process is of no queue: any has the runbook.
        let of_alert = web.deployment().map(|name| format!("/{{{{ or $labels.deployment \"{name}\" }}}}"));
        let of_queue = web.deployment().map(|name| format!("        - {DEPLOYMENT} = \"{name}\"\n"));
        Self {
            page: format!("{}{below}", or(LOCAL)),
            of_alerts: format!("{}{}", or(SCRAPED), of_alert.unwrap_or_default()),
            metrics_path,
            route: format!("{ROUTE}{}", of_queue.unwrap_or_default()),
        }
    }

    /// A file with these addresses in it.
    pub(crate) fn put_into(&self, text: &'static str) -> Cow<'static, str> {
        let mut text = Cow::Borrowed(text);
        for (there, wanted) in
            [(SCRAPED, &self.of_alerts), (LOCAL, &self.page), (METRICS_PATH, &self.metrics_path), (ROUTE, &self.route)]
        {
            if there != wanted && text.contains(there) {
                text = text.replace(there, wanted).into();
            }
        }
        text
    }
}
