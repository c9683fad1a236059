//! The five checksums that S3 keeps beside content, of one body and of several parts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crc_fast::CrcAlgorithm;
use http::HeaderMap;
use s3s::S3Result;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::{Checksum, ChecksumAlgorithm, ChecksumType};
use s3s::s3_error;

/// Takes the checksums out of any of the protocol's structures that has them.
macro_rules! checksums_of {
    ($from:expr) => {
        s3s::dto::Checksum {
            checksum_crc32: $from.checksum_crc32.clone(),
            checksum_crc32c: $from.checksum_crc32c.clone(),
            checksum_crc64nvme: $from.checksum_crc64nvme.clone(),
            checksum_sha1: $from.checksum_sha1.clone(),
            checksum_sha256: $from.checksum_sha256.clone(),
            checksum_type: None,
        }
    };
}

/// Builds one of the protocol's structures that have checksums and their type.
macro_rules! with_checksums {
    ($output:ident { $($fields:tt)* }, $checksum:expr) => {{
        let s3s::dto::Checksum {
            checksum_crc32,
            checksum_crc32c,
            checksum_crc64nvme,
            checksum_sha1,
            checksum_sha256,
            checksum_type,
        } = $checksum;
        $output {
            checksum_crc32,
            checksum_crc32c,
            checksum_crc64nvme,
            checksum_sha1,
            checksum_sha256,
            checksum_type,
            $($fields)*
        }
    }};
}
pub(super) use {checksums_of, with_checksums};

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

impl Algorithm {
    pub(super) const ALL: [Self; 5] = [Self::Crc32, Self::Crc32c, Self::Crc64Nvme, Self::Sha1, Self::Sha256];

    /// Its name in headers and XML.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crc32 => ChecksumAlgorithm::CRC32,
            Self::Crc32c => ChecksumAlgorithm::CRC32C,
            Self::Crc64Nvme => ChecksumAlgorithm::CRC64NVME,
            Self::Sha1 => ChecksumAlgorithm::SHA1,
            Self::Sha256 => ChecksumAlgorithm::SHA256,
        }
    }

    /// The one with this name, in any case.
    pub(super) fn named(name: &str) -> S3Result<Self> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| s3_error!(InvalidRequest, "unknown checksum algorithm"))
    }

    pub(super) fn of(self, checksum: &Checksum) -> Option<&String> {
        match self {
            Self::Crc32 => checksum.checksum_crc32.as_ref(),
            Self::Crc32c => checksum.checksum_crc32c.as_ref(),
            Self::Crc64Nvme => checksum.checksum_crc64nvme.as_ref(),
            Self::Sha1 => checksum.checksum_sha1.as_ref(),
            Self::Sha256 => checksum.checksum_sha256.as_ref(),
        }
    }

    fn slot(self, checksum: &mut Checksum) -> &mut Option<String> {
        match self {
            Self::Crc32 => &mut checksum.checksum_crc32,
            Self::Crc32c => &mut checksum.checksum_crc32c,
            Self::Crc64Nvme => &mut checksum.checksum_crc64nvme,
            Self::Sha1 => &mut checksum.checksum_sha1,
            Self::Sha256 => &mut checksum.checksum_sha256,
        }
    }

    /// The CRC by which checksums of parts are combined; none for the others.
    fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Sha1 | Self::Sha256 => None,
        }
    }

    /// The type that S3 gives the checksum of an object in parts, where the client requests this one or none (User
    /// Guide, *Checking object integrity*).
    pub(super) fn type_of_parts(self, requested: Option<&ChecksumType>) -> S3Result<&'static str> {
        match (self, requested.map(ChecksumType::as_str)) {
            (Self::Crc64Nvme, None)
            | (Self::Crc64Nvme | Self::Crc32 | Self::Crc32c, Some(ChecksumType::FULL_OBJECT)) => {
                Ok(ChecksumType::FULL_OBJECT)
            }
            (Self::Crc64Nvme, Some(_)) | (Self::Sha1 | Self::Sha256, Some(ChecksumType::FULL_OBJECT)) => {
                Err(s3_error!(InvalidRequest, "this checksum type cannot be used with this checksum algorithm"))
            }
            (_, None | Some(ChecksumType::COMPOSITE)) => Ok(ChecksumType::COMPOSITE),
            (_, Some(_)) => Err(s3_error!(InvalidRequest, "unknown checksum type")),
        }
    }
}

