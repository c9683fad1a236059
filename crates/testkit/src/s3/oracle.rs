//! What tests do and see without a request.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::sync::Arc;

use s3s::crypto::{Checksum as _, Md5};

use super::blob::Segment;
use super::bucket::Bucket;
use super::intake::Received;
use super::log::Logged;
use super::object::{Headers, Object};
use super::{S3Server, checksum};

impl S3Server {
    /// Makes a bucket, if there is none of this name.
    pub fn create_bucket(&self, bucket: &str) {
        let now = self.shared.clock.now();
        self.shared.state.lock().buckets.entry(bucket.to_owned()).or_insert_with(|| Bucket::new(now));
    }

    /// Puts objects under these keys, all with the same content, into a bucket, which is made where it is missing. A
    /// million of them take some seconds and about 200 bytes of memory each.
    pub fn plant<K: AsRef<str>>(&self, bucket: &str, keys: impl IntoIterator<Item = K>, content: &[u8]) {
        self.create_bucket(bucket);
        let mut md5 = Md5::new();
        md5.update(content);
        let segment = (!content.is_empty()).then(|| {
            let blob = self.shared.blobs.name();
            fs::write(blob.path(), content).unwrap();
            Segment { blob, size: content.len() as u64 }
        });
        let mut hasher = checksum::hasher(&[]);
        hasher.update(content);
        let received = Received { segment, md5: md5.finalize(), checksum: hasher.finalize() };
        let object = Arc::new(Object::new(received, Headers::default()));
        let now = self.shared.clock.now();
        for key in keys {
            let mut state = self.shared.state.lock();
            let bucket = state.buckets.get_mut(bucket).unwrap();
            bucket.put(key.as_ref().as_bytes(), Some(Arc::clone(&object)), now);
        }
    }

    /// The content of an object, read from where it lies.
    #[must_use]
    pub fn content(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let object = self.object(bucket, key)?;
        let mut content = Vec::new();
        for segment in &object.segments {
            fs::File::open(segment.blob.path()).unwrap().read_to_end(&mut content).unwrap();
        }
        Some(content)
    }

    /// All keys of a bucket that have an object, in ascending order.
    #[must_use]
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let state = self.shared.state.lock();
        let entries = state.buckets.get(bucket).into_iter().flat_map(|bucket| &bucket.entries);
        let live = entries.filter(|(_, entry)| entry.current.object.is_some());
        live.map(|(key, _)| String::from_utf8(key.clone()).unwrap()).collect()
    }

    /// How many unfinished uploads a bucket has.
    #[must_use]
    pub fn uploads(&self, bucket: &str) -> usize {
        self.shared.state.lock().buckets.get(bucket).map_or(0, |bucket| bucket.uploads.len())
    }

    /// Turns one bit in the middle of the stored content over, and changes nothing else: size, entity tag, checksums
    /// and time stay. Copies of the object are not touched.
    ///
    /// # Panics
    /// Where there is no such object, or it is empty.
    pub fn rot(&self, bucket: &str, key: &str) {
        let rotten = self.object(bucket, key).unwrap().rotten(&self.shared.blobs).unwrap();
        let mut state = self.shared.state.lock();
        let entry = state.buckets.get_mut(bucket).and_then(|bucket| bucket.entries.get_mut(key.as_bytes())).unwrap();
        entry.current.object = Some(rotten);
    }

    /// Lets an object have the entity tag and the checksums of other content, and changes nothing else.
    ///
    /// # Panics
    /// Where there is no such object.
    pub fn misstate(&self, bucket: &str, key: &str) {
        let other = b"content that no object has";
        let mut hasher = checksum::hasher(&[]);
        hasher.update(other);
        let mut md5 = Md5::new();
        md5.update(other);
        let received = Received { segment: None, md5: md5.finalize(), checksum: hasher.finalize() };
        let object = self.object(bucket, key).unwrap();
        let misstated = Object { etag: received.etag(), checksum: received.checksum, ..(*object).clone() };
        let mut state = self.shared.state.lock();
        let entry = state.buckets.get_mut(bucket).and_then(|bucket| bucket.entries.get_mut(key.as_bytes())).unwrap();
        entry.current.object = Some(Arc::new(misstated));
    }

    fn object(&self, bucket: &str, key: &str) -> Option<Arc<Object>> {
        let state = self.shared.state.lock();
        state.buckets.get(bucket)?.current(key)?.object.clone()
    }

    /// How many requests came, by operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.shared.log.counts()
    }

    /// How many requests came for this operation.
    #[must_use]
    pub fn count(&self, operation: &str) -> u64 {
        self.counts().get(operation).copied().unwrap_or_default()
    }

    /// The last requests that were answered, up to 10,000, in the order of their answers.
    #[must_use]
    pub fn requests(&self) -> Vec<Logged> {
        self.shared.log.last()
    }

    /// How many connections are open; writes that land late count as well.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.tasks.len()
    }

    /// Begins to count anew.
    pub fn clear_log(&self) {
        self.shared.log.clear();
    }
}
