//! Computing digests.

use std::collections::BTreeSet;

use aws_lc_rs::digest::{self as sha, Context};
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};

use super::{Algorithm, Digest, Digests};

/// Several digests in one pass over content.
pub struct Hashers {
    hashers: Vec<(Algorithm, Hasher)>,
    bytes: u64,
}

enum Hasher {
    Adler(simd_adler32::Adler32),
    Crc(Box<crc_fast::Digest>),
    Md5(Md5),
    Sha(Context),
}

impl Hasher {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Adler32 => Self::Adler(simd_adler32::Adler32::new()),
            Algorithm::Crc32 => Self::Crc(Box::new(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc))),
            Algorithm::Crc32c => Self::Crc(Box::new(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi))),
            Algorithm::Crc64Nvme => Self::Crc(Box::new(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme))),
            Algorithm::Md5 => Self::Md5(Md5::new()),
            Algorithm::Sha1 => Self::Sha(Context::new(&sha::SHA1_FOR_LEGACY_USE_ONLY)),
            Algorithm::Sha256 => Self::Sha(Context::new(&sha::SHA256)),
            Algorithm::Sha384 => Self::Sha(Context::new(&sha::SHA384)),
            Algorithm::Sha512 => Self::Sha(Context::new(&sha::SHA512)),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Adler(hasher) => hasher.write(bytes),
            Self::Crc(hasher) => hasher.update(bytes),
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Sha(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self, algorithm: Algorithm) -> Digest {
        let bytes: Box<[u8]> = match self {
            Self::Adler(hasher) => hasher.finish().to_be_bytes().into(),
            Self::Crc(hasher) => {
                let all = hasher.finalize().to_be_bytes();
                all[all.len() - algorithm.spec().bytes..].into()
            }
            Self::Md5(hasher) => hasher.finalize().as_slice().into(),
            Self::Sha(hasher) => hasher.finish().as_ref().into(),
        };
        Digest { algorithm, bytes }
    }
}

impl Hashers {
    /// Hashers of these algorithms, each once.
    pub fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let algorithms: BTreeSet<_> = algorithms.into_iter().collect();
        let hashers = algorithms.into_iter().map(|algorithm| (algorithm, Hasher::new(algorithm))).collect();
        Self { hashers, bytes: 0 }
    }

    /// Takes the next bytes of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for (_, hasher) in &mut self.hashers {
            hasher.update(bytes);
        }
    }

    /// How many bytes came so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digests of all bytes that came.
    #[must_use]
    pub fn finish(self) -> Digests {
        self.hashers.into_iter().map(|(algorithm, hasher)| hasher.finish(algorithm)).collect()
    }
}
