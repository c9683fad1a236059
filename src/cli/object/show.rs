//! `queuekeeper object show`: what the catalogue knows of an object.

use clap::Args;
use jiff::Timestamp;

use super::place::{ObjectName, PlaceArgs};
use crate::cli::exit::CommandError;
use crate::cli::output::{Column, OutputArgs, Screen, Table, without_csv};
use crate::cli::words::moment;
use crate::mirror::words::size;
use crate::views::objects::{ObjectDetail, Objects};

/// Show an object: its versions, the files of the newest one, and where it lies
///
/// Up to 100 versions and 500 files are listed. Exits with 4 if there is no catalogue, or it does not have the object.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("format", without_csv))]
pub(super) struct ShowArgs {
    #[command(flatten)]
    name: ObjectName,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    place: PlaceArgs,
}

impl ShowArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let repository = self.place.open().await?;
        let found = repository.find(&self.name).await?;
        let detail = Objects::new(repository.catalogue.clone()).object(&found.ark).await;
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
        Column::number("version"),
        Column::new("recorded"),
        Column::number("files"),
        Column::number("size"),
        Column::rest("submitter").if_filled(),
        Column::new("deposit").if_wide().if_filled(),
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
    screen.gap();
    let mut table =
        Table::new([Column::rest("file"), Column::number("size"), Column::new("media type").if_wide().if_filled()]);
    for file in &detail.files {
        table.row([file.path.clone(), size(file.size_bytes), file.media_type.clone()]);
    }
    screen.table(&table);
    let all = detail.versions.first().map_or(0, |version| version.file_count);
    let listed = detail.files.len() as u64;
    if all > listed {
        screen.say(&format!("{} more files are not listed.", all - listed));
    }
}
