//! `queuekeeper object verify`: reads everything of an object, and compares.

use clap::Args;
use queuekeeper_store::ocfl::OcflError;
use serde::Serialize;

use super::compare::{Difference, Differences, compare_rows};
use crate::cli::exit::{CommandError, FAILED};
use crate::cli::output::{OutputArgs, Spinner, without_csv};
use crate::cli::repository::{ObjectName, Repository, RepositoryArgs};
use crate::words::{counted, size};

/// Read all content of an object, and compare it with its inventory, the sidecars and the catalogue
///
/// Each difference is a line; beyond 1,000, differences are only counted. A version that is being written or recorded
/// meanwhile is also a difference. Exits with 0 if there is none, with 1 if there is any or the object cannot be read,
/// and with 4 if there is no catalogue, or it does not have the object.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    name: ObjectName,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    ark: String,
    collection: String,
    store: String,
    space: String,
    /// Where the object lies in the space.
    root: String,
    /// How many files were read, and their bytes.
    files: u64,
    bytes: u64,
    /// How many differences there are; at most 1,000 are listed.
    count: u64,
    differences: Vec<Difference>,
}

impl VerifyArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let repository = self.repository.open().await?;
        let spinner = Spinner::start("reading the object");
        let verified = self.verify(&repository).await;
        drop(spinner);
        repository.catalogue.close().await;
        let report = verified?;
        self.output.show(&report, |screen| {
            screen.say(&report.ark);
            screen.fact("lies in", &format!("{}/{}/{}", report.store, report.space, report.root));
            screen.fact("read", &format!("{}, {}", counted(report.files, "file", "files"), size(report.bytes)));
            for difference in &report.differences {
                screen.entry(&format!("{}: {}", difference.of, difference.what));
            }
            if report.count == 0 {
                screen.fact("result", "nothing differs");
            }
        })?;
        if report.count == 0 {
            return Ok(());
        }
        let differences = counted(report.count, "difference", "differences");
        Err(CommandError::new(FAILED, format!("{}: {differences}", report.ark)).into())
    }

    async fn verify(&self, repository: &Repository) -> anyhow::Result<Report> {
        let failed = |why: String| CommandError::new(FAILED, why);
        let recorded = repository.find(&self.name).await?;
        let ark = recorded.ark.as_str();
        let located = repository.locate(ark, &recorded.collection).await?;
        let read = located.object.verify().await.map_err(|error| match error {
            OcflError::Missing { .. } => failed(located.nothing_there(ark)),
            error => failed(error.to_string()),
        })?;
        let mut found = Differences::default();
        for finding in read.findings {
            found.add(format!("{:?}", finding.file), finding.what);
        }
        // Those that are not listed.
        found.count = read.count;
        let snapshot = located.object.read().await.map_err(|error| failed(error.to_string()))?;
        let snapshot = snapshot.ok_or_else(|| failed(located.nothing_there(ark)))?;
        compare_rows(&repository.catalogue, &recorded, &located, snapshot.inventory(), &mut found).await?;
        Ok(Report {
            ark: ark.to_owned(),
            collection: recorded.collection.clone(),
            store: located.store.name().to_string(),
            space: located.space.to_string(),
            root: located.object.root().to_owned(),
            files: read.files,
            bytes: read.bytes,
            count: found.count,
            differences: found.listed,
        })
    }
}
