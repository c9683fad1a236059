//! Lists versions.

use std::ops::Bound;

use s3s::dto::{
    CommonPrefix, DeleteMarkerEntry, ETag, ListObjectVersionsInput, ListObjectVersionsOutput, ObjectVersion,
    ObjectVersionStorageClass, Timestamp,
};
use s3s::{S3Request, S3Response, S3Result};

use super::Backend;
use super::list::{echoed, most};
use crate::s3::bucket::Version;
use crate::s3::listing::{Encoding, Query, Start, algorithms};

/// What a page has: versions and markers in the order in which they come, and the key and version that ended it.
#[derive(Default)]
struct Rows {
    versions: Vec<ObjectVersion>,
    markers: Vec<DeleteMarkerEntry>,
    prefixes: Vec<CommonPrefix>,
    last: Option<(Vec<u8>, Option<String>)>,
}

impl Rows {
    fn len(&self) -> usize {
        self.versions.len() + self.markers.len() + self.prefixes.len()
    }

    fn push(&mut self, key: &[u8], version: &Version, is_latest: bool, encoding: Encoding) {
        self.last = Some((key.to_owned(), Some(version.id.text())));
        let (key, version_id) = (Some(encoding.text(key)), Some(version.id.text()));
        let (last_modified, is_latest) = (Some(Timestamp::from(version.modified)), Some(is_latest));
        match &version.object {
            None => self.markers.push(DeleteMarkerEntry { key, version_id, last_modified, is_latest, owner: None }),
            Some(object) => self.versions.push(ObjectVersion {
                key,
                version_id,
                last_modified,
                is_latest,
                size: Some(object.size.cast_signed()),
                e_tag: Some(ETag::Strong(object.etag.clone())),
                storage_class: Some(ObjectVersionStorageClass::from(object.storage_class().to_owned())),
                checksum_algorithm: algorithms(&object.checksum),
                checksum_type: object.checksum.checksum_type.clone(),
                ..ObjectVersion::default()
            }),
        }
    }
}

impl Backend {
    pub(super) fn list_object_versions(
        &self,
        request: &S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let input = request.input.clone();
        let encoding = Encoding::of(input.encoding_type.as_ref());
        let query = Query {
            prefix: input.prefix.clone().unwrap_or_default().into_bytes(),
            delimiter: input.delimiter.clone().unwrap_or_default().into_bytes(),
            start: Start::First,
            most: most(input.max_keys)?,
        };
        let marker = input.key_marker.clone().unwrap_or_default().into_bytes();
        let version_marker = input.version_id_marker.clone().filter(|id| !id.is_empty());
        let mut rows = Rows::default();
        let mut is_truncated = false;
        let state = self.shared.state.lock();
        let bucket = state.bucket(&input.bucket)?;
        let first = marker.as_slice().max(query.prefix.as_slice());
        let entries = bucket.entries.range::<[u8], _>((Bound::Included(first), Bound::Unbounded));
        'keys: for (key, entry) in entries.take_while(|(key, _)| key.starts_with(&query.prefix)) {
            if let Some(prefix) = query.common_prefix(key) {
                let is_behind = prefix <= marker || rows.last.as_ref().is_some_and(|(last, _)| *last == prefix);
                if !is_behind && rows.len() == query.most {
                    is_truncated = true;
                    break;
                }
                if !is_behind {
                    rows.prefixes.push(CommonPrefix { prefix: Some(encoding.text(&prefix)) });
                    rows.last = Some((prefix, None));
                }
                continue;
            }
            // Of the key that ended the page before, those below the version that did.
            let mut is_behind = *key == marker;
            if is_behind && version_marker.is_none() {
                continue;
            }
            for (version, is_latest) in
                [(&entry.current, true)].into_iter().chain(entry.older.iter().rev().map(|one| (one, false)))
            {
                if is_behind {
                    is_behind = version_marker.as_deref() != Some(&version.id.text());
                    continue;
                }
                if rows.len() == query.most {
                    is_truncated = true;
                    break 'keys;
                }
                rows.push(key, version, is_latest, encoding);
            }
        }
        drop(state);
        let (next_key, next_version) = rows.last.filter(|_| is_truncated).unzip();
        Ok(S3Response::new(ListObjectVersionsOutput {
            name: Some(input.bucket),
            prefix: Some(echoed(encoding, input.prefix.as_ref()).unwrap_or_default()),
            delimiter: echoed(encoding, input.delimiter.as_ref()),
            key_marker: Some(echoed(encoding, input.key_marker.as_ref()).unwrap_or_default()),
            version_id_marker: input.version_id_marker,
            max_keys: i32::try_from(query.most).ok(),
            is_truncated: Some(is_truncated),
            next_key_marker: next_key.map(|key| encoding.text(&key)),
            next_version_id_marker: next_version.flatten(),
            versions: Some(rows.versions),
            delete_markers: Some(rows.markers),
            common_prefixes: Some(rows.prefixes),
            encoding_type: input.encoding_type,
            request_charged: None,
        }))
    }
}
