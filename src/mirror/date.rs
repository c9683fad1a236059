//! Since when there is what a walk found broken: the walk itself learns no more than the names of queue entries,
//! references and unexpected znodes.

use hashbrown::HashMap;
use zookeeper_client::Client;

use super::image::Undated;
use super::read::{Estimates, Query, ReadError, Reader, nodes};
use super::store::Writer;
use queuekeeper_queue::path::Path;

/// How many suspicions are dated at most; all others are dated by the znodes whose stats are known.
const MOST: usize = 1_000;

/// Dates what the last walk found by the znodes that show it. Gives the number of reads.
pub(super) async fn date(client: &Client, writer: &Writer) -> Result<u64, ReadError> {
    let undated = writer.undated(MOST);
    if undated.is_empty() {
        return Ok(0);
    }
    let mut reader = Reader::for_changes(client, writer.read_budget(), Estimates::default(), None);
    for path in undated.iter().flat_map(|undated: &Undated| &undated.nodes) {
        reader.push(Query::Node(path.clone()));
    }
    let mut created: HashMap<Path, i64> = HashMap::new();
    while let Some(answers) = reader.next().await? {
        let found = nodes(answers).into_iter();
        created.extend(found.filter_map(|(path, found)| found.node().map(|(_, stat)| stat.ctime).map(|at| (path, at))));
    }
    writer.date(&undated, |path| created.get(path).copied());
    Ok(reader.reads)
}
