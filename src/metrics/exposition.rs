//! The two forms of the exposition: OpenMetrics for scrapers that ask for it, text 0.0.4 for everyone else.

mod accept;
mod line;
mod merge;
mod text;

pub use merge::merge;
pub use text::to_text;

/// A form of the exposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics1,
    /// OpenMetrics as its draft 0.0.1 called it: the same bytes, for scrapers that know it by that version only.
    OpenMetrics0,
    /// Prometheus' text format 0.0.4.
    Text,
}

impl Format {
    /// Chooses by the values of the `Accept` headers of a request.
    ///
    /// The wish of the highest weight counts, the first of several. OpenMetrics is for those that name it: wildcards,
    /// no header at all and wishes that we cannot meet get text.
    pub fn negotiate<'a>(accept: impl IntoIterator<Item = &'a str>) -> Self {
        let mut best: Option<(accept::Weight, Self)> = None;
        for range in accept.into_iter().flat_map(accept::ranges) {
            if let Some(format) = Self::wished(&range)
                && best.is_none_or(|(weight, _)| range.weight > weight)
            {
                best = Some((range.weight, format));
            }
        }
        best.map_or(Self::Text, |(_, format)| format)
    }

    fn wished(range: &accept::Range<'_>) -> Option<Self> {
        if range.weight == accept::Weight::NONE {
            return None;
        }
        let is = |media_type| range.media_type.eq_ignore_ascii_case(media_type);
        if is("application/openmetrics-text") {
            match range.version {
                None | Some("1.0.0") => Some(Self::OpenMetrics1),
                Some("0.0.1") => Some(Self::OpenMetrics0),
                Some(_) => None,
            }
        } else if is("text/plain") {
            matches!(range.version, None | Some("0.0.4")).then_some(Self::Text)
        } else {
            (is("text/*") || is("*/*")).then_some(Self::Text)
        }
    }

    /// The value of the `Content-Type` header.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics1 => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::OpenMetrics0 => "application/openmetrics-text; version=0.0.1; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format::{OpenMetrics0, OpenMetrics1, Text};
    use super::*;

    #[test]
    fn who_asks_for_openmetrics_gets_it_and_everyone_else_text() {
        for (accept, expected) in [
            ("", Text),
            ("*/*", Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Text),
            ("image/png", Text),
            ("application/*", Text),
            ("text/plain;version=0.0.4", Text),
            ("application/openmetrics-text", OpenMetrics1),
            ("Application/OpenMetrics-Text ; Version=\"1.0.0\" ; charset=utf-8", OpenMetrics1),
            ("application/openmetrics-text; version=0.0.1", OpenMetrics0),
            ("application/openmetrics-text; version=2.0.0", Text),
            ("application/openmetrics-text; version=1.0.0; q=0", Text),
            ("application/openmetrics-text; q=nonsense", Text),
            ("text/plain, application/openmetrics-text;q=0.9", Text),
            ("text/plain;q=0.5, application/openmetrics-text;q=0.51", OpenMetrics1),
            ("*/*, application/openmetrics-text;q=0.9", Text),
            ("application/openmetrics-text, */*", OpenMetrics1),
            (";;,, ,=;q=1", Text),
            // Prometheus 2.42.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics1,
            ),
            // Prometheus 3, which would take protobuf first.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
                 application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
                 text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                OpenMetrics1,
            ),
        ] {
            assert_eq!(Format::negotiate([accept]), expected, "{accept}");
        }
        assert_eq!(Format::negotiate([]), Text);
        assert_eq!(Format::negotiate(["text/plain;q=0.1", "application/openmetrics-text"]), OpenMetrics1);
    }
}
