//! Why jobs fail, as far as their messages show it.
//!
//! The messages are free text of the daemons and of the libraries that they use. Each class of causes has words, and
//! the first class of the table that has a word of the message is taken: what a word says of the trouble itself, such
//! as a time-out, comes before what says only which part of the work was done.

/// A class of causes, for figures: few, and always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// Content does not have the checksum or size that it should have.
    Checksum,
    /// A disk or quota is full.
    Space,
    /// Something did not answer in time.
    Timeout,
    /// There was no connection, or it was lost.
    Connection,
    /// A daemon threw an exception that says nothing about the deposit.
    Program,
    /// No identifier could be minted or bound.
    Minting,
    /// The object could not be recorded in the inventory.
    Inventory,
    /// The object could not be stored.
    Storage,
    /// Content could not be fetched from the depositor's host.
    Download,
    /// The manifest or the archive of the deposit is not valid.
    Manifest,
    /// The depositor could not be notified.
    Notify,
    /// An operator moved the job to Failed.
    Operator,
    /// No word of the message is known.
    Other,
}

impl FailureCause {
    /// Every class; those with words in the order in which they are looked for.
    pub const ALL: [Self; 13] = [
        Self::Checksum,
        Self::Space,
        Self::Timeout,
        Self::Connection,
        Self::Program,
        Self::Minting,
        Self::Inventory,
        Self::Storage,
        Self::Download,
        Self::Manifest,
        Self::Notify,
        Self::Operator,
        Self::Other,
    ];

    /// The label value, and the words of its messages, in lower case.
    fn spec(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Checksum => ("checksum", &["checksum", "digest", "fixity", "size mismatch", "sizes do not match"]),
            Self::Space => {
                ("space", &["no space left", "no space:", "disk full", "disk quota", "quota exceeded", "out of space"])
            }
            Self::Timeout => ("timeout", &["timed out", "timeout", "time-out", "deadline exceeded"]),
            Self::Connection => (
                "connection",
                &[
                    "connectexception",
                    "socketexception",
                    "unknownhost",
                    "connection refused",
                    "connection reset",
                    "connection closed",
                    "connection lost",
                    "connectionloss",
                    "broken pipe",
                    "no route to host",
                    "unreachable",
                    "handshake",
                ],
            ),
            Self::Program => (
                "program",
                &[
                    "nullpointer",
                    "classcast",
                    "illegalargument",
                    "illegalstate",
                    "indexoutofbounds",
                    "outofmemory",
                    "numberformat",
                ],
            ),
            Self::Minting => ("minting", &["mint", "ezid"]),
            Self::Inventory => ("inventory", &["inventory", "deadlock found", "sqlexception"]),
            Self::Storage => ("storage", &["storage", "addversion", "slowdown"]),
            Self::Download => ("download", &["download", "estimate", "fetch", "http 4", "signed url", "for http"]),
            Self::Manifest => ("manifest", &["manifest", "archive", "checkm", "zlib", "container"]),
            Self::Notify => ("notify", &["notify", "callback", "mail"]),
            Self::Operator => ("operator", &[]),
            Self::Other => ("other", &[]),
        }
    }

    /// The label value.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.spec().0
    }

    /// The class of a message, or of what [`pattern`](super::pattern) leaves of it.
    pub(in crate::mirror) fn of(message: &str) -> Self {
        let message = message.to_lowercase();
        let has = |cause: &Self| cause.spec().1.iter().any(|word| message.contains(word));
        Self::ALL.into_iter().find(has).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::FailureCause::*;
    use super::*;
    use crate::mirror::failures::pattern;

    #[test]
    fn a_message_has_one_cause_whatever_varies_in_it() {
        for (message, expected) in [
            ("[error] DownloadHandler: digest mismatch for a_1.zip: expected sha-256 3f7a.., found 90c1..", Checksum),
            ("java.io.IOException: No space left on device", Space),
            ("no space: 1,234.5 GiB needed, 17 GiB free", Space),
            ("[error] DownloadHandler: java.net.SocketTimeoutException: Read timed out, a_1.zip", Timeout),
            ("[error] StorageHandler: storage node 7001: java.net.ConnectException: Connection refused", Connection),
            ("[error] EstimateHandler: java.lang.NullPointerException: Cannot invoke \"String.length()\"", Program),
            ("[error] MintHandler: cannot mint an identifier: EZID answered 503 Service Unavailable", Minting),
            ("[error] InventoryHandler: ark:/99999/fk4: manifest is not readable: HTTP 500 from storage", Inventory),
            ("[error] StorageHandler: storage node 9501: addVersion of ark:/1/2 failed: 500 SlowDown", Storage),
            ("[error] EstimateHandler: size of a_1.zip cannot be learned: HTTP 404 from the manifest's host", Download),
            ("404 for https://deposit.example.edu/rbn/000123.zip?x=1", Download),
            ("[error] ManifestHandler: a_1.zip: not a valid archive: unexpected end of ZLIB input", Manifest),
            ("[error] NotifyHandler: callback to the depositor failed: 502 Bad Gateway", Notify),
            ("Datei „größe“ fehlt", Other),
            ("", Other),
        ] {
            assert_eq!(FailureCause::of(message), expected, "{message}");
            assert_eq!(FailureCause::of(&pattern(message)), expected, "the pattern of {message}");
        }
    }

    #[test]
    fn every_word_can_be_found() {
        for cause in FailureCause::ALL {
            for word in cause.spec().1 {
                assert_eq!(FailureCause::of(&word.to_uppercase()), cause, "{word} is found as another cause");
            }
        }
    }
}
