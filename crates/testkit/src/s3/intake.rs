//! Takes a body in: writes it to a file and computes its digests in one pass.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt as _;
use http::{HeaderMap, StatusCode};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{Checksum, ChecksumType, StreamingBlob};
use s3s::{S3Error, S3ErrorCode, S3Result, TrailingHeaders, s3_error};
use tokio::io::AsyncWriteExt as _;

use super::blob::{Blobs, Segment};
use super::checksum::{self, Algorithm};

/// What a client says of the body that it sends.
pub(super) struct Announced {
    /// Base64 of the MD5.
    pub(super) md5: Option<String>,
    /// The checksums that were sent as headers.
    pub(super) checksum: Checksum,
    /// The algorithms to compute.
    pub(super) algorithms: Vec<Algorithm>,
    /// The length in bytes.
    pub(super) length: Option<i64>,
    /// Where checksums appear that are sent after the body.
    pub(super) trailers: Option<TrailingHeaders>,
}

impl Announced {
    /// What the headers say.
    pub(super) fn new(md5: Option<String>, checksum: Checksum, headers: &HeaderMap) -> Self {
        let algorithms = checksum::announced(&checksum, headers);
        Self { md5, checksum, algorithms, length: None, trailers: None }
    }

    /// What is computed of content that is copied within the server.
    pub(super) fn nothing(algorithms: Vec<Algorithm>) -> Self {
        Self { md5: None, checksum: Checksum::default(), algorithms, length: None, trailers: None }
    }
}

/// A body that is stored, and belongs to no object yet.
pub(super) struct Received {
    /// Its file; none for an empty body.
    pub(super) segment: Option<Segment>,
    /// Its MD5.
    pub(super) md5: [u8; 16],
    /// Its checksums.
    pub(super) checksum: Checksum,
}

impl Received {
    pub(super) fn size(&self) -> u64 {
        self.segment.as_ref().map_or(0, |segment| segment.size)
    }

    pub(super) fn etag(&self) -> String {
        hex(&self.md5)
    }
}

/// Hexadecimal digits of lower case.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("text is written to memory");
        digits
    })
}

/// Stores a body.
pub(super) async fn receive(blobs: &Blobs, body: Option<StreamingBlob>, announced: Announced) -> S3Result<Received> {
    let Announced { md5: sent_md5, checksum: mut sent, algorithms, length, trailers } = announced;
    let mut md5 = Md5::new();
    let mut hasher = checksum::hasher(&algorithms);
    let blob = blobs.name();
    let mut file = None;
    let mut size = 0_u64;
    if let Some(mut body) = body {
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|why| broken(&why))?;
            if file.is_none() {
                file = Some(tokio::fs::File::create(blob.path()).await.map_err(S3Error::internal_error)?);
            }
            let file = file.as_mut().expect("it was made just now");
            md5.update(&piece);
            hasher.update(&piece);
            size += piece.len() as u64;
            file.write_all(&piece).await.map_err(S3Error::internal_error)?;
        }
    }
    if let Some(mut file) = file {
        file.flush().await.map_err(S3Error::internal_error)?;
    }
    if length.is_some_and(|length| u64::try_from(length) != Ok(size)) {
        return Err(s3_error!(IncompleteBody, "The body has not the length that was announced."));
    }
    if let Some(trailers) = trailers.and_then(|trailers| trailers.take()) {
        checksum::add_trailers(&mut sent, &trailers);
    }
    let md5 = md5.finalize();
    compare_md5(sent_md5.as_deref(), &md5)?;
    let mut checksum = hasher.finalize();
    checksum::compare(&sent, &checksum)?;
    if checksum::algorithms(&checksum).next().is_some() {
        checksum.checksum_type = Some(ChecksumType::from_static(ChecksumType::FULL_OBJECT));
    }
    let segment = (size > 0).then_some(Segment { blob, size });
    Ok(Received { segment, md5, checksum })
}

fn compare_md5(sent: Option<&str>, computed: &[u8; 16]) -> S3Result<()> {
    let Some(sent) = sent else { return Ok(()) };
    let sent = BASE64_STANDARD.decode(sent).ok().filter(|digest| digest.len() == computed.len());
    let sent = sent.ok_or_else(|| s3_error!(InvalidDigest, "The Content-MD5 you specified is not valid."))?;
    if sent == computed {
        return Ok(());
    }
    Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match what we received."))
}

/// Why a body ended early. The library says it in words only.
fn broken(why: &s3s::StdError) -> S3Error {
    let words = why.to_string();
    if words.contains("Sha256Mismatch") {
        let code = S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into());
        let mut error = S3Error::with_message(code, "The x-amz-content-sha256 does not match the body.");
        error.set_status_code(StatusCode::BAD_REQUEST);
        return error;
    }
    if words.contains("SignatureMismatch") {
        return s3_error!(SignatureDoesNotMatch, "The signature of a chunk does not match.");
    }
    s3_error!(IncompleteBody, "The body ended early.")
}
