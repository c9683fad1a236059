//! The content of an object's files.

use futures::StreamExt as _;
use queuekeeper_catalogue::inventory::Object;
use queuekeeper_ingest::contents::{ObjectReader, Opened};
use queuekeeper_ingest::metadata::{EMBARGO, end_of_embargo};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::IntoParams;

use super::{ObjectFile, Objects, SOON, VersionNumber, number, quoted, unavailable};
use crate::views::error::ViewError;

/// How much of the file that ends an embargo is read, in bytes.
const MOST_EMBARGO: usize = 64 << 10;

/// Which file.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct FileName {
    /// The ARK of the object.
    #[param(value_type = String, example = "ark:/99999/fk4abc1234")]
    pub(crate) ark: String,
    /// The version with this number; 0 is the newest one.
    #[param(inline)]
    pub(crate) version: VersionNumber,
    /// The path of the file in that version.
    #[param(value_type = String, example = "producer/page-1.tif")]
    pub(crate) path: String,
}

/// A file that is being read.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    /// What the catalogue has of it.
    pub(crate) file: ObjectFile,
    /// Its content.
    pub(crate) opened: Opened,
}

impl Objects {
    /// Has files be read, too.
    #[must_use]
    pub(crate) fn with_contents(self, contents: ObjectReader) -> Self {
        Self { contents: Some(contents), ..self }
    }

    /// Whether files can be read here.
    pub(crate) fn has_contents(&self) -> bool {
        self.contents.is_some()
    }

    /// When the embargo on a version ends; `None` where it has none.
    ///
    /// # Errors
    /// When the file that says so cannot be read, or not soon.
    pub(super) async fn embargo(&self, object: &Object, version: u32) -> Result<Option<String>, ViewError> {
        let path = format!("producer/{EMBARGO}");
        let found = self.catalogue.file(&object.ark, version, &path).await.map_err(|error| unavailable(&error))?;
        let Some(file) = found else { return Ok(None) };
        let failed = || ViewError::Unavailable(format!("{path}, which records the embargo, cannot be read here."));
        let contents = self.contents.as_ref().ok_or_else(failed)?;
        let read = async {
            let opened = contents.read(object, &file).await.map_err(|error| error.to_string())?;
            let (mut text, mut chunks) = (Vec::new(), opened.content.chunks);
            while text.len() < MOST_EMBARGO
                && let Some(chunk) = chunks.next().await
            {
                text.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
            }
            Ok::<_, String>(text)
        };
        let text = timeout(SOON, read).await.map_err(|_| failed())?.map_err(|error| {
            tracing::error!(object = object.ark, version, path, "cannot read a file of an object: {error}");
            failed()
        })?;
        Ok(end_of_embargo(&String::from_utf8_lossy(&text)))
    }

    /// Opens a file of an object.
    ///
    /// # Errors
    /// When there is none, or files cannot be read here, and when catalogue or store cannot be read.
    pub(crate) async fn open(&self, name: &FileName) -> Result<OpenedFile, ViewError> {
        let Some(contents) = &self.contents else {
            let why = "This server does not know where objects are stored: set --deposits.profiles.";
            return Err(ViewError::not_found(why));
        };
        let object = self.one(&name.ark).await?;
        let version = number(&object, name.version)?;
        let found = self.catalogue.file(&object.ark, version, &name.path).await.map_err(|error| unavailable(&error))?;
        let none = || {
            let path = quoted(&name.path);
            ViewError::not_found(format!("Version {version} of {} has no file “{path}”.", object.ark))
        };
        let file = found.ok_or_else(none)?;
        let opened = contents.read(&object, &file).await.map_err(|error| {
            tracing::error!(object = object.ark, version, path = file.path, "cannot read a file of an object: {error}");
            ViewError::Unavailable("The file cannot be read from its store; the server's log has the cause.".to_owned())
        })?;
        Ok(OpenedFile { file: ObjectFile::from(&file), opened })
    }
}
