//! Asking a Prometheus server for figures of the past.

use std::collections::HashMap;
use std::time::Duration;

use futures::TryStreamExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::{Client, StatusCode, redirect};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes. One of 30 days has some 20 series of 180 values.
const MOST_ANSWER: usize = 4 << 20;

/// How many questions may be under way at once; others wait.
const AT_ONCE: usize = 8;

/// How long an answer is given again.
const FRESH: Duration = Duration::from_secs(30);

/// How much of an answer that was not understood is shown, in characters.
const QUOTED: usize = 200;

/// A Prometheus server that scrapes this one, and how its series of this queue are found.
#[derive(Debug)]
pub struct Prometheus {
    client: Client,
    /// With a slash at the end.
    url: String,
    /// Label matchers as in a selector, such as `job="queuekeeper"`; empty for all series.
    matchers: String,
    turns: Semaphore,
    /// The last answers, by question: a page that is looked at by many asks once.
    recent: Mutex<HashMap<String, (Instant, Vec<Series>)>>,
}

/// A series of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The labels, each with its text.
    pub labels: Map<String, Value>,
    /// The values: when, in seconds since 1970, and what. None is NaN or infinite.
    pub values: Vec<(f64, f64)>,
}

/// Why there is no answer, in one line.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It cannot be reached, or does not answer in time.
    #[error("Prometheus at {url} does not answer: {why}")]
    Unreachable {
        /// Where it was requested.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// It refuses the question, or answers something else.
    #[error("Prometheus at {url} answers {why}")]
    Refused {
        /// Where it was requested.
        url: String,
        /// What it says.
        why: String,
    },
}

