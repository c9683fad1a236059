//! What an operator sets for mail.

use std::path::PathBuf;
use std::time::Duration;

/// How mail leaves.
#[derive(Clone, Debug)]
pub struct MailSettings {
    /// The address that mails are from, checked by [`super::address::check`].
    pub from: String,
    /// The address of the person whom answers go to, checked in the same way; answers go to [`Self::from`] without it.
    pub reply_to: Option<String>,
    /// The addresses of admins who get a copy of each report, checked in the same way.
    pub copies: Vec<String>,
    /// The way out of this process.
    pub route: Route,
    /// For how long a process has a mail to itself while it delivers it. An attempt takes at most half of that.
    pub lease: Duration,
    /// The pause after the first failed attempt; each is twice the one before.
    pub retry_first: Duration,
    /// The longest of these pauses.
    pub retry_most: Duration,
    /// For how long a recipient is tried whom the server refuses for the time being (RFC 5321, 4.5.4.1: 4 to 5 days). A
    /// server that is away is tried for ever.
    pub refused_within: Duration,
    /// How long the oldest mail waits before the znode of the process says so.
    pub noted_after: Duration,
}

/// The way of mails out of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// They wait for a process that has one.
    #[default]
    None,
    /// Files in a directory, which is made where it is missing.
    Directory(PathBuf),
    /// A mail server.
    Smtp(SmtpServer),
}

/// A mail server, and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpServer {
    /// Its name, which its certificate has, or its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How what is said is kept secret.
    pub tls: MailTls,
    /// A YAML file with `username` and `password`, read for each connection.
    pub credentials_file: Option<PathBuf>,
    /// A PEM file with the authorities that may vouch for it; those of the system where absent.
    pub ca_file: Option<PathBuf>,
}

/// How what is said to a mail server is kept secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// From `STARTTLS` on, which the server must offer.
    StartTls,
    /// From the first byte on.
    Implicit,
    /// Not at all.
    None,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self {
            from: "queuekeeper@localhost".to_owned(),
            reply_to: None,
            copies: Vec::new(),
            route: Route::None,
            lease: Duration::from_mins(10),
            retry_first: Duration::from_secs(30),
            retry_most: Duration::from_hours(1),
            refused_within: Duration::from_hours(5 * 24),
            noted_after: Duration::from_mins(5),
        }
    }
}

impl MailSettings {
    /// The pause after so many attempts.
    #[must_use]
    pub fn pause(&self, attempts: u32) -> Duration {
        self.retry_first.saturating_mul(1u32 << attempts.saturating_sub(1).min(16)).min(self.retry_most)
    }
}
