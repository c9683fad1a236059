//! How many bit errors are open, for pages that must not wait for the catalogue.

use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use queuekeeper_catalogue::counters::Counter;
use queuekeeper_catalogue::{Catalogue, Error};
use tokio::time::{Instant, timeout};

use super::Mill;
use crate::views::overview::OpenBitErrors;

/// For how long an answer is given again.
const FRESH: Duration = Duration::from_secs(2);

/// How long the catalogue has for one.
const SOON: Duration = Duration::from_secs(1);

/// The last answer, and who asks for the next one.
#[derive(Default)]
pub(super) struct LastAnswer {
    known: Mutex<Option<(Instant, OpenBitErrors)>>,
    asking: tokio::sync::Mutex<()>,
}

impl LastAnswer {
    fn known(&self) -> Option<(Instant, OpenBitErrors)> {
        self.known.lock().clone()
    }
}

impl Mill {
    /// The open bit errors as of two seconds ago or later. Where the catalogue does not answer, one caller in two
    /// seconds waits for a second, and the others get the last answer.
    pub(crate) async fn open_bit_errors(&self) -> OpenBitErrors {
        let last = &self.0.open_errors;
        if let Some((at, known)) = last.known()
            && at.elapsed() < FRESH
        {
            return known;
        }
        let _asking = match (last.asking.try_lock(), last.known()) {
            (Ok(asking), _) => asking,
            (Err(_), Some((_, known))) => return known,
            (Err(_), None) => {
                let asking = last.asking.lock().await;
                if let Some((_, known)) = last.known() {
                    return known;
                }
                asking
            }
        };
        let answer = match timeout(SOON, open_bit_errors(self.catalogue())).await {
            Ok(Ok(open)) => open,
            Ok(Err(error)) => OpenBitErrors::Unknown(format!("the catalogue cannot be read: {error}")),
            Err(_) => OpenBitErrors::Unknown("the catalogue did not answer within a second".to_owned()),
        };
        *last.known.lock() = Some((Instant::now(), answer.clone()));
        answer
    }
}

/// The open bit errors of a catalogue.
///
/// # Errors
/// When it cannot be read.
pub(crate) async fn open_bit_errors(catalogue: &Catalogue) -> Result<OpenBitErrors, Error> {
    let (mut count, mut oldest) = (0, None::<Timestamp>);
    for (scope, open) in catalogue.counter(Counter::BitErrors).await?.into_iter().filter(|(_, open)| *open > 0) {
        count += u64::try_from(open).unwrap_or(0);
        let account = scope.split_once('/').map_or(&*scope, |(account, _store)| account);
        oldest = oldest.into_iter().chain(catalogue.oldest_bit_error(account).await?).min();
    }
    Ok(OpenBitErrors::Open(count, oldest))
}