/// The algorithms whose checksums are there.
pub(super) fn algorithms(checksum: &Checksum) -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.into_iter().filter(|algorithm| algorithm.of(checksum).is_some())
}

/// The algorithms whose checksums a client sends with a body: before it, or after it as trailers.
pub(super) fn announced(sent: &Checksum, headers: &HeaderMap) -> Vec<Algorithm> {
    let trailers: Vec<_> = headers.get_all("x-amz-trailer").iter().filter_map(|value| value.to_str().ok()).collect();
    let is_trailer = |algorithm: &Algorithm| {
        let header = format!("x-amz-checksum-{}", algorithm.name());
        trailers.iter().flat_map(|names| names.split(',')).any(|name| name.trim().eq_ignore_ascii_case(&header))
    };
    Algorithm::ALL.into_iter().filter(|&one| one.of(sent).is_some() || is_trailer(&one)).collect()
}

/// What computes these checksums.
pub(super) fn hasher(algorithms: &[Algorithm]) -> ChecksumHasher {
    let mut hasher = ChecksumHasher::default();
    for algorithm in algorithms {
        match algorithm {
            Algorithm::Crc32 => hasher.crc32 = Some(Crc32::new()),
            Algorithm::Crc32c => hasher.crc32c = Some(Crc32c::new()),
            Algorithm::Crc64Nvme => hasher.crc64nvme = Some(Crc64Nvme::new()),
            Algorithm::Sha1 => hasher.sha1 = Some(Sha1::new()),
            Algorithm::Sha256 => hasher.sha256 = Some(Sha256::new()),
        }
    }
    hasher
}

/// Adds the checksums that came as trailers to those that came as headers.
pub(super) fn add_trailers(sent: &mut Checksum, trailers: &HeaderMap) {
    for algorithm in Algorithm::ALL {
        let name = format!("x-amz-checksum-{}", algorithm.name().to_ascii_lowercase());
        if let Some(value) = trailers.get(name).and_then(|value| value.to_str().ok()) {
            *algorithm.slot(sent) = Some(value.to_owned());
        }
    }
}

/// Refuses a body whose checksums are not those that the client sent.
pub(super) fn compare(sent: &Checksum, computed: &Checksum) -> S3Result<()> {
    for algorithm in algorithms(sent) {
        if algorithm.of(sent) != algorithm.of(computed) {
            let name = algorithm.name();
            return Err(s3_error!(BadDigest, "The {name} you specified did not match the calculated checksum."));
        }
    }
    Ok(())
}

/// The checksum of an object from those of its parts, each with its size in bytes. `None` where a part has none.
pub(super) fn of_parts(algorithm: Algorithm, kind: &'static str, parts: &[(u64, Checksum)]) -> Option<Checksum> {
    let digests = parts.iter().map(|(_, checksum)| BASE64_STANDARD.decode(algorithm.of(checksum)?).ok());
    let digests = digests.collect::<Option<Vec<_>>>()?;
    let mut whole = Checksum { checksum_type: Some(ChecksumType::from_static(kind)), ..Checksum::default() };
    let value = if kind == ChecksumType::COMPOSITE {
        let mut hasher = hasher(&[algorithm]);
        hasher.update(&digests.concat());
        format!("{}-{}", algorithm.of(&hasher.finalize())?, digests.len())
    } else {
        let crc = algorithm.crc()?;
        let number = |digest: &[u8]| digest.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
        let mut all = digests.iter().zip(parts).map(|(digest, (size, _))| (number(digest), *size));
        let first = all.next()?.0;
        let sum = all.fold(first, |sum, (next, size)| crc_fast::checksum_combine(crc, sum, next, size));
        let bytes = sum.to_be_bytes();
        BASE64_STANDARD.encode(&bytes[bytes.len() - digests[0].len()..])
    };
    *algorithm.slot(&mut whole) = Some(value);
    Some(whole)
}
