//! Registering identifiers with EZID, `PUT /id/ARK`, and having it make them, `POST /shoulder/SHOULDER`.
//!
//! An identifier that exists already is ours only if it carries the mark of this job, or of the catalogue in which it
//! is reserved: it was registered by an attempt whose answer was lost, or by another job of the same object.
//!
//! One that EZID makes is reserved there first, where no one else sees it and it can be deleted, and becomes public
//! once it is the job's in the catalogue. The job's directory keeps it meanwhile, and an attempt that is repeated goes
//! on with the one that is kept where that carries the job's mark. (EZID has no request that searches: of an attempt
//! that ended between its making a name and our keeping it, that name stays reserved.)

use std::io;

use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};

use crate::ark::{Ark, Shoulder};
use crate::name::shown;
use crate::profile::EzidOptions;
use crate::step::{JobAtWork, StepError};
use crate::steps::Description;
use crate::url::ContentUrl;
use crate::working::{JobDirectory, sync_folder_of};

/// The key of a job's mark.
const MARK: &str = "queuekeeper.job";

/// The key of our catalogue's mark: the other job of the same local id may have been faster.
const CATALOGUE: &str = "queuekeeper.catalogue";

/// The key of whether an identifier is seen by others, and its values.
const STATUS: &str = "_status";
const RESERVED: &str = "reserved";
const PUBLIC: &str = "public";

/// The helper file of a job's directory that keeps the name that EZID made for it.
const MINTED: &str = "minted";

/// A service, and what a profile says of identifiers there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ezid<'a> {
    pub(crate) url: &'a ContentUrl,
    pub(crate) options: &'a EzidOptions,
}

impl Ezid<'_> {
    /// Registers an ARK, or finds that this job has registered it.
    ///
    /// # Errors
    /// When the service refuses it, or cannot be reached.
    pub(crate) async fn register(
        self,
        work: &JobAtWork<'_>,
        description: &Description,
        ark: &Ark,
    ) -> Result<(), StepError> {
        let url = self.at(&format!("id/{ark}"))?;
        if self.options.mints {
            // It was made with the job's mark, or belongs to another job of the object.
            self.check_ours(work, &url, ark).await?;
            let fields = self.fields(work, Some((ark, description))).into_iter().chain([(STATUS, PUBLIC.to_owned())]);
            let (status, answer) = send(work, Method::POST, &url, fields).await?;
            return if is_success(status, &answer) { Ok(()) } else { Err(refused(&url, ark, status, &answer)) };
        }
        let (status, answer) = send(work, Method::PUT, &url, self.fields(work, Some((ark, description)))).await?;
        if is_success(status, &answer) {
            return Ok(());
        }
        if status == StatusCode::BAD_REQUEST && answer.contains("already exists") {
            return self.check_ours(work, &url, ark).await;
        }
        Err(refused(&url, ark, status, &answer))
    }

    /// Has the service make an ARK of a shoulder, which is reserved for this job; the one that an attempt before was
    /// given, where there was one.
    ///
    /// # Errors
    /// When the service refuses it, cannot be reached, or the name cannot be kept.
    pub(crate) async fn mint(self, work: &JobAtWork<'_>, shoulder: &Shoulder) -> Result<Ark, StepError> {
        let kept = work.directory.helper(MINTED);
        let failed = |error: io::Error| StepError::working("keep the identifier that EZID minted", &error);
        match std::fs::read_to_string(&kept) {
            Ok(ark) => {
                let ark: Ark = ark.trim().parse().map_err(StepError::permanent)?;
                self.check_ours(work, &self.at(&format!("id/{ark}"))?, &ark).await?;
                return Ok(ark);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let url = self.at(&format!("shoulder/{shoulder}"))?;
        let fields = self.fields(work, None).into_iter().chain([(STATUS, RESERVED.to_owned())]);
        let (status, answer) = send(work, Method::POST, &url, fields).await?;
        let made = answer.strip_prefix("success:").filter(|_| status.is_success());
        // Of a DOI the ARK stands behind a bar.
        let made = made.and_then(|made| made.split('|').find_map(|ark| ark.trim().parse::<Ark>().ok()));
        let ark = made.ok_or_else(|| refused(&url, &"a new identifier", status, &answer))?;
        std::fs::create_dir_all(work.directory.path()).map_err(failed)?;
        JobDirectory::write(&kept, ark.as_str().as_bytes()).and_then(|()| sync_folder_of(&kept)).map_err(failed)?;
        Ok(ark)
    }

    fn at(self, path: &str) -> Result<ContentUrl, StepError> {
        let base = self.url.reveal().as_str().trim_end_matches('/');
        format!("{base}/{path}").parse().map_err(StepError::permanent)
    }

    /// What is said of an identifier; of one that has no name yet, only whose it is.
    fn fields(self, work: &JobAtWork<'_>, named: Option<(&Ark, &Description)>) -> Vec<(&'static str, String)> {
        let (mark, catalogue) = marks(work);
        let mut fields = Vec::new();
        if let Some((ark, description)) = named {
            fields.push(("erc", description.erc(ark.as_str())));
            let target = self.options.target.as_ref();
            fields.extend(target.map(|target| ("_target", format!("{}{ark}", target.reveal()))));
        }
        fields.extend(self.options.owner.clone().map(|owner| ("_owner", owner)));
        fields.extend([("_profile", "erc".to_owned()), (MARK, mark), (CATALOGUE, catalogue)]);
        fields
    }

    /// Whether an identifier that exists carries our mark.
    async fn check_ours(self, work: &JobAtWork<'_>, url: &ContentUrl, ark: &Ark) -> Result<(), StepError> {
        let fetcher = work.fetcher()?;
        let (status, answer) = fetcher.send_to(Method::GET, url, HeaderMap::new(), String::new()).await?;
        let (mark, catalogue) = marks(work);
        let is_ours = [(MARK, mark), (CATALOGUE, catalogue)]
            .into_iter()
            .any(|(key, own)| value(&answer, key).is_some_and(|found| found == own));
        if status.is_success() && is_ours {
            return Ok(());
        }
        Err(StepError::permanent(format_args!("{ark} is registered at {url}, but not by this job")))
    }
}

/// The marks of the job and of the catalogue.
fn marks(work: &JobAtWork<'_>) -> (String, String) {
    (work.spec.uuid.to_string(), work.services.catalogue.id().to_string())
}

async fn send(
    work: &JobAtWork<'_>,
    method: Method,
    url: &ContentUrl,
    fields: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<(StatusCode, String), StepError> {
    let lines = fields.into_iter().map(|(key, value)| format!("{key}: {}\n", escape(&value)));
    let content = lines.collect::<String>();
    let text = HeaderValue::from_static("text/plain; charset=UTF-8");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, text)]);
    let fetcher = work.fetcher()?;
    work.fence.pass().await;
    Ok(fetcher.send_to(method, url, headers, content).await?)
}

fn is_success(status: StatusCode, answer: &str) -> bool {
    status.is_success() && answer.starts_with("success:")
}

fn refused(url: &ContentUrl, what: &impl std::fmt::Display, status: StatusCode, answer: &str) -> StepError {
    let first = answer.lines().next().unwrap_or_default();
    StepError::permanent(format_args!("{url} refuses {what}: {status}, {:?}", shown(first)))
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
