//! Which keys a service takes for others, as one on a file system does that resolves them as paths.

use std::collections::BTreeSet;

use aws_sdk_s3::types::EncodingType;

use crate::error::{ErrorKind, Operation};
use crate::key::{Key, KeyForm};
use crate::name::SpaceName;
use crate::s3::Inner;
use crate::s3::list::decode;
use crate::s3::location::Object;
use crate::s3::probe::unless_temporary;
use crate::store::{Condition, Item};

/// Probes have these behind their own key: one with all forms, and one for each form.
const ALL_FORMS: &str = "/b/.//../a/";

fn ending(form: KeyForm) -> &'static str {
    match form {
        KeyForm::EmptyPart => "/empty//a",
        KeyForm::DotPart => "/dot/./b/../a",
        KeyForm::FinalSlash => "/final/",
    }
}

impl Inner {
    /// The object of an item that is to be read. What no probe has found out yet is left to the service.
    pub(super) fn object_to_read(&self, item: &Item) -> Result<Object, ErrorKind> {
        if let Some(found) = self.found.get() {
            check(&item.key, &found.refused_keys)?;
        }
        self.location.object(&item.space, &item.key)
    }

    /// The object of an item that is to be changed.
    pub(super) async fn object_to_change(&self, space: &SpaceName, key: &Key) -> Result<Object, ErrorKind> {
        if KeyForm::ALL.iter().any(|form| form.is_of(key)) {
            check(key, &self.found().await?.refused_keys)?;
        }
        self.location.object(space, key)
    }

    /// The forms of keys that are not listed as they were written, or not accepted at all.
    pub(super) async fn look_at_keys(&self, probe: &Object) -> Result<Vec<KeyForm>, ErrorKind> {
        let base = format!("{}-keys", probe.key);
        let object = |ending: &str| Object { bucket: probe.bucket.clone(), key: format!("{base}{ending}") };
        if self.keeps_keys(&base, &[object(ALL_FORMS)]).await? == [true] {
            return Ok(Vec::new());
        }
        let objects = KeyForm::ALL.map(|form| object(ending(form)));
        let kept = self.keeps_keys(&base, &objects).await?;
        Ok(KeyForm::ALL.into_iter().zip(kept).filter(|(_, is_kept)| !is_kept).map(|(form, _)| form).collect())
    }

    /// Which of these keys are listed once they were written. They are deleted again.
    async fn keeps_keys(&self, base: &str, objects: &[Object]) -> Result<Vec<bool>, ErrorKind> {
        let mut written = Vec::new();
        for at in objects {
            match self.probe_put(at, None, &Condition::None).await {
                Ok(_) => written.push(at),
                Err(failure) => _ = unless_temporary(failure, false)?,
            }
        }
        let bucket = objects.first().map(|at| at.bucket.clone()).unwrap_or_default();
        let send = || {
            let request = self.client.list_objects_v2().bucket(&bucket).prefix(format!("{base}/"));
            request.encoding_type(EncodingType::Url).send()
        };
        let page = self.call(self.quick(Operation::Probe), send).await.map_err(|failure| failure.kind(false));
        for at in written {
            let send = || self.client.delete_object().bucket(&at.bucket).key(&at.key).send();
            self.call(self.quick(Operation::Probe), send).await.map_err(|failure| failure.kind(false))?;
        }
        let page = page?;
        let is_encoded = page.encoding_type() == Some(&EncodingType::Url);
        let keys = page.contents().iter().filter_map(|object| object.key()).map(|key| decode(key, is_encoded));
        let listed: BTreeSet<_> = keys.collect();
        Ok(objects.iter().map(|at| listed.contains(at.key.as_bytes())).collect())
    }
}

fn check(key: &Key, refused: &[KeyForm]) -> Result<(), ErrorKind> {
    match refused.iter().find(|form| form.is_of(key)) {
        Some(form) => Err(ErrorKind::Unsupported(format!("the service confuses a key with {form} with another one"))),
        None => Ok(()),
    }
}
