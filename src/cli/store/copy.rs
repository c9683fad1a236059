//! `queuekeeper store cp`: copies an item, within a store or to another one.

use clap::Args;
use queuekeeper_store::store::{Content, EntityTag, Properties, Put, Written};
use queuekeeper_store::{Algorithm, Digest, Digests, Error, ErrorKind, Store};

use super::ConfigArgs;
use super::open::{Writable, failed};
use super::path::{ItemPath, StorePath};
use super::read::{broken, digests};
use super::recorded::{Recorded, changed, damaged};
use super::write::WriteArgs;
use crate::cli::exit::{CommandError, FAILED, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, without_csv};
use crate::cli::prompt::Interrupts;

/// Copy an item with its properties, within a store or to another one
///
/// Before the copy appears, the content is compared with the checksums of its store and of the catalogue: content that
/// is damaged, or was changed after it was recorded, is not copied. If a signal ends the command, no copy appears.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct CopyArgs {
    /// The item
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    from: ItemPath,

    /// The copy
    #[arg(value_name = "STORE/SPACE/KEY", value_parser = StorePath::item_parser())]
    to: ItemPath,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    config: ConfigArgs,
}

/// What is to be copied.
struct Source<'a> {
    path: &'a ItemPath,
    kept: Digests,
    recorded: Option<Recorded>,
}

impl CopyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stores = self.config.stores()?;
        let interrupts = Interrupts::listen()?;
        let writable = stores.write(&self.to.store, &interrupts).await?;
        let copied = async {
            let is_within = self.from.store == self.to.store;
            let other = if is_within { None } else { Some(stores.read(&self.from.store).await?) };
            self.write.prepare(&self.to, &writable).await?;
            Ok::<_, anyhow::Error>(match other {
                None => self.copy_within(&writable, &interrupts).await?,
                Some(from) => self.copy_between(&*from, &writable, &interrupts).await?,
            })
        };
        let copied = copied.await;
        interrupts.close().await;
        writable.close().await;
        self.write.report(self.output, &self.to, copied?)
    }

    async fn copy_within(
        &self,
        writable: &Writable,
        interrupts: &Interrupts,
    ) -> Result<Result<Written, Error>, CommandError> {
        let store = &writable.store;
        let found = interrupts.unless(store.head(&self.from.item)).await?.map_err(|error| failed(&error))?;
        let missing = || CommandError::new(NOT_FOUND, format!("there is no item {}", self.from.short()));
        let found = found.ok_or_else(missing)?;
        let source = Source::of(&self.from, &found, writable).await?;
        // The store compares the state that it wrote; any other one is compared here.
        let read =
            if source.is_other_than_recorded(&found) { interrupts.unless(source.read(&**store)).await?? } else { None };
        let copied = store.copy(&self.from.item, read.as_ref(), &self.to.item, &self.write.condition()).await;
        source.explain(copied)
    }

    async fn copy_between(
        &self,
        from: &dyn Store,
        writable: &Writable,
        interrupts: &Interrupts,
    ) -> Result<Result<Written, Error>, CommandError> {
        let got = interrupts.unless(from.get(&self.from.item, None, None)).await?;
        let Content { properties, chunks } = got.map_err(|error| failed(&error))?;
        let source = Source::of(&self.from, &properties, writable).await?;
        let put = Put {
            size: Some(properties.size),
            expected: source.known().cloned().collect(),
            user: properties.user,
            ..Put::default()
        };
        let what = format!("copying {}", self.from);
        source.explain(self.write.send((writable, interrupts), (&what, &self.to), chunks, put).await)
    }
}

impl<'a> Source<'a> {
    /// The source in the state that was found; refused if that cannot be what was recorded.
    async fn of(path: &'a ItemPath, found: &Properties, writable: &Writable) -> Result<Self, CommandError> {
        let recorded = Recorded::of(&writable.catalogue, path).await?;
        let difference = recorded.as_ref().and_then(|it| it.difference(path, found.size, &found.checksums));
        match difference {
            Some(changed) => Err(changed),
            None => Ok(Self { path, kept: found.checksums.clone(), recorded }),
        }
    }

    /// All digests that are known of it.
    fn known(&self) -> impl Iterator<Item = &Digest> {
        self.kept.iter().chain(self.recorded.iter().flat_map(|recorded| recorded.digests.iter()))
    }

    fn is_other_than_recorded(&self, found: &Properties) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| recorded.is_other_than(found))
    }

    /// Reads it, and compares it with what was recorded; the answer is the state that was read.
    async fn read(&self, store: &dyn Store) -> Result<Option<EntityTag>, CommandError> {
        let got = store.get(&self.path.item, None, None).await.map_err(|error| failed(&error))?;
        let Content { properties, chunks } = got;
        let algorithms: Vec<Algorithm> = self.known().map(Digest::algorithm).collect();
        let read = digests(self.path, properties.size, algorithms, chunks).await?;
        let difference = self.recorded.as_ref().and_then(|it| it.difference(self.path, properties.size, &read));
        difference.map_or(Ok(Some(properties.etag)), Err)
    }

    /// What is wrong with the source is said of the source.
    fn explain(&self, copied: Result<Written, Error>) -> Result<Result<Written, Error>, CommandError> {
        match copied {
            Err(Error { kind: ErrorKind::Digest { expected, found }, .. }) => {
                let is_kept = self.kept.get(expected.algorithm()) == Some(&expected);
                let why = if is_kept { damaged } else { changed };
                Err(why(self.path, &expected, &found))
            }
            Err(Error { kind: ErrorKind::Source(error), .. }) => Err(broken(self.path, &error)),
            Err(Error { kind: ErrorKind::Size { expected, found }, .. }) => {
                let why = format!("{}: {found} bytes were read, not {expected}", self.path.short());
                Err(CommandError::new(FAILED, why))
            }
            Err(Error { kind: ErrorKind::NotFound, .. }) => {
                Err(CommandError::new(REFUSED, format!("{} has just been deleted", self.path.short())))
            }
            copied => Ok(copied),
        }
    }
}
