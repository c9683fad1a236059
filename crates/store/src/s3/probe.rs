//! What a service really does, found out with a few small objects in a space of their own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aws_sdk_s3::types::{BucketVersioningStatus, ObjectLockEnabled};
use bytes::Bytes;
use uuid::Uuid;

use crate::digest::{Algorithm, Digests, Hashers};
use crate::error::{ErrorKind, Operation};
use crate::key::Key;
use crate::name::SpaceName;
use crate::s3::Inner;
use crate::s3::call::Call;
use crate::s3::copy::encode;
use crate::s3::failure::{Failure, Repeat};
use crate::s3::found::Found;
use crate::s3::head::{md5_of_tag, quoted};
use crate::s3::location::Object;
use crate::s3::put::Whole;
use crate::s3::upload::{Completion, Part, Upload};
use crate::store::{Capabilities, Condition, EntityTag, PROBE_SPACE, UserProperties};

/// How long a probe waits for the first answer of a service.
const REACHED_WITHIN: Duration = Duration::from_secs(10);

/// How often a probe begins again because its bucket was removed under it.
const ATTEMPTS: usize = 5;

const CONTENT: &[u8] = b"a probe of queuekeeper, which may be deleted\n";

impl Inner {
    /// What the service does, by a look before it is first needed.
    pub(super) async fn found(&self) -> Result<&Found, ErrorKind> {
        self.found.get_or_try_init(|| self.look()).await
    }

    pub(super) async fn capabilities(&self) -> Result<Capabilities, ErrorKind> {
        self.reach().await?;
        let found = self.found().await?;
        let mut checksums = found.kept_whole.clone();
        checksums.extend(found.kept_of_parts);
        checksums.extend((self.tags_are_md5.get() == Some(&true)).then_some(Algorithm::Md5));
        checksums.sort_unstable();
        checksums.dedup();
        let (minimum_days, cold_reads) = terms(self.storage_class.as_ref().map_or("STANDARD", |class| class.as_str()));
        Ok(Capabilities {
            checksums,
            if_absent: found.put_if_absent && found.complete_if_absent,
            if_match: found.put_if_match && found.complete_if_match && found.delete_if_match,
            versions: found.versions,
            object_lock: found.object_lock,
            minimum_days,
            cold_reads,
            refused_keys: found.refused_keys.clone(),
        })
    }

