//! Access requests: from an object to a request in the queue, with a record of who made it.

use std::fmt;
use std::time::Instant;

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::access::{
    AccessSettings, Extent, FindError, Format, RequestError, Requested, RequestedArchive, request,
};
use queuekeeper_ingest::ark::Ark;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::audit::{ActionId, Finished, Record};
use super::{Actions, Actor, Reason, Refusal};

/// The name of this in the audit trail.
const ACTION: &str = "request_object";

/// An object that is requested as an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccessRequest {
    /// The object.
    #[schema(example = "ark:/99999/fk4abc1234")]
    pub ark: String,
    /// The number of the version; the newest one if omitted, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The format of the archive: `zip`, or `tar`; `zip` if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "zip")]
    pub format: Option<String>,
    /// Which files: `full` for all of the version, or `producer` for those that were deposited; `full` if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "full")]
    pub content: Option<String>,
}

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeRequest {
    /// What its token says.
    pub archive: RequestedArchive,
    /// Where it is in the queue, and what it gets.
    pub requested: Requested,
}

/// Makes access requests; cheap to clone.
#[derive(Clone)]
pub struct AccessRequests {
    actions: Actions,
    catalogue: Catalogue,
    settings: AccessSettings,
}

impl fmt::Debug for AccessRequests {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "AccessRequests({}/{})", self.settings.store, self.settings.space)
    }
}

impl AccessRequest {
    /// Checks what is requested by itself.
    fn check(&self) -> Result<RequestedArchive, Refusal> {
        let text = |text: &Option<String>| text.as_deref().map(str::trim).unwrap_or_default().to_owned();
        let wrong = |name: &str, why: &dyn fmt::Display| Refusal::Invalid(format!("{name}: {why}"));
        let ark = self.ark.trim().parse::<Ark>().map_err(|error| wrong("ark", &error))?;
        let (format, extent) = (text(&self.format), text(&self.content));
        let format = if format.is_empty() { Ok(Format::default()) } else { format.parse() };
        let extent = if extent.is_empty() { Ok(Extent::default()) } else { extent.parse() };
        Ok(RequestedArchive {
            token: Uuid::now_v7().to_string(),
            ark,
            version: self.version.filter(|version| *version > 0),
            format: format.map_err(|error| wrong("format", &error))?,
            extent: extent.map_err(|error| wrong("content", &error))?,
        })
    }
}

impl AccessRequests {
    /// For the objects of a catalogue.
    #[must_use]
    pub fn new(actions: Actions, catalogue: Catalogue, settings: AccessSettings) -> Self {
        Self { actions, catalogue, settings }
    }

    /// Makes a request, with a record before and after.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn make(&self, access: &AccessRequest, actor: &Actor) -> Result<MadeRequest, Refusal> {
        let mut archive = access.check()?;
        let shared = &self.actions.shared;
        let queue = shared.queue_of(&self.catalogue).await?;
        let (began, now, id) = (Instant::now(), Timestamp::now(), ActionId::new(Timestamp::now()));
        let what = format!("{} of {} as {}", archive.extent, archive.ark, archive.format);
        let reason = Reason::new(&what).map_err(|error| Refusal::Invalid(error.to_string()))?;
        let record = Record::requested(id, now, actor, ACTION, &reason);
        shared.audit.write(record.on(vec![archive.ark.to_string()])).await?;
        let made = request(&queue, &self.catalogue, &self.settings, archive.clone(), now).await;
        let made = made.map_err(Refusal::from);
        let detail =
            made.as_ref().map_or_else(ToString::to_string, |made| format!("{}/{}", made.queue.name(), made.id));
        let outcome = made.as_ref().map_or_else(Refusal::label, |_| "done");
        let finished = Finished { outcome, detail: Some(detail), ..Finished::default() };
        let outcome = Record::outcome(id, Timestamp::now(), actor.source, began.elapsed(), finished);
        if let Err(why) = shared.audit.write(outcome).await {
            tracing::error!(object = %archive.ark, "{why}; the outcome of an access request was not recorded");
        }
        let requested = made?;
        archive.version = Some(requested.version);
        Ok(MadeRequest { archive, requested })
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Find(FindError::Catalogue(error)) if error.is_temporary() => {
                Self::Unavailable(format!("the catalogue: {error}; nothing was done, try again"))
            }
            RequestError::Find(FindError::Catalogue(error)) => Self::Failed(format!("the catalogue: {error}")),
            RequestError::Find(error) => Self::Missing(error.to_string()),
            RequestError::Queue(error) => error.into(),
        }
    }
}
