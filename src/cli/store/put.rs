//! `queuekeeper store put`: writes an item.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use futures::StreamExt as _;
use queuekeeper_store::digest::DigestError;
use queuekeeper_store::store::{Chunks, Put, UserProperties};
use queuekeeper_store::{Algorithm, Digest};
use tokio::fs::File;
use tokio_util::io::ReaderStream;

use super::ConfigArgs;
use super::path::{ItemPath, StorePath};
use super::write::WriteArgs;
use crate::cli::output::{OutputArgs, without_csv};
use crate::cli::prompt::Interrupts;

/// How much is read at a time, in bytes.
const CHUNK: usize = 256 << 10;

/// Write a file or standard input as an item
///
/// The item appears when all of it has been written and its digests match, or not at all.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct PutArgs {
    /// The file; - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    to: ItemPath,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    write: WriteArgs,

    /// A digest that the content must have, such as sha256:9f86d081...; may be repeated
    #[arg(long = "digest", value_name = "ALGORITHM:HEX", value_parser = digest)]
    digests: Vec<Digest>,

    /// The media type to store with the item
    #[arg(long = "content-type", value_name = "TYPE")]
    content_type: Option<String>,

    #[command(flatten)]
    config: ConfigArgs,
}

fn digest(text: &str) -> Result<Digest, String> {
    let (algorithm, hex) = text.split_once(':').ok_or("a digest is ALGORITHM:HEX")?;
    let algorithm: Algorithm = algorithm.parse().map_err(|error: DigestError| error.to_string())?;
    Digest::from_hex(algorithm, hex).map_err(|error| match error {
        DigestError::Form { algorithm, bytes } => format!("{algorithm} digests have {} hexadecimal digits", 2 * bytes),
        error @ DigestError::Algorithm(_) => error.to_string(),
    })
}

impl PutArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (size, chunks) = source(&self.file).await?;
        let stores = self.config.stores()?;
        let interrupts = Interrupts::listen()?;
        let writable = stores.write(&self.to.store, &interrupts).await?;
        self.write.prepare(&self.to, &writable).await?;
        let put = Put {
            size,
            expected: self.digests.iter().cloned().collect(),
            user: UserProperties { content_type: self.content_type.clone(), ..UserProperties::default() },
            ..Put::default()
        };
        let what = format!("writing {}", self.to);
        let written = self.write.send((&writable, &interrupts), (&what, &self.to), chunks, put).await;
        interrupts.close().await;
        writable.close().await;
        self.write.report(self.output, &self.to, written)
    }
}

/// The content of a file, with its size, or of standard input.
async fn source(file: &Path) -> anyhow::Result<(Option<u64>, Chunks)> {
    if file.as_os_str() == "-" {
        return Ok((None, ReaderStream::with_capacity(tokio::io::stdin(), CHUNK).boxed()));
    }
    let cannot = || format!("cannot read {}", file.display());
    let opened = File::open(file).await.with_context(cannot)?;
    let facts = opened.metadata().await.with_context(cannot)?;
    if facts.is_dir() {
        anyhow::bail!("{} is a directory", file.display());
    }
    // What is no plain file, such as a pipe, has no size before it ends.
    let size = facts.is_file().then_some(facts.len());
    Ok((size, ReaderStream::with_capacity(opened, CHUNK).boxed()))
}
