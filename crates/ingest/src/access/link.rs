//! Links to archives, which expire.
//!
//! Where the store is to answer them, they are its own, signed in advance. Else a link is a signature over the name of
//! an archive and an instant. The key of the signatures lies beside the archives: every process that has the store can
//! make and check links. In a directory only its owner may read it, who runs all of them.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;
use std::time::Duration;

use aws_lc_rs::{hmac, rand};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use queuekeeper_store::store::{Chunks, Condition, Content, Put};
use queuekeeper_store::{Error, ErrorKind, Item};

use super::delivery::{Deliveries, NAME, signing_key};

/// How many bytes that key has.
const KEY_BYTES: usize = 32;

/// The path of links below the server's URL.
pub const LINKS: &str = "access/download";

/// An archive that a link leads to.
pub struct OpenedDelivery {
    /// Its name for people.
    pub name: String,
    /// Its bytes, or those of a range of it.
    pub content: Content,
}

/// Why a link leads to nothing.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It is none that was made here.
    #[error("This is not a valid download link; it may be incomplete.")]
    Invalid,
    /// It has expired, or the archive is gone.
    #[error("This link has expired. Request the object again.")]
    Expired,
    /// The range is not one of the archive.
    #[error("The archive has {0} bytes, but the range begins after its end.")]
    Range(u64),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl std::fmt::Debug for OpenedDelivery {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("OpenedDelivery").field("name", &self.name).finish_non_exhaustive()
    }
}

/// For how long a store signs a link at most (S3).
const MOST_PRESIGNED: Duration = Duration::from_hours(7 * 24);

impl Deliveries {
    /// A link to an archive, with its name for people, that is valid from `now` until an instant.
    ///
    /// # Errors
    /// When the key of the signatures cannot be read, or the store signs no links.
    pub async fn link(&self, name: &str, shown: &str, now: Timestamp, expires: Timestamp) -> Result<String, Error> {
        if self.settings.is_presigned {
            let lifetime = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
            // By the clock of the store, an archive may have been written later than now.
            let lifetime = lifetime.min(MOST_PRESIGNED);
            let (item, disposition) = (self.item(name), format!("attachment; filename=\"{shown}\""));
            let signed = self.store.presign(&item, &disposition, lifetime);
            return signed
                .await?
                .ok_or_else(|| self.refused("the store signs no links; set access.presigned to false"));
        }
        let seconds = expires.as_second();
        let signature = hmac::sign(self.key().await?, &signed(seconds, name));
        Ok(format!("{}{LINKS}/{seconds}/{}/{name}", self.settings.url, hex(signature.as_ref())))
    }

    /// Opens the archive of a link, or a range of it.
    ///
    /// # Errors
    /// When the link is not valid now, or the archive cannot be read.
    pub async fn open(
        &self,
        (expires, signature, name): (&str, &str, &str),
        range: Option<Range<u64>>,
        now: Timestamp,
    ) -> Result<OpenedDelivery, LinkError> {
        let seconds: i64 = expires.parse().map_err(|_| LinkError::Invalid)?;
        let signature = bytes_of(signature).ok_or(LinkError::Invalid)?;
        hmac::verify(self.key().await?, &signed(seconds, name), &signature).map_err(|_| LinkError::Invalid)?;
        if now.as_second() >= seconds {
            return Err(LinkError::Expired);
        }
        let content = match self.store.get(&self.item(name), range, None).await {
            Ok(content) => content,
            Err(Error { kind: ErrorKind::NotFound | ErrorKind::NoSpace, .. }) => return Err(LinkError::Expired),
            Err(Error { kind: ErrorKind::Range { size }, .. }) => return Err(LinkError::Range(size)),
            Err(error) => return Err(error.into()),
        };
        let shown = content.properties.user.metadata.get(NAME).cloned().unwrap_or_else(|| name.to_owned());
        Ok(OpenedDelivery { name: shown, content })
    }

    fn key_item(&self) -> Item {
        Item::new(self.settings.space.clone(), signing_key())
    }

    /// The key of the signatures; who needs it first makes it.
    async fn key(&self) -> Result<&hmac::Key, Error> {
        self.key.get_or_try_init(|| self.read_key()).await
    }

    async fn read_key(&self) -> Result<hmac::Key, Error> {
        self.store.create_space(&self.settings.space).await?;
        let item = self.key_item();
        for _ in 0..2 {
            match self.store.get(&item, None, None).await {
                Ok(content) => {
                    let bytes = self.read_small(&item, content.chunks).await?;
                    return Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes));
                }
                Err(Error { kind: ErrorKind::NotFound, .. }) => {}
                Err(error) => return Err(error),
            }
            let mut bytes = [0; KEY_BYTES];
            rand::fill(&mut bytes).map_err(|_| self.refused("the system provides no random bytes"))?;
            let chunks = stream::iter([Ok(Bytes::copy_from_slice(&bytes))]).boxed();
            let (size, condition) = (Some(KEY_BYTES as u64), Condition::IfAbsent);
            let put = Put { size, condition, is_secret: true, ..Put::default() };
            match self.store.put(&item, chunks, put).await {
                Ok(_) => return Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
                // Another process was faster.
                Err(error) if error.is_precondition() => {}
                Err(error) => return Err(error),
            }
        }
        Err(self.refused("other processes keep creating and removing it"))
    }

    async fn read_small(&self, item: &Item, mut chunks: Chunks) -> Result<BytesMut, Error> {
        let mut bytes = BytesMut::new();
        let failed = |error: io::Error| self.error(item, ErrorKind::Unavailable(error.to_string()));
        while let Some(chunk) = chunks.try_next().await.map_err(failed)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > KEY_BYTES {
                break;
            }
        }
        // Any other would be a key that may be guessed.
        if bytes.len() == KEY_BYTES {
            return Ok(bytes);
        }
        Err(self
            .refused(&format!("it does not have {KEY_BYTES} bytes; remove it to create valid links for new requests")))
    }

    fn refused(&self, why: &str) -> Error {
        self.error(&self.key_item(), ErrorKind::Refused(why.to_owned()))
    }

    fn error(&self, item: &Item, kind: ErrorKind) -> Error {
        let operation = queuekeeper_store::error::Operation::Get;
        Error { store: self.settings.store.clone(), operation, subject: item.to_string(), kind }
    }
}

