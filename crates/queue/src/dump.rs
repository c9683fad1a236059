//! The whole queue as lines of JSON: for a backup, for a bug report, to load it elsewhere.
//!
//! A dump is a header, one line a znode, a trailer with their number, and a checksum of all these lines. The znodes are
//! sorted depth first and by name, so two dumps can be compared line by line, and a parent comes before its children.
//! Values are texts, or base64 where they are not UTF-8. `/zookeeper` and `/queuekeeper` are left out, but for how far
//! the jobs of batches are created, which is in the header; unexpected znodes are not. Ephemeral znodes, which are
//! locks, are marked: they show who works on what, and cannot be restored.
//!
//! It is not a snapshot. The znodes of a job, batch or request are read at one moment, as are those of a batch's
//! folder; the queue moves on between them, so an entry or reference may belong to another moment than its job. Pause
//! the queue first where that matters. Of a batch whose jobs are being created meanwhile, the loader and the batch
//! daemon see to it that each row becomes one job.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;

use super::create::next_number;
use super::error::Error;
use super::handle::{Queue, Read};
use super::id::BatchId;
use super::path::{AccessQueue, Path};
use super::record::ExpansionNote;

pub mod line;
mod query;
mod redact;
mod walk;

pub(super) use line::Checksum;
pub use line::{FORMAT, Header, Trailer};
pub use redact::Redaction;

/// What to dump, and how to name it.
#[derive(Debug)]
pub struct DumpOptions {
    /// A random name, by which an interrupted load recognizes the dump.
    pub id: String,
    /// The present time.
    pub now: Timestamp,
    /// Replaces texts by pseudonyms, where wanted.
    pub redaction: Option<Redaction>,
}

/// The progress of a dump.
#[derive(Clone, Copy, Debug)]
pub struct DumpProgress {
    /// What was read until now.
    pub read: Trailer,
    /// How many jobs there were at the beginning, about.
    pub of_jobs: u64,
}

/// Why a dump failed, or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// Something could not be read. What was written until then has neither trailer nor checksum.
    #[error(transparent)]
    Read(#[from] Error),
    /// A line could not be written.
    #[error("cannot write the dump: {0}")]
    Write(io::Error),
}

/// The folders whose children ZooKeeper numbers.
pub(super) const NUMBERED: [Path; 4] =
    [Path::Batches, Path::Jobs, Path::AccessQueue(AccessQueue::Small), Path::AccessQueue(AccessQueue::Large)];

impl Queue {
    /// Writes the whole queue to `out`, and returns the trailer.
    ///
    /// A few megabytes are held at a time, besides the names of the children of the folders that are being read. Each
    /// request has the handle's time limit, and is repeated a few times after a lost connection.
    ///
    /// # Errors
    /// When a znode cannot be read, or a line not be written. A znode that our credentials do not let us read is an
    /// error too: a dump without it would pass for a whole one.
    pub async fn dump(
        &self,
        out: &mut impl Write,
        options: &DumpOptions,
        mut progress: impl FnMut(DumpProgress),
    ) -> Result<Trailer, DumpError> {
        let [root, numbered @ ..] = self
            .read_each(
                [Path::Root, Path::Batches, Path::Jobs, NUMBERED[2].clone(), NUMBERED[3].clone()].map(Read::Data),
            )
            .await?;
        if !root.exists() {
            return Err(Error::Missing(Path::Root).into());
        }
        let next = NUMBERED.iter().zip(&numbered).filter_map(|(path, found)| {
            let stat = found.stat()?;
            Some((path.to_string(), next_number(Some(stat))?))
        });
        let expansions = self.expansions(options.redaction.is_some()).await?;
        let header = Header {
            format: FORMAT,
            id: options.id.clone(),
            taken: options.now,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            redacted: options.redaction.is_some(),
            left_out: vec!["/zookeeper".into(), "/queuekeeper".into()],
            next: next.collect::<BTreeMap<_, _>>(),
            expansions,
        };
        let (mut line, mut sum) = (Vec::new(), Checksum::new());
        line::write_line(&mut line, &header);
        sum.add(&line);
        out.write_all(&line).map_err(DumpError::Write)?;
        // The folder of states is not a job.
        let of_jobs =
            numbered[1].stat().map_or(0, |stat| u64::from(stat.num_children.unsigned_abs()).saturating_sub(1));
        let mut walk = walk::Walk::new(self, options.redaction.as_ref());
        let written = walk.run(|lines, read| {
            progress(DumpProgress { read: *read, of_jobs });
            sum.add(lines);
            out.write_all(lines)
        });
        written.await?.map_err(DumpError::Write)?;
        line.clear();
        line::write_line(&mut line, &line::End { end: walk.counts });
        sum.add(&line);
        line::write_line(&mut line, &line::Sum { sha256: sum.text() });
        out.write_all(&line).map_err(DumpError::Write)?;
        out.flush().map_err(DumpError::Write)?;
        Ok(walk.counts)
    }

    /// How far the jobs of batches are created. What is in no form of ours says nothing to our daemons either.
    async fn expansions(&self, is_redacted: bool) -> Result<BTreeMap<BatchId, ExpansionNote>, Error> {
        let [listed] = self.read_each([Read::Children(Path::expansions())]).await?;
        let batches: Vec<BatchId> = listed.children().iter().filter_map(|name| name.parse().ok()).collect();
        let reads: Vec<_> = batches.iter().map(|batch| Read::Data(Path::expansion(*batch))).collect();
        let found = batches.into_iter().zip(self.read(&reads).await?);
        let noted = found.filter_map(|(batch, found)| {
            let mut note = ExpansionNote::decode(&found.data()?.0)?;
            if is_redacted {
                // A reader who has the manifest could recognize it.
                note.digest.clear();
            }
            Some((batch, note))
        });
        Ok(noted.collect())
    }
}

impl Trailer {
    /// Counts a znode by what it is.
    pub(super) fn count_item(&mut self, path: &Path) {
        if let Some(count) = match path {
            Path::Job(_) => Some(&mut self.jobs),
            Path::Batch(_) => Some(&mut self.batches),
            Path::Request(..) => Some(&mut self.requests),
            _ => None,
        } {
            *count += 1;
        }
    }
}
