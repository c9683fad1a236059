//! Writing an inventory as a stream: the same inventory gives the same bytes.

use std::io::{self, Write};

use super::decode::TYPE;
use super::relations::{sha512, split_digest, split_fixity, split_version, version_key};
use super::{Inventory, User};
use crate::digest::{Algorithm, Digest, Hashers};
use crate::ocfl::path::text;
use crate::sorted::Merged;

/// Writes an inventory as JSON, an entry a line, sorted by digests and paths.
pub(in crate::ocfl) fn encode(inventory: &Inventory, to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"{\n\"id\": ")?;
    string(to, &inventory.id)?;
    write!(to, ",\n\"type\": \"{TYPE}\",\n\"digestAlgorithm\": \"sha512\",\n\"head\": \"v{}\",\n", inventory.head())?;
    if inventory.names_content_directory {
        to.write_all(b"\"contentDirectory\": \"content\",\n")?;
    }
    to.write_all(b"\"manifest\": ")?;
    pairs(to, inventory.relations.manifest.all(), split_digest, hex)?;
    fixity(to, inventory)?;
    to.write_all(b",\n\"versions\": {")?;
    for (number, version) in (1_u32..).zip(&inventory.versions) {
        let comma = if number == 1 { "" } else { "," };
        write!(to, "{comma}\n\"v{number}\": {{\n\"created\": ")?;
        string(to, &version.created)?;
        if let Some(message) = &version.message {
            to.write_all(b",\n\"message\": ")?;
            string(to, message)?;
        }
        if let Some(of) = &version.user {
            user(to, of)?;
        }
        to.write_all(b",\n\"state\": ")?;
        let state = inventory.relations.states_by_digest.within(&version_key(number));
        pairs(to, state, |key| split_digest(split_version(key)?.1), hex)?;
        to.write_all(b"\n}")?;
    }
    to.write_all(b"\n}\n}\n")
}

/// The SHA-512 and the size in bytes of what [`encode`] writes.
pub(in crate::ocfl) fn measure(inventory: &Inventory) -> io::Result<(Digest, u64)> {
    let mut measure = io::BufWriter::with_capacity(1 << 16, Measure(Hashers::new([Algorithm::Sha512])));
    encode(inventory, &mut measure)?;
    let Measure(hashers) = measure.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = hashers.bytes();
    Ok((hashers.finish().strongest().cloned().expect("one algorithm was requested"), bytes))
}

struct Measure(Hashers);

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn string(to: &mut impl Write, text: &str) -> io::Result<()> {
    Ok(serde_json::to_writer(to, text)?)
}

fn user(to: &mut impl Write, user: &User) -> io::Result<()> {
    to.write_all(b",\n\"user\": {\"name\": ")?;
    string(to, &user.name)?;
    if let Some(address) = &user.address {
        to.write_all(b", \"address\": ")?;
        string(to, address)?;
    }
    to.write_all(b"}")
}

fn hex(digest: &[u8]) -> io::Result<String> {
    Ok(sha512(digest)?.hex())
}

fn fixity(to: &mut impl Write, inventory: &Inventory) -> io::Result<()> {
    let mut algorithms = Vec::new();
    for (place, name) in (0_u8..).zip(&inventory.algorithms) {
        if inventory.relations.fixity.first(&[place])?.is_some() {
            algorithms.push((name, place));
        }
    }
    if algorithms.is_empty() {
        return Ok(());
    }
    algorithms.sort_unstable();
    to.write_all(b",\n\"fixity\": {")?;
    for (number, (name, place)) in algorithms.into_iter().enumerate() {
        to.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        string(to, name)?;
        to.write_all(b": ")?;
        let digest = |digest: &[u8]| text(digest).map(str::to_owned);
        pairs(to, inventory.relations.fixity.within(&[place]), split_fixity, digest)?;
    }
    to.write_all(b"\n}")
}

/// A block of paths by their digests, from records whose keys have both.
fn pairs(
    to: &mut impl Write,
    records: Merged,
    split: impl Fn(&[u8]) -> io::Result<(&[u8], &str)>,
    name: impl Fn(&[u8]) -> io::Result<String>,
) -> io::Result<()> {
    to.write_all(b"{")?;
    let mut before: Option<Vec<u8>> = None;
    for record in records {
        let record = record?;
        let (digest, path) = split(record.key())?;
        if before.as_deref() == Some(digest) {
            to.write_all(b", ")?;
        } else {
            to.write_all(if before.is_none() { b"\n" } else { b"],\n" })?;
            string(to, &name(digest)?)?;
            to.write_all(b": [")?;
            before = Some(digest.to_vec());
        }
        string(to, path)?;
    }
    to.write_all(if before.is_none() { b"\n}" } else { b"]\n}" })
}