/// What is signed.
fn signed(seconds: i64, name: &str) -> Vec<u8> {
    format!("{seconds} {name}").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of a signature, which is written in one way only.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let is_plain = hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !is_plain || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use jiff::SignedDuration;
    use queuekeeper_store::DirectoryStore;
    use uuid::Uuid;

    use super::super::delivery::SIGNING_KEY;
    use super::super::settings::AccessSettings;
    use super::*;
    use crate::engine::fence::Fence;

    async fn deliveries(directory: &std::path::Path) -> Deliveries {
        let store = DirectoryStore::open("out".parse().unwrap(), directory.to_owned()).await.unwrap();
        let settings = AccessSettings {
            store: "out".parse().unwrap(),
            space: "access".parse().unwrap(),
            node: 1,
            url: "https://host/q/".to_owned(),
            is_presigned: false,
            lifetime: Duration::from_hours(2),
            small: 1 << 30,
        };
        Deliveries::new(Arc::new(store), settings)
    }

    /// The three parts of a link.
    fn parts(link: &str) -> (&str, &str, &str) {
        let rest = link.strip_prefix("https://host/q/access/download/").unwrap();
        let parts: [&str; 3] = rest.split('/').collect::<Vec<_>>().try_into().unwrap();
        parts.into()
    }

    #[tokio::test]
    async fn a_link_opens_its_archive_until_it_expires_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let (first, fence) = (deliveries(directory.path()).await, Fence::new(Duration::from_secs(10)));
        let names = [1, 2].map(|number| format!("{}.zip", Uuid::from_u128(number)));
        let chunks = |text: &'static str| stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed();
        let now = Timestamp::now();
        for name in &names {
            assert_eq!(first.find(name, now).await.unwrap(), None);
            first.put(name, "ark_1_a_v1.zip", chunks("0123456789"), &fence).await.unwrap();
            // What another attempt writes later changes nothing.
            first.put(name, "other", chunks("other"), &fence).await.unwrap();
        }
        let expires = first.expires(first.find(&names[0], now).await.unwrap().unwrap().modified);
        let link = first.link(&names[0], "a.zip", now, expires).await.unwrap();
        // Another process has the same key.
        let other = deliveries(directory.path()).await;
        assert_eq!(other.link(&names[0], "a.zip", now, expires).await.unwrap(), link);
        let link = parts(&link);
        let read = async |link, range| {
            let opened = other.open(link, range, now).await?;
            let bytes: Vec<Bytes> = opened.content.chunks.try_collect().await.unwrap();
            Ok::<_, LinkError>((opened.name, String::from_utf8(bytes.concat()).unwrap()))
        };
        assert_eq!(read(link, None).await.unwrap(), ("ark_1_a_v1.zip".to_owned(), "0123456789".to_owned()));
        assert_eq!(read(link, Some(7..10)).await.unwrap().1, "789");
        assert!(matches!(read(link, Some(10..11)).await, Err(LinkError::Range(10))));
        let (seconds, signature, name) = link;
        let later = (seconds.parse::<i64>().unwrap() + 1).to_string();
        let changed = signature.replacen(['0', '1'], "2", 1);
        for forged in [
            (seconds, signature, names[1].as_str()),
            (later.as_str(), signature, name),
            (seconds, changed.as_str(), name),
            (seconds, &signature.to_uppercase(), name),
            (seconds, &signature[..62], name),
            (seconds, "", name),
            ("soon", signature, name),
            (seconds, signature, SIGNING_KEY),
        ] {
            assert!(matches!(other.open(forged, None, now).await, Err(LinkError::Invalid)), "{forged:?}");
        }
        assert!(matches!(other.open(link, None, expires).await, Err(LinkError::Expired)));

        // An archive is made again that would soon be gone, and removed when its time is over; the key stays.
        let half = now.checked_add(SignedDuration::from_mins(61)).unwrap();
        assert_eq!(other.find(&names[0], half).await.unwrap(), None);
        assert!(matches!(other.open(link, None, now).await, Err(LinkError::Expired)));
        assert_eq!(other.remove_expired(half).await.unwrap(), 0);
        let over = expires.checked_add(SignedDuration::from_secs(1)).unwrap();
        assert_eq!(other.remove_expired(over).await.unwrap(), 1);
        let left = other.store.list(&other.settings.space, b"", None);
        let left: Vec<_> = left.map_ok(|listed| listed.key.to_string()).try_collect().await.unwrap();
        assert_eq!(left, [SIGNING_KEY]);
        // Who could read it could sign a link to every archive.
        let place = directory.path().join("access").join(SIGNING_KEY);
        assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        // A key that is too short is refused.
        std::fs::write(place, "short").unwrap();
        let why =
            deliveries(directory.path()).await.link(&names[0], "a.zip", now, expires).await.unwrap_err().to_string();
        assert!(why.contains("does not have 32 bytes"), "{why}");
    }
}
