//! Puts an object together from parts.

use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, CompletedPart};
use s3s::{S3Result, s3_error};

use super::checksum::{self, Algorithm, checksums_of};
use super::intake::hex;
use super::object::Object;
use super::upload::{Part, Upload};

/// The object of the parts that a client lists, which says what it believes of them.
pub(super) fn assemble(upload: &Upload, listed: &[CompletedPart], sent: &Checksum, least: u64) -> S3Result<Object> {
    if listed.is_empty() {
        return Err(s3_error!(MalformedXML, "You must specify at least one part"));
    }
    if !listed.is_sorted_by(|one, next| one.part_number < next.part_number) {
        return Err(s3_error!(InvalidPartOrder, "The list of parts was not in ascending order."));
    }
    let parts = listed.iter().map(|listed| find(upload, listed)).collect::<S3Result<Vec<_>>>()?;
    if parts[..parts.len() - 1].iter().any(|part| part.size() < least) {
        return Err(s3_error!(EntityTooSmall, "Your proposed upload is smaller than the minimum allowed size"));
    }
    let mut md5 = Md5::new();
    for part in &parts {
        md5.update(&part.md5);
    }
    let of_parts: Vec<_> = parts.iter().map(|part| (part.size(), part.checksum.clone())).collect();
    let checksum = upload.checksum.and_then(|(algorithm, kind)| checksum::of_parts(algorithm, kind, &of_parts));
    let checksum = checksum.unwrap_or_default();
    compare(sent, &checksum)?;
    Ok(Object {
        size: parts.iter().map(|part| part.size()).sum(),
        etag: format!("{}-{}", hex(&md5.finalize()), parts.len()),
        segments: parts.iter().filter_map(|part| part.segment.clone()).collect(),
        checksum,
        parts: of_parts,
        headers: upload.headers.clone(),
    })
}

/// The part that the client means, if it is still what the client believes.
fn find<'a>(upload: &'a Upload, listed: &CompletedPart) -> S3Result<&'a Part> {
    let invalid = || s3_error!(InvalidPart, "One or more of the specified parts could not be found.");
    let part = listed.part_number.and_then(|number| upload.parts.get(&number)).ok_or_else(invalid)?;
    if listed.e_tag.as_ref().is_none_or(|etag| etag.value() != part.etag) {
        return Err(invalid());
    }
    let sent = checksums_of!(listed);
    for algorithm in checksum::algorithms(&sent) {
        if algorithm.of(&sent) != algorithm.of(&part.checksum) {
            return Err(invalid());
        }
    }
    let is_missing = |(algorithm, _): (Algorithm, _)| algorithm.of(&sent).is_none();
    if upload.is_requested && upload.is_composite() && upload.checksum.is_some_and(is_missing) {
        return Err(s3_error!(InvalidRequest, "The complete request must include the checksum for each part."));
    }
    Ok(part)
}

/// The checksum that the client sends may lack the number of parts.
fn compare(sent: &Checksum, computed: &Checksum) -> S3Result<()> {
    for algorithm in checksum::algorithms(sent) {
        let (sent, computed) = (algorithm.of(sent), algorithm.of(computed));
        let without_count = computed.map(|computed| computed.split('-').next().unwrap_or_default());
        if sent != computed && sent.map(String::as_str) != without_count {
            let name = algorithm.name();
            return Err(s3_error!(BadDigest, "The {name} you specified did not match the calculated checksum."));
        }
    }
    Ok(())
}
