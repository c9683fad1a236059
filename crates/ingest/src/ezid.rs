//! Registering identifiers with EZID, `PUT /id/ARK`.
//!
//! An identifier that exists already is ours only if it carries the mark of this job, or of the catalogue in which it is
//! reserved: it was registered by an attempt whose answer was lost, or by another job of the same object.

use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};

use crate::ark::Ark;
use crate::name::shown;
use crate::step::{JobAtWork, StepError};
use crate::steps::Description;
use crate::url::ContentUrl;

/// The key of a job's mark.
const MARK: &str = "queuekeeper.job";

/// The key of our catalogue's mark: the other job of the same local id may have been faster.
const CATALOGUE: &str = "queuekeeper.catalogue";

/// Registers an ARK, or finds that this job has registered it.
///
/// # Errors
/// When the service refuses it, or cannot be reached.
pub(crate) async fn register(work: &JobAtWork<'_>, service: &ContentUrl, ark: &Ark) -> Result<(), StepError> {
    let base = service.reveal().as_str().trim_end_matches('/');
    let url: ContentUrl = format!("{base}/id/{ark}").parse().map_err(StepError::permanent)?;
    let description = Description::of(work.spec);
    let (mark, catalogue) = (work.spec.uuid.to_string(), work.services.catalogue.id().to_string());
    let fields = [
        ("erc", description.erc(ark.as_str())),
        ("_profile", "erc".to_owned()),
        (MARK, mark.clone()),
        (CATALOGUE, catalogue.clone()),
    ];
    let lines = fields.iter().map(|(key, value)| format!("{key}: {}\n", escape(value)));
    let content = lines.collect::<Vec<_>>().concat();
    let text = HeaderValue::from_static("text/plain; charset=UTF-8");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, text)]);
    let fetcher = work.fetcher()?;
    work.fence.pass().await;
    let (status, answer) = fetcher.send_to(Method::PUT, &url, headers, content).await?;
    if status.is_success() && answer.starts_with("success:") {
        return Ok(());
    }
    if status == StatusCode::BAD_REQUEST && answer.contains("already exists") {
        let (status, answer) = fetcher.send_to(Method::GET, &url, HeaderMap::new(), String::new()).await?;
        let is_ours = [(MARK, mark), (CATALOGUE, catalogue)]
            .into_iter()
            .any(|(key, own)| value(&answer, key).is_some_and(|found| found == own));
        if status.is_success() && is_ours {
            return Ok(());
        }
        return Err(StepError::permanent(format_args!("{ark} is registered at {url}, but not by this job")));
    }
    let first = answer.lines().next().unwrap_or_default();
    Err(StepError::permanent(format_args!("{url} refuses {ark}: {status}, {:?}", shown(first))))
}

/// A value in ANVL: percent signs and ends of lines are escaped.
fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a key in an answer.
fn value(answer: &str, key: &str) -> Option<String> {
    let found = answer.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key))?;
    Some(percent_decode_str(found.1.trim()).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_and_comes_back_as_it_was() {
        let text = "100 %\r\nwho: x";
        assert_eq!(escape(text), "100 %25%0D%0Awho: x");
        let answer = format!("success: ark:/1/2\nqueuekeeper.job: {}\n", escape(text));
        assert_eq!(value(&answer, MARK).as_deref(), Some(text));
        assert_eq!(value("queuekeeper.jobs: 1", MARK), None);
    }
}
