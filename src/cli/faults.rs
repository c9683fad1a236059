//! `queuekeeper faults`: what is broken in the tree.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::Timestamp;

use super::client::ClientArgs;
use super::output::Screen;
use super::paging::{Asked, Paging};
use super::words::{ago, count};
use crate::queue::fault::Fault;
use crate::web::views::faults::FaultList;

/// List what is broken in the tree, since when, what it does and what mends it
#[derive(Clone, Debug, Args)]
pub struct FaultsArgs {
    /// Only faults of this kind
    #[arg(value_name = "FAULT", value_parser = PossibleValuesParser::new(Fault::ALL.map(Fault::label)))]
    fault: Option<String>,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    client: ClientArgs,
}

impl FaultsArgs {
    /// Lists them.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub async fn run(self) -> anyhow::Result<()> {
        let list = self.client.ask(async |link| {
            let answers = link.walk(true).await?;
            let now = Timestamp::now();
            let asked = Asked::default().with("fault", self.fault.as_ref()).pairs();
            Ok(self.paging.take(asked, |asked| answers.faults(asked, now))?)
        });
        let list = list.await?;
        self.client.output.show(&list, |screen| show(&list, screen))?;
        if !self.client.output.is_json() {
            Paging::tell(&list, "fault", "faults");
        }
        Ok(())
    }
}

fn show(list: &FaultList, screen: &mut Screen) {
    let now = Timestamp::now();
    let mut before = None;
    for found in &list.items {
        if before != Some(found.fault) {
            if before.is_some() {
                screen.gap();
            }
            let kind = list.kinds.iter().find(|kind| kind.fault == found.fault);
            let (title, items) = kind.map_or(("", 0), |kind| (kind.title, kind.count));
            screen.say(&format!("{title} ({}): {}", found.fault, count(items)));
            screen.beneath(found.effect);
            screen.beneath(&format!("What mends it: {}", found.remedy));
            before = Some(found.fault);
        }
        screen.say(&format!("  {}, for {}: {}", found.item, ago(Some(found.since), now), found.how));
        for node in found.nodes.iter().filter(|node| **node != found.item) {
            screen.beneath(node);
        }
    }
}
