//! Uploads on their way.

use serde::{Deserialize, Serialize};

use super::request::DepositRequest;

/// What is kept beside an upload until the deposit is made.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Note {
    /// Who began it.
    pub(super) depositor: String,
    /// The key that the depositor marks repetitions with.
    pub(super) key: Option<String>,
    /// What was requested.
    pub(super) request: DepositRequest,
}

/// An upload that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploading {
    /// The id of the deposit.
    pub id: String,
    /// Who began it.
    pub depositor: String,
    /// How many bytes have come.
    pub offset: u64,
    /// How many there will be, if that is known.
    pub size: Option<u64>,
}
