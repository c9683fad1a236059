//! Writing an inventory as a stream: the same inventory gives the same bytes.

use std::io::{self, Write};

use super::decode::TYPE;
use super::{Entry, Inventory, User};
use crate::digest::{Algorithm, Digest, Hashers};
use crate::ocfl::strings::Strings;

/// Writes an inventory as JSON, an entry a line, sorted by digests and paths.
pub(in crate::ocfl) fn encode(inventory: &Inventory, to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"{\n\"id\": ")?;
    string(to, &inventory.id)?;
    write!(to, ",\n\"type\": \"{TYPE}\",\n\"digestAlgorithm\": \"sha512\",\n\"head\": \"v{}\",\n", inventory.head())?;
    if inventory.names_content_directory {
        to.write_all(b"\"contentDirectory\": \"content\",\n")?;
    }
    to.write_all(b"\"manifest\": ")?;
    block(to, inventory, &inventory.manifest)?;
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
        block(to, inventory, &version.state)?;
        to.write_all(b"\n}")?;
    }
    to.write_all(b"\n}\n}\n")
}

/// The SHA-512 and the size in bytes of what [`encode`] writes.
pub(in crate::ocfl) fn measure(inventory: &Inventory) -> (Digest, u64) {
    let mut measure = io::BufWriter::with_capacity(1 << 16, Measure(Hashers::new([Algorithm::Sha512])));
    encode(inventory, &mut measure).expect("memory takes every byte");
    let Measure(hashers) = measure.into_inner().map_err(|_| ()).expect("memory takes every byte");
    let bytes = hashers.bytes();
    (hashers.finish().strongest().cloned().expect("one algorithm was requested"), bytes)
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

/// A block of paths by their SHA-512.
fn block(to: &mut impl Write, inventory: &Inventory, entries: &[Entry]) -> io::Result<()> {
    let mut sorted = entries.to_vec();
    let key = |entry: &Entry| (inventory.digests.bytes(entry.digest), inventory.paths.get(entry.path));
    sorted.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
    let groups = sorted.chunk_by(|one, other| one.digest == other.digest);
    let groups = groups.map(|group| {
        (inventory.digests.digest(group[0].digest).hex(), group.iter().map(|entry| inventory.paths.get(entry.path)))
    });
    pairs(to, groups)
}

fn fixity(to: &mut impl Write, inventory: &Inventory) -> io::Result<()> {
    if inventory.fixity.is_empty() {
        return Ok(());
    }
    let Inventory { fixity_algorithms: algorithms, fixity_digests: digests, paths, .. } = inventory;
    let mut sorted = inventory.fixity.clone();
    let text = |strings: &Strings, id| strings.get(id).to_owned();
    sorted.sort_unstable_by(|one, other| {
        let key = |entry: &super::FixityEntry| {
            (algorithms.get(entry.algorithm), digests.get(entry.digest), paths.get(entry.path))
        };
        key(one).cmp(&key(other))
    });
    to.write_all(b",\n\"fixity\": {")?;
    for (number, block) in sorted.chunk_by(|one, other| one.algorithm == other.algorithm).enumerate() {
        to.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        string(to, algorithms.get(block[0].algorithm))?;
        to.write_all(b": ")?;
        let groups = block.chunk_by(|one, other| one.digest == other.digest);
        pairs(
            to,
            groups.map(|group| (text(digests, group[0].digest), group.iter().map(|entry| paths.get(entry.path)))),
        )?;
    }
    to.write_all(b"\n}")
}

fn pairs<'a, P: Iterator<Item = &'a str>>(
    to: &mut impl Write,
    groups: impl Iterator<Item = (String, P)>,
) -> io::Result<()> {
    to.write_all(b"{")?;
    for (number, (digest, paths)) in groups.enumerate() {
        to.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        string(to, &digest)?;
        to.write_all(b": [")?;
        for (number, path) in paths.enumerate() {
            if number > 0 {
                to.write_all(b", ")?;
            }
            string(to, path)?;
        }
        to.write_all(b"]")?;
    }
    to.write_all(b"\n}")
}