#[derive(Deserialize)]
struct Answer {
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    metric: Map<String, Value>,
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// The server at `url`, which ends with a slash; `matchers` select the series of this queue, such as
    /// `job="queuekeeper"`; empty for all. Proxies of the environment are not used.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(url: String, matchers: String) -> Result<Self, reqwest::Error> {
        let client = Client::builder().timeout(TIMEOUT).redirect(redirect::Policy::none()).no_proxy().build()?;
        Ok(Self { client, url, matchers, turns: Semaphore::new(AT_ONCE), recent: Mutex::default() })
    }

    /// A metric's selector, with more matchers than those that are always there.
    #[must_use]
    pub fn selector(&self, metric: &str, more: &str) -> String {
        let matchers: Vec<_> = [&*self.matchers, more].into_iter().filter(|matchers| !matchers.is_empty()).collect();
        format!("{metric}{{{}}}", matchers.join(","))
    }

    /// Evaluates a query at `from`, one `step` later, and so on up to `to`. An answer may be half a minute old.
    ///
    /// # Errors
    /// When it is not answered.
    ///
    /// # Panics
    /// Never: nothing closes the semaphore.
    pub async fn range(
        &self,
        query: &str,
        from: Timestamp,
        to: Timestamp,
        step: Duration,
    ) -> Result<Vec<Series>, NoAnswer> {
        let question = format!("{from} {to} {step:?} {query}");
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let is_fresh = |(at, _): &(Instant, Vec<Series>)| at.elapsed() < FRESH;
        if let Some((_, series)) = self.recent.lock().get(&question).filter(|answer| is_fresh(answer)) {
            return Ok(series.clone());
        }
        let series = self.ask(query, from, to, step).await?;
        let mut recent = self.recent.lock();
        recent.retain(|_, answer| is_fresh(answer));
        recent.insert(question, (Instant::now(), series.clone()));
        Ok(series)
    }

    async fn ask(&self, query: &str, from: Timestamp, to: Timestamp, step: Duration) -> Result<Vec<Series>, NoAnswer> {
        let request = self.client.get(format!("{}api/v1/query_range", self.url)).query(&[
            ("query", query),
            ("start", &from.as_second().to_string()),
            ("end", &to.as_second().to_string()),
            ("step", &step.as_secs().max(1).to_string()),
        ]);
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(piece) = stream.try_next().await.map_err(|error| self.unreachable(&error))? {
            body.extend_from_slice(&piece);
            if body.len() > MOST_ANSWER {
                return Err(self.refused(&format!("with more than {} MiB", MOST_ANSWER >> 20)));
            }
        }
        self.series(status, &body)
    }

    fn series(&self, status: StatusCode, body: &[u8]) -> Result<Vec<Series>, NoAnswer> {
        match serde_json::from_slice(body) {
            Ok(Answer { data: Some(data), .. }) if status.is_success() => {
                Ok(data.result.into_iter().map(Series::from).collect())
            }
            Ok(Answer { error: Some(error), .. }) => Err(self.refused(&format!("{}: {error}", status.as_u16()))),
            _ => Err(self.refused(&format!("{} without figures; it may be another program", status.as_u16()))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> NoAnswer {
        // Its innermost cause says what went wrong; the outer ones repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = if error.is_timeout() { format!("not within {} s", TIMEOUT.as_secs()) } else { cause.to_string() };
        NoAnswer::Unreachable { url: self.url.clone(), why }
    }

    fn refused(&self, why: &str) -> NoAnswer {
        NoAnswer::Refused { url: self.url.clone(), why: why.chars().take(QUOTED).collect() }
    }
}

impl From<Found> for Series {
    fn from(found: Found) -> Self {
        let number =
            |(at, value): (f64, String)| Some((at, value.parse().ok().filter(|value: &f64| value.is_finite())?));
        Self { labels: found.metric, values: found.values.into_iter().filter_map(number).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prometheus(matchers: &str) -> Prometheus {
        Prometheus::new("http://127.0.0.1:9/".to_owned(), matchers.to_owned()).unwrap()
    }

    #[test]
    fn a_selector_has_all_matchers() {
        for (matchers, more, selector) in [
            ("", "", "jobs{}"),
            ("job=\"q\"", "", "jobs{job=\"q\"}"),
            ("", "to=\"failed\"", "jobs{to=\"failed\"}"),
            ("job=\"q\"", "to=\"failed\"", "jobs{job=\"q\",to=\"failed\"}"),
        ] {
            assert_eq!(prometheus(matchers).selector("jobs", more), selector);
        }
    }

    #[test]
    fn what_is_answered_is_read_or_said_in_one_line() {
        let client = prometheus("");
        let answer = |status: u16, body: &str| {
            client.series(StatusCode::from_u16(status).unwrap(), body.as_bytes()).map_err(|error| error.to_string())
        };
        let good = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"state":"pending"},"values":[[1700000000,"4"],[1700000060.5,"NaN"],[1700000120,"+Inf"]]}]}}"#;
        let series = answer(200, good).unwrap();
        assert_eq!((series.len(), &series[0].labels["state"]), (1, &Value::from("pending")));
        assert_eq!(series[0].values, [(1_700_000_000.0, 4.0)]);
        let bad = r#"{"status":"error","errorType":"bad_data","error":"parse error: unexpected }"}"#;
        let said = "Prometheus at http://127.0.0.1:9/ answers";
        assert_eq!(answer(400, bad).unwrap_err(), format!("{said} 400: parse error: unexpected }}"));
        let other = format!("{said} 200 without figures; it may be another program");
        for body in ["", "<html>", "{}", r#"{"data":{"result":[{"metric":{},"values":[["x"]]}]}}"#] {
            assert_eq!(answer(200, body).unwrap_err(), other, "{body}");
        }
        let long = format!(r#"{{"error":"{}"}}"#, "é".repeat(5_000));
        assert!(answer(502, &long).unwrap_err().chars().count() < 300);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_said() {
        let answer = prometheus("").range("up", Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH, Duration::ZERO).await;
        let error = answer.unwrap_err().to_string();
        assert!(error.starts_with("Prometheus at http://127.0.0.1:9/ does not answer: "), "{error}");
        assert!(error.contains("refused"), "{error}");
    }
}
