//! What is deposited: manifests, containers, and digests.

use std::io::Write as _;

use queuekeeper_ingest::manifest::ManifestProfile;
use queuekeeper_store::{Algorithm, Hashers};

/// A manifest of a profile with these rows.
pub(super) fn manifest(profile: ManifestProfile, rows: impl IntoIterator<Item = String>) -> String {
    let rows: String = rows.into_iter().map(|row| row + "\n").collect();
    format!("#%checkm_0.7\n#%profile | {}\n{rows}#%eof\n", profile.uri())
}

pub(super) fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options.compression_method(zip::CompressionMethod::Deflated)).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(super) fn tar_gz(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

pub(super) fn sha256(content: &str) -> String {
    let mut hasher = Hashers::new([Algorithm::Sha256]);
    hasher.update(content.as_bytes());
    hasher.finish().get(Algorithm::Sha256).unwrap().hex()
}
