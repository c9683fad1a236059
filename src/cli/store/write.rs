//! What `put` and `cp` share: conditions, the way of content into a store, and what is shown of it.

use clap::Args;
use queuekeeper_store::store::{Chunks, Condition, Put, Written};
use queuekeeper_store::{Algorithm, Error, ErrorKind};

use super::open::{Writable, failed};
use super::path::ItemPath;
use super::report::ItemReport;
use crate::cli::exit::{CommandError, NOT_FOUND, REFUSED};
use crate::cli::output::{OutputArgs, Transfer};
use crate::cli::prompt::Interrupts;

/// What may be there already, and what may be made.
#[derive(Clone, Debug, Args)]
pub(super) struct WriteArgs {
    /// Replace an existing item
    #[arg(long)]
    replace: bool,

    /// Create the space if it does not exist
    #[arg(long = "create-space")]
    create_space: bool,
}

impl WriteArgs {
    /// What must hold of the item.
    pub(super) fn condition(&self) -> Condition {
        if self.replace { Condition::None } else { Condition::IfAbsent }
    }

    /// Makes the space, if that is requested.
    pub(super) async fn prepare(&self, to: &ItemPath, writable: &Writable) -> Result<(), CommandError> {
        if self.create_space {
            writable.store.create_space(&to.item.space).await.map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Writes content with the digests that are shown of it. A signal ends it, and nothing appears.
    pub(super) async fn send(
        &self,
        (writable, interrupts): (&Writable, &Interrupts),
        (what, to): (&str, &ItemPath),
        content: Chunks,
        put: Put,
    ) -> Result<Written, Error> {
        let (condition, compute) = (self.condition(), vec![Algorithm::Sha256, Algorithm::Sha512]);
        let put = Put { condition, compute, abort: interrupts.token(), ..put };
        let transfer = Transfer::start(what, put.size);
        writable.store.put(&to.item, transfer.watch(content), put).await
    }

    /// Shows what was written, or why not.
    pub(super) fn report(
        &self,
        output: OutputArgs,
        to: &ItemPath,
        written: Result<Written, Error>,
    ) -> anyhow::Result<()> {
        let written = written.map_err(|error| match error.kind {
            ErrorKind::Precondition if !self.replace => {
                CommandError::new(REFUSED, format!("{} exists; --replace replaces it", to.short()))
            }
            ErrorKind::NoSpace => {
                let (store, space) = (&to.store, &to.item.space);
                CommandError::new(NOT_FOUND, format!("there is no space {store}/{space}; --create-space creates it"))
            }
            _ => failed(&error),
        })?;
        let report = ItemReport::written(to, &written);
        output.show(&report, |screen| report.show(screen))
    }
}
