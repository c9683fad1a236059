//! Our own HTTP server, as it is used.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The upper bounds of the six buckets, in seconds; the sixth is without bound.
const BUCKETS: [f64; 5] = [0.001, 0.005, 0.025, 0.1, 1.0];

/// The route of a request that no route matched.
pub const UNMATCHED: &str = "unmatched";

/// The route of a request that was refused before its route counted: a foreign host, a missing password.
pub const REFUSED: &str = "refused";

/// The methods that get a label value of their own.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// `queuekeeper_http_*`. Clones share the families.
#[derive(Clone, Debug)]
pub struct Http {
    routes: Arc<[Route]>,
    unmatched: Arc<Route>,
    refused: Arc<Route>,
    requests: Family<RequestLabels, Counter>,
    durations: Durations,
}

type Durations = Family<DurationLabels, Histogram, fn() -> Histogram>;

#[derive(Debug)]
struct Route {
    pattern: Arc<str>,
    is_timed: bool,
}

/// A route that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its pattern.
    pub pattern: &'a str,
    /// Whether it answers GET; one that does not answers POST.
    pub is_read: bool,
    /// Whether its answers are made anew each time, so that it is worth knowing how long they take.
    pub is_timed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    route: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: Arc<str>,
    method: &'static str,
    code: u16,
}

impl Http {
    /// Registers the families, with every route there is.
    ///
    /// Each has one answer from the start, of those that it can give; the others appear when they are seen. A histogram
    /// is eight series: it appears with the first request, since most routes are never requested and no alert needs
    /// one, and those have none whose answers are bytes that the program carries.
    #[must_use]
    pub fn register<'a>(registry: &mut Registry, routes: impl IntoIterator<Item = Known<'a>>) -> Self {
        let durations: Durations = Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let requests = Family::<RequestLabels, Counter>::default();
        let route = |pattern: &str, method, code, is_timed: bool| {
            let pattern: Arc<str> = pattern.into();
            drop(requests.get_or_create_owned(&RequestLabels { route: Arc::clone(&pattern), method, code }));
            Route { pattern, is_timed }
        };
        // What takes only POST is never read with 200, and answers 400 to what it cannot understand.
        let known = |Known { pattern, is_read, is_timed }| {
            let (method, code) = if is_read { ("GET", 200) } else { ("POST", 400) };
            route(pattern, method, code, is_timed)
        };
        let routes = routes.into_iter().map(known).collect();
        let unmatched = Arc::new(route(UNMATCHED, "GET", 404, false));
        let refused = Arc::new(route(REFUSED, "GET", 421, true));
        registry.register(
            "queuekeeper_http_request_duration_seconds",
            "Time from receiving the head of a request to sending the head of its response in seconds",
            durations.clone(),
        );
        registry.register("queuekeeper_http_requests", "Total number of HTTP requests answered", requests.clone());
        Self { routes, unmatched, refused, requests, durations }
    }

    /// Counts a request that was answered, by its route or as [`REFUSED`]. A route that was not registered counts as
    /// [`UNMATCHED`], an unusual method as `other`.
    pub fn observe(&self, route: Option<&str>, method: &str, code: u16, duration: Duration) {
        let route = match route {
            Some(REFUSED) => &self.refused,
            route => route
                .and_then(|route| self.routes.iter().find(|known| &*known.pattern == route))
                .unwrap_or(&self.unmatched),
        };
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        if route.is_timed {
            let labels = DurationLabels { route: Arc::clone(&route.pattern) };
            self.durations.get_or_create_owned(&labels).observe(duration.as_secs_f64());
        }
        self.requests.get_or_create_owned(&RequestLabels { route: Arc::clone(&route.pattern), method, code }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Format, expose};

    #[test]
    fn whatever_is_requested_the_label_values_stay_few() {
        let mut registry = Registry::default();
        let timed = |pattern| Known { pattern, is_read: true, is_timed: true };
        let posted = Known { pattern: "/lists", is_read: false, is_timed: true };
        let same = Known { pattern: "/runbook", is_read: true, is_timed: false };
        let http = Http::register(&mut registry, [timed("/"), timed("/metrics"), posted, same]);
        http.observe(Some("/runbook"), "GET", 200, Duration::from_millis(2));
        http.observe(Some("/metrics"), "GET", 200, Duration::from_millis(2));
        for n in 0..100 {
            http.observe(Some(&format!("/guess/{n}")), &format!("BREW{n}"), 404, Duration::ZERO);
        }
        let text = expose(&registry, Format::Text).unwrap();
        let requests: Vec<&str> =
            text.lines().filter(|line| line.starts_with("queuekeeper_http_requests_total")).collect();
        assert_eq!(requests.len(), 7, "{requests:#?}");
        for counted in [
            r#"queuekeeper_http_requests_total{route="unmatched",method="other",code="404"} 100"#,
            r#"queuekeeper_http_requests_total{route="/lists",method="POST",code="400"} 0"#,
            r#"queuekeeper_http_requests_total{route="/runbook",method="GET",code="200"} 1"#,
        ] {
            assert!(requests.contains(&counted), "{counted} is not in {requests:#?}");
        }
        let timed: Vec<&str> = text.lines().filter(|line| line.contains("_duration_seconds_count{")).collect();
        assert_eq!(timed, [r#"queuekeeper_http_request_duration_seconds_count{route="/metrics"} 1"#]);
        let buckets = text.lines().filter(|line| line.contains("_bucket{") && line.contains(r#"route="/metrics""#));
        assert_eq!(buckets.count(), BUCKETS.len() + 1);
    }
}
