//! `queuekeeper object show`: what the catalogue knows of an object.

use clap::Args;
use jiff::Timestamp;

use crate::cli::exit::CommandError;
use crate::cli::mill::decide;
use crate::cli::output::{Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::repository::{ObjectName, RepositoryArgs};
use crate::cli::words::{ago, argument, moment};
use crate::views::mill::BitErrorItem;
use crate::views::objects::{FileFilter, FileProof, ObjectBitError, ObjectDetail, Objects, VersionNumber};
use crate::views::show::visible;
use crate::words::{counted, size};

/// Show an object: its versions, the files of one of them, and where it is stored
///
/// Up to 100 versions and 500 files are listed. Exits with 4 if there is no catalogue, or it does not have the object
/// or the version.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ShowArgs {
    #[command(flatten)]
    name: ObjectName,

    /// List the files of the version with this number; 0 is the newest one
    #[arg(long, value_name = "NUMBER", default_value = "0", hide_default_value = true)]
    version: VersionNumber,

    /// List the files after this path, such as the last one of a truncated list
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    after: String,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

impl ShowArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let repository = self.repository.open().await?;
        let found = repository.find(&self.name).await?;
        let filter = FileFilter { version: self.version, after: self.after };
        let objects = repository.with_copies(Objects::new(repository.catalogue.clone()), self.repository.mill()?);
        let detail = objects.object(&found.ark, &filter).await;
        repository.catalogue.close().await;
        let detail = detail.map_err(CommandError::from)?;
        let place = repository.place_of(&found.collection);
        self.output.show(&detail, |screen| show(screen, &detail, place.as_deref()))
    }
}

fn show(screen: &mut Screen, detail: &ObjectDetail, place: Option<&str>) {
    let object = &detail.object;
    screen.say(&object.ark);
    screen.fact("title", &object.title);
    screen.fact("creator", &object.creator);
    screen.fact("date", &object.date);
    screen.fact("owner", &object.owner);
    screen.fact("collection", &object.collection);
    screen.fact("local ids", &detail.local_ids.join(", "));
    screen.fact("store", place.unwrap_or("unknown: its collection has no valid profile"));
    screen.gap();
    let now = Timestamp::now();
    let columns = [
        Column::number("VERSION"),
        Column::new("RECORDED"),
        Column::number("FILES"),
        Column::number("SIZE"),
        Column::rest("SUBMITTER").if_filled(),
        Column::new("DEPOSIT").if_wide().if_filled(),
    ];
    let mut table = Table::new(columns);
    for version in &detail.versions {
        table.row([
            version.number.to_string(),
            moment(Some(version.ingested), now),
            version.file_count.to_string(),
            size(version.size_bytes),
            version.submitter.clone(),
            version.deposit.clone().unwrap_or_default(),
        ]);
    }
    screen.table(&table);
    if !detail.copies.is_empty() {
        screen.gap();
        let mut table = Table::new([Column::new("COPY"), Column::new("STATE"), Column::rest("MISSING").if_filled()]);
        for copy in &detail.copies {
            table.row([copy.store.clone(), copy.state(), visible(&copy.reason())]);
        }
        screen.table(&table);
    }
    bit_errors(detail, screen, now);
    screen.gap();
    screen.say(&format!("Files of version {}:", detail.version));
    let mut table = Table::new([
        Column::rest("FILE"),
        Column::number("SIZE"),
        Column::new("MEDIA TYPE").if_wide().if_filled(),
        Column::rest("LAST PROOF").if_filled(),
    ]);
    for file in &detail.files {
        let proof = |of: &FileProof| match (of.bit_error, of.proven) {
            (Some(number), _) => format!("{} has bit error {number}", of.store),
            (None, Some(at)) => format!("{} {} ago", of.store, ago(Some(at), now)),
            (None, None) => format!("{} never", of.store),
        };
        let proofs: Vec<_> = file.proofs.iter().map(proof).collect();
        table.row([file.path.clone(), size(file.size_bytes), file.media_type.clone(), proofs.join(", ")]);
    }
    screen.table(&table);
    if let Some(next) = &detail.next_file {
        screen.say(&format!("There are more files; --after {} lists them.", argument(next.as_bytes())));
    }
}

/// The open bit errors of the copies of an object.
fn bit_errors(detail: &ObjectDetail, screen: &mut Screen, now: Timestamp) {
    if detail.bit_errors.is_empty() {
        return;
    }
    screen.gap();
    screen.say(&format!("{}:", counted(detail.bit_error_count, "open bit error", "open bit errors")));
    for ObjectBitError { path, error } in &detail.bit_errors {
        let BitErrorItem { number, store, detail, found, expected, actual, why, fix, .. } = error;
        let since = ago(Some(*found), now);
        screen.item("- ", &format!("{path} in {store}, bit error {number}, found {since} ago: {detail}"));
        screen.fact_beneath("expected", expected);
        screen.fact_beneath("found", actual);
        screen.beneath(&format!("{why} {fix}"));
        if let Some(how) = decide(error) {
            screen.beneath(&how);
        }
    }
    let more = detail.bit_error_count.saturating_sub(detail.bit_errors.len() as u64);
    if more > 0 {
        screen.say(&format!("And {}: queuekeeper mill errors lists all.", counted(more, "more", "more")));
    }
}