    /// Makes one request to see whether the service answers at all: a person who waits for a probe should not wait for
    /// the repetitions of its requests. Of what it answers, only a wrong clock counts: the SDK learns the service's
    /// time from that answer, and the requests that follow succeed.
    async fn reach(&self) -> Result<(), ErrorKind> {
        let at = self.location.object(&space(), &Key::new(b"reach".to_vec()).expect("a valid key"))?;
        let quick = self.quick(Operation::Probe);
        let call = Call { limit: quick.limit.min(REACHED_WITHIN), ..quick };
        let send = || self.client.get_object().bucket(&at.bucket).key(&at.key).send();
        match self.call_once(call, send).await {
            Err(failure) if failure.status.is_none() || failure.is_clock_wrong() => Err(failure.kind(false)),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn look(&self) -> Result<Found, ErrorKind> {
        let space = space();
        if self.location.shared_bucket().is_some() {
            return self.look_in(&space).await;
        }
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let bucket = self.location.bucket(&space)?;
            let needed =
                |why: String| format!("the bucket {bucket} is needed for probes, but cannot be created: {why}");
            let made = self.create_space(&space).await.map_err(|kind| match kind {
                ErrorKind::Refused(why) => ErrorKind::Refused(needed(why)),
                kind => kind,
            })?;
            self.has_made_probe_bucket.fetch_or(made, Ordering::Relaxed);
            let found = self.look_in(&space).await;
            // Another process that has made it may remove it, at the end of its own probe.
            if found.is_ok() || left == 0 || self.exists(Operation::Probe, &space).await? {
                return found;
            }
        }
    }

    async fn look_in(&self, space: &SpaceName) -> Result<Found, ErrorKind> {
        let object = |name: String| self.location.object(space, &Key::new(name.into_bytes()).expect("a valid key"));
        let id = Uuid::now_v7();
        let (one, other) = (object(id.to_string())?, object(format!("{id}-2"))?);
        let found = self.look_with(&one, &other).await;
        for at in [&one, &other] {
            let send = || self.client.delete_object().bucket(&at.bucket).key(&at.key).send();
            if let Err(failure) = self.call(self.quick(Operation::Probe), send).await {
                let kind = failure.kind(false);
                // A failure before this one says more.
                if found.is_ok() {
                    return Err(kind);
                }
            }
        }
        found
    }

    async fn look_with(&self, one: &Object, other: &Object) -> Result<Found, ErrorKind> {
        let wrong = EntityTag("0".repeat(32));
        let (if_absent, if_match) = (Condition::IfAbsent, Condition::IfMatch(wrong.clone()));
        let mut found = Found::default();
        let put = |at, condition| self.probe_put(at, None, condition);
        let first = put(one, &Condition::None).await.map_err(|failure| failure.kind(false))?;
        let Some(first) = first else {
            let endpoint = &self.target.endpoint;
            let why = format!("{endpoint} answers without an entity tag, so it is not an S3 service; correct endpoint");
            return Err(ErrorKind::Refused(why));
        };
        let is_md5 = md5_of_tag(&first).is_some_and(|md5| digests().get(Algorithm::Md5) == Some(&md5));
        _ = self.tags_are_md5.set(is_md5);
        found.put_if_absent = holds(put(one, &if_absent).await)?;
        found.put_if_match = holds(put(one, &if_match).await)?;
        if self.keeps_checksums {
            for algorithm in [Algorithm::Sha256, Algorithm::Crc64Nvme, Algorithm::Crc32] {
                if self.keeps(one, algorithm).await? {
                    found.kept_whole.push(algorithm);
                }
            }
        }
        put(other, &Condition::None).await.map_err(|failure| failure.kind(false))?;
        found.copy_if_absent = holds(self.probe_copy(one, other, None, Some("*".to_owned())).await)?;
        found.copy_if_match = holds(self.probe_copy(one, other, Some(quoted(&wrong)), None).await)?;
        let send = || self.client.delete_object().bucket(&other.bucket).key(&other.key).if_match(quoted(&wrong)).send();
        found.delete_if_match = holds(self.call(self.quick(Operation::Probe), send).await)?
            && self.head_object(Operation::Probe, other).await?.is_some();
        let of_parts =
            [Algorithm::Crc64Nvme, Algorithm::Crc32].into_iter().filter(|one| found.kept_whole.contains(one));
        let of_parts: Vec<_> = of_parts.map(Some).chain([None]).collect();
        for algorithm in of_parts {
            if self.look_at_parts(one, algorithm, &mut found).await? {
                break;
            }
        }
        found.refused_keys = self.look_at_keys(one).await?;
        let send = || self.client.get_bucket_versioning().bucket(&one.bucket).send();
        let versioning = self.call(self.quick(Operation::Probe), send).await;
        found.versions = versioning.is_ok_and(|output| output.status() == Some(&BucketVersioningStatus::Enabled));
        let send = || self.client.get_object_lock_configuration().bucket(&one.bucket).send();
        let lock = self.call(self.quick(Operation::Probe), send).await.ok();
        let lock = lock.and_then(|output| output.object_lock_configuration?.object_lock_enabled);
        found.object_lock = lock == Some(ObjectLockEnabled::Enabled);
        Ok(found)
    }

    pub(super) async fn probe_put(
        &self,
        at: &Object,
        algorithm: Option<Algorithm>,
        condition: &Condition,
    ) -> Result<Option<String>, Failure> {
        let (operation, bytes) = (Operation::Probe, &Bytes::from_static(CONTENT));
        let (digests, user, kept) = (&digests(), &UserProperties::default(), None);
        let whole = Whole { operation, at, bytes, digests, checksum: algorithm, condition, user, kept };
        let output = self.put_object(&whole).await?;
        Ok(output.e_tag().map(str::to_owned))
    }

    /// Whether a checksum that is sent comes back.
    async fn keeps(&self, at: &Object, algorithm: Algorithm) -> Result<bool, ErrorKind> {
        if let Err(failure) = self.probe_put(at, Some(algorithm), &Condition::None).await {
            return unless_temporary(failure, false);
        }
        let headed = self.head_object(Operation::Probe, at).await?;
        let kept = headed.and_then(|headed| headed.properties.checksums.get(algorithm).cloned());
        Ok(kept.as_ref() == digests().get(algorithm))
    }

    async fn probe_copy(
        &self,
        from: &Object,
        to: &Object,
        if_match: Option<String>,
        if_none_match: Option<String>,
    ) -> Result<(), Failure> {
        let send = || {
            let request = self.client.copy_object().bucket(&to.bucket).key(&to.key);
            let request = request.copy_source(format!("{}/{}", from.bucket, encode(&from.key)));
            request.set_if_match(if_match.clone()).set_if_none_match(if_none_match.clone()).send()
        };
        self.call(self.quick(Operation::Probe), send).await.map(drop)
    }

    /// Looks at an upload in parts with a checksum of the whole; the answer is whether it could be completed, and kept
    /// it.
    async fn look_at_parts(
        &self,
        at: &Object,
        algorithm: Option<Algorithm>,
        found: &mut Found,
    ) -> Result<bool, ErrorKind> {
        let user = UserProperties::default();
        let mut upload = match Upload::begin(self, Operation::Probe, at, &user, None, algorithm).await {
            Ok(upload) => upload,
            Err(kind @ ErrorKind::Unavailable(_)) => return Err(kind),
            Err(kind) if algorithm.is_none() => return Err(kind),
            Err(_) => return Ok(false),
        };
        let memory = self.memory(CONTENT.len() as u64).await;
        let part = Part { number: 1, bytes: Bytes::from_static(CONTENT), memory };
        let completed = async {
            upload.parts = vec![upload.send(part).await?];
            let digests = digests();
            let completion =
                |condition| Completion { size: CONTENT.len() as u64, digests: &digests, condition, user: &user };
            let if_match = Condition::IfMatch(EntityTag("0".repeat(32)));
            let complete = async |condition| upload.send_completion(&completion(condition)).await;
            let answer = complete(&if_match).await;
            let mut is_complete = answer.is_ok();
            found.complete_if_match = holds(answer)?;
            if !is_complete {
                let answer = complete(&Condition::IfAbsent).await;
                is_complete = answer.is_ok();
                found.complete_if_absent = holds(answer)?;
            }
            if !is_complete && let Err(failure) = complete(&Condition::None).await {
                return unless_temporary(failure, false);
            }
            let headed = self.head_object(Operation::Probe, at).await?;
            let kept = headed.and_then(|headed| headed.properties.checksums.get(algorithm?).cloned());
            Ok(algorithm.is_none_or(|algorithm| kept.as_ref() == digests.get(algorithm)))
        }
        .await;
        match completed {
            Ok(true) => {
                found.kept_of_parts = algorithm;
                Ok(true)
            }
            Ok(false) | Err(ErrorKind::Refused(_) | ErrorKind::Unsupported(_)) if algorithm.is_some() => {
                upload.give_up().await;
                Ok(false)
            }
            other => {
                upload.give_up().await;
                other
            }
        }
    }
}

pub(super) fn space() -> SpaceName {
    PROBE_SPACE.parse().expect("a valid name")
}

fn digests() -> Digests {
    let algorithms = [Algorithm::Crc32, Algorithm::Crc64Nvme, Algorithm::Md5, Algorithm::Sha256];
    let mut hashers = Hashers::new(algorithms);
    hashers.update(CONTENT);
    hashers.finish()
}

/// Whether a condition that is false was held.
fn holds<T>(answer: Result<T, Failure>) -> Result<bool, ErrorKind> {
    match answer {
        Ok(_) => Ok(false),
        Err(failure) if failure.is_precondition() => Ok(true),
        Err(failure) => unless_temporary(failure, false),
    }
}

pub(super) fn unless_temporary(failure: Failure, otherwise: bool) -> Result<bool, ErrorKind> {
    match failure.repeat {
        Repeat::Never => Ok(otherwise),
        Repeat::Transient | Repeat::Busy => Err(ErrorKind::Unavailable(failure.text)),
    }
}

/// For how many days at least items of a storage class are paid for, and whether reading them takes hours or costs more
/// than a request. From the table of storage classes in Amazon S3's user guide.
fn terms(class: &str) -> (u32, bool) {
    match class {
        "STANDARD_IA" | "ONEZONE_IA" => (30, true),
        "GLACIER_IR" | "GLACIER" => (90, true),
        "DEEP_ARCHIVE" => (180, true),
        _ => (0, false),
    }
}
