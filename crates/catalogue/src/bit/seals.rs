//! The chain of the reports of an account: each report has a seal, a document that names the hash of the seal before
//! it.
//!
//! A seal is appended in the transaction that records its report. It is stored beside the report after that, once.

use queuekeeper_store::{Algorithm, Digest, Hashers, SpaceName, StoreName};

use crate::catalogue::{Catalogue, page};
use crate::database::Session;
use crate::database::value::{DatabaseRow, values};
use crate::error::Error;

/// The seal of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Its number in the chain of the account, from 1.
    pub number: u64,
    /// Where its report is: `STORE/SPACE/KEY`, without the ending.
    pub place: String,
    /// The document.
    pub text: String,
    /// Whether it is stored beside the report.
    pub is_stored: bool,
}

impl Seal {
    /// The SHA-256 of the document, in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hashers = Hashers::new([Algorithm::Sha256]);
        hashers.update(self.text.as_bytes());
        hashers.finish().get(Algorithm::Sha256).map(Digest::hex).unwrap_or_default()
    }
}

/// The seal with which the chain of an account ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealHead {
    /// Its number.
    pub number: u64,
    /// Where its report is: `STORE/SPACE/KEY`, without the ending.
    pub place: String,
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
}

pub(crate) const SEAL: &str = "SELECT number, place, seal, is_stored FROM bit_seals WHERE account = $1 AND number = $2";

/// Those of a space that are not stored, the lowest number first.
pub(crate) const SEALS_LEFT: &str = "SELECT number, place, seal, is_stored FROM bit_seals
    WHERE account = $1 AND NOT is_stored AND EXISTS (
        SELECT 1 FROM bit_runs WHERE bit_runs.id = bit_seals.run AND bit_runs.store = $2 AND bit_runs.space = $3)
    ORDER BY number LIMIT $4";

impl Catalogue {
    /// A seal of an account; `None` where its chain has no such number.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn seal(&self, account: &str, number: u64) -> Result<Option<Seal>, Error> {
        Ok(self.list(SEAL, values![account, number], read).await?.pop())
    }

    /// The end of the chain of an account; `None` before its first report.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn seal_head(&self, account: &str) -> Result<Option<SealHead>, Error> {
        let sql = "SELECT number, place, hash FROM bit_seal_heads WHERE account = $1";
        Ok(self.list(sql, values![account], head).await?.pop())
    }

    /// The seals of reports on a space that are not stored beside them, the lowest number first; at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn seals_left(&self, account: &str, store: &StoreName, space: &SpaceName) -> Result<Vec<Seal>, Error> {
        self.list(SEALS_LEFT, values![account, store, space, page(u32::MAX)], read).await
    }

    /// Records that a seal is stored beside its report.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn seal_is_stored(&self, account: &str, number: u64) -> Result<(), Error> {
        let sql = "UPDATE bit_seals SET is_stored = TRUE WHERE account = $1 AND number = $2";
        let mut session = self.database.begin().await?;
        let outcome = session.run(sql, values![account, number]).await;
        session.end(outcome).await.map(|_rows| ())
    }
}

/// Appends the seal of the report on a run to the chain of its account. `make` makes the document, of its number and
/// the seal before it.
pub(super) async fn append(
    session: &mut Session,
    account: &str,
    (run, place): (u64, &str),
    make: impl FnOnce(u64, Option<&SealHead>) -> String + Send,
) -> Result<(), Error> {
    // Another process that appends waits for this row.
    let sql = "INSERT INTO bit_seal_heads (account, number, place, hash) VALUES ($1, 0, '', '')
        ON CONFLICT (account) DO UPDATE SET account = excluded.account RETURNING number, place, hash";
    let row = session.row(sql, values![account]).await?;
    let before = row.map(|row| session.decode(head(&row))).transpose()?.filter(|head| head.number > 0);
    let number = before.as_ref().map_or(0, |head| head.number) + 1;
    let seal = Seal { number, place: place.to_owned(), text: make(number, before.as_ref()), is_stored: false };
    let sql = "INSERT INTO bit_seals (account, number, run, place, seal, is_stored) VALUES ($1, $2, $3, $4, $5, FALSE)";
    session.run(sql, values![account, number, run, place, seal.text.as_str()]).await?;
    let sql = "UPDATE bit_seal_heads SET number = $2, place = $3, hash = $4 WHERE account = $1";
    session.run(sql, values![account, number, place, seal.hash().as_str()]).await.map(|_rows| ())
}

fn head(row: &DatabaseRow) -> Result<SealHead, sqlx::Error> {
    Ok(SealHead { number: row.count(0)?, place: row.get(1)?, hash: row.get(2)? })
}

fn read(row: &DatabaseRow) -> Result<Seal, sqlx::Error> {
    Ok(Seal { number: row.count(0)?, place: row.get(1)?, text: row.get(2)?, is_stored: row.get(3)? })
}
