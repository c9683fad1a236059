//! Comparisons of listings with the content index: said to people as they go on, and kept as a table in the account's
//! space for reports.
//!
//! The table is written while the listing is read, and what it came to is kept once both have ended: of a listing that
//! fails midway, nothing is.

use std::io;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use queuekeeper_catalogue::comparisons::NewComparison;
use queuekeeper_store::store::Item;
use queuekeeper_store::{Key, SpaceName};
use serde_json::json;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::checker::{Checker, said};
use super::compare::{Compared, Difference, SpaceComparison};
use super::seals::SealedFile;
use super::seals::write;
use super::verify::Scope;
use crate::worker::Lease;

/// How many pages of differences wait to be written.
const PAGES: usize = 2;

/// What is said while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareSaid<'a> {
    /// So far, of all spaces that were compared before and this one.
    Progress(&'a Compared),
    /// Something differs.
    Differs(&'a Difference),
    /// The comparison of a space is kept: where its table lies, as `STORE/SPACE/KEY`.
    Kept(&'a SpaceName, String),
}

type Say<'a> = dyn FnMut(CompareSaid<'_>) + Send + 'a;

impl Checker {
    /// Compares what a store lists of a scope with the content index, and keeps that where it is wanted; nothing of a
    /// space that there is not.
    ///
    /// # Errors
    /// With one sentence, where there is no such account or store, a store cannot be listed or written, or the
    /// catalogue read or written.
    pub async fn compare(&self, scope: &Scope, keeps: bool, say: &mut Say<'_>) -> Result<Compared, String> {
        let (spaces, mut all) = (self.compared_spaces(scope).await?, Compared::default());
        if let (true, Some(space)) = (keeps, &scope.space)
            && !self.spaces(self.account_of(scope)?, &scope.store).await?.contains(space)
        {
            return Ok(all);
        }
        for space in spaces {
            let comparison = self.comparison(scope, space.clone())?;
            let compared = if keeps {
                self.keep(scope, &space, comparison, &all, say).await?
            } else {
                to_end(comparison, &all, None, say).await.map_err(Option::unwrap_or_default)?
            };
            all.add(&compared);
        }
        Ok(all)
    }

    /// Compares a space, and keeps its table and what it came to.
    async fn keep(
        &self,
        scope: &Scope,
        space: &SpaceName,
        comparison: SpaceComparison<'_>,
        before: &Compared,
        say: &mut Say<'_>,
    ) -> Result<Compared, String> {
        let account = self.account_of(scope)?;
        let (place, admin) = account.report_place()?;
        let (store, lease) = (self.stores.get(&account.name, place, &Lease::unlimited())?, Lease::unlimited());
        store.create_space(&admin).await.map_err(|error| error.to_string())?;
        let started = (self.clock)();
        // Another one may be kept in the same second.
        let (at, id) = (started.strftime("%Y-%m-%dT%H-%M-%SZ"), Uuid::now_v7());
        let name = format!("comparisons/{}/{space}/{at}-{id}", scope.store);
        let item = |ending: &str| {
            let key = format!("{name}.{ending}").parse::<Key>().map_err(|error| error.to_string())?;
            Ok::<_, String>(Item::new(admin.clone(), key))
        };
        let (to, from) = mpsc::channel(PAGES);
        let lines = stream::unfold(from, async |mut from| from.recv().await.map(|lines| (lines, from)));
        let header = stream::iter([Ok(Bytes::from(Difference::tsv_header()))]);
        let (table, document) = (item("tsv")?, item("json")?);
        let written = write(store.as_ref(), &table, header.chain(lines).boxed(), "text/tab-separated-values", &lease);
        let lines = Lines { scope, to };
        let (written, compared) = futures::join!(written, to_end(comparison, before, Some(lines), say));
        let (compared, SealedFile { bytes, sha256 }) = match (compared, written) {
            (Ok(compared), Ok(file)) => (compared, file),
            // What was not listed to its end ends its table, too.
            (Err(Some(why)), _) | (_, Err(why)) => return Err(why),
            (Err(None), Ok(_)) => return Err(format!("the table {} ended too early", table.key)),
        };
        let ended = (self.clock)();
        let text = json!({
            "account": account.name,
            "store": scope.store.as_str(),
            "space": space.as_str(),
            "started": started,
            "ended": ended,
            "compared": compared,
            "table": {"key": table.key.to_string(), "bytes": bytes, "sha256": sha256},
        });
        let text = stream::iter([Ok(Bytes::from(format!("{text}\n")))]).boxed();
        write(store.as_ref(), &document, text, "application/json", &lease).await?;
        let at = format!("{place}/{admin}/{name}.tsv");
        let result = serde_json::to_string(&compared).map_err(|error| error.to_string())?;
        let (account, differing) = (&*account.name, compared.differing());
        let new =
            NewComparison { account, store: &scope.store, space, started, differing, result: &result, place: &at };
        self.catalogue.keep_comparison(&new).await.map_err(said)?;
        say(CompareSaid::Kept(space, at));
        Ok(compared)
    }
}

/// Where the lines of a table go.
struct Lines<'a> {
    scope: &'a Scope,
    to: mpsc::Sender<io::Result<Bytes>>,
}

impl Lines<'_> {
    async fn send(&self, lines: io::Result<Bytes>) -> Result<(), Option<String>> {
        self.to.send(lines).await.map_err(|_closed| None)
    }
}

/// Goes through a space to its end. The error is one sentence, and none where the table is not written any more.
async fn to_end(
    mut comparison: SpaceComparison<'_>,
    before: &Compared,
    lines: Option<Lines<'_>>,
    say: &mut Say<'_>,
) -> Result<Compared, Option<String>> {
    loop {
        let page = match (comparison.page().await, &lines) {
            (Ok(page), _) => page,
            (Err(why), Some(lines)) => {
                // The table is not to look as if it had ended here.
                lines.send(Err(io::Error::other(why.clone()))).await?;
                return Err(Some(why));
            }
            (Err(why), None) => return Err(Some(why)),
        };
        let Some(page) = page else { return Ok(comparison.compared) };
        for difference in &page {
            say(CompareSaid::Differs(difference));
        }
        if let Some(lines) = lines.as_ref().filter(|_| !page.is_empty()) {
            let Scope { account, store, .. } = lines.scope;
            let text = page.iter().map(|difference| difference.tsv(account, store)).collect::<String>();
            lines.send(Ok(Bytes::from(text))).await?;
        }
        let mut so_far = before.clone();
        so_far.add(&comparison.compared);
        say(CompareSaid::Progress(&so_far));
    }
}
