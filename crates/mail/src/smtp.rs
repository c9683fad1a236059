//! Mails by SMTP.
//!
//! One transaction has all recipients that are still to be tried. One whom the server refuses keeps it from no other.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use queuekeeper_zookeeper::files;
use serde::Deserialize;

use crate::settings::{MailTls, SmtpServer};
use crate::{Settled, address, line};

/// The largest file of credentials or authorities, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(30);

/// How much of a mail is sent at once, in bytes.
const PIECE: usize = 64 * 1024;

/// The longest sentence of a server's that is kept, in characters.
const MOST_SENTENCE: usize = 300;

/// Why a mail was not delivered to all of its recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmtpFailure {
    /// One sentence.
    pub(crate) why: String,
    /// Whether the server was not reached, or refuses every login: it has refused no mail.
    pub(crate) is_away: bool,
}

/// The user and password of a file, such as `{username: merritt, password: secret}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    username: String,
    password: String,
}

impl SmtpServer {
    /// Reads the files that a connection needs.
    ///
    /// # Errors
    /// One line, with the name of the file, and none of what is in it.
    pub fn check(&self) -> Result<(), String> {
        self.credentials().map(drop)?;
        self.tls_parameters().map(drop)
    }

    fn credentials(&self) -> Result<Option<Credentials>, String> {
        let Some(path) = &self.credentials_file else { return Ok(None) };
        let text = read(path)?;
        let options = serde_saphyr::options! { with_snippet: false };
        // What the parser says of it may have a part of it.
        let wrong = |_| format!("{}: expected the keys username and password, each with a text", path.display());
        let text = std::str::from_utf8(&text).map_err(|_| format!("{}: it is not UTF-8", path.display()))?;
        let Login { username, password } = serde_saphyr::from_str_with_options(text, options).map_err(wrong)?;
        Ok(Some(Credentials::new(username, password)))
    }

    fn tls_parameters(&self) -> Result<Option<TlsParameters>, String> {
        if self.tls == MailTls::None {
            return Ok(None);
        }
        let mut builder = TlsParameters::builder(self.host.clone());
        if let Some(path) = &self.ca_file {
            let text = read(path)?;
            let is_pem = memchr::memmem::find(&text, b"-----BEGIN CERTIFICATE-----").is_some();
            let authorities = if is_pem { Certificate::from_pem(&text).ok() } else { None };
            let authorities =
                authorities.ok_or_else(|| format!("{}: it contains no certificate in PEM format", path.display()))?;
            builder = builder.certificate_store(CertificateStore::None).add_root_certificate(authorities);
        }
        builder.build().map(Some).map_err(|error| format!("TLS: {}", sentence(&error)))
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, String> {
        let (credentials, tls) = (self.credentials()?, self.tls_parameters()?);
        let at = |error: SmtpError| format!("{}:{}: {}", self.host, self.port, sentence(&error));
        let name = client_id();
        let implicit = tls.clone().filter(|_| self.tls == MailTls::Implicit);
        let server = (self.host.as_str(), self.port);
        let connecting = AsyncSmtpConnection::connect_tokio1(server, Some(CONNECTING), &name, implicit, None);
        let mut connection = connecting.await.map_err(at)?;
        if let Some(tls) = tls.filter(|_| self.tls == MailTls::StartTls) {
            if !connection.can_starttls() {
                return Err(format!("{}:{}: it does not offer STARTTLS", self.host, self.port));
            }
            connection.starttls(tls, &name).await.map_err(at)?;
        }
        if let Some(credentials) = credentials {
            connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await.map_err(at)?;
        }
        Ok(connection)
    }

    /// Sends a mail to all recipients that are not settled, and settles those that the server takes or refuses for
    /// good.
    ///
    /// # Errors
    /// Where some are left to be tried again.
    pub(crate) async fn deliver(
        &self,
        from: &str,
        recipients: &[&str],
        content: &str,
        settled: &mut Settled,
    ) -> Result<(), SmtpFailure> {
        let open: Vec<&str> = recipients.iter().copied().filter(|to| !settled.contains_key(*to)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let mut connection = self.connect().await.map_err(|why| SmtpFailure { why, is_away: true })?;
        let outcome = transact(&mut connection, from, &open, content, settled).await;
        if outcome.is_ok() {
            // It has taken what it has taken.
            let _said = connection.quit().await;
        } else {
            connection.abort().await;
        }
        outcome
    }
}

async fn transact(
    connection: &mut AsyncSmtpConnection,
    from: &str,
    open: &[&str],
    content: &str,
    settled: &mut Settled,
) -> Result<(), SmtpFailure> {
    let failed = |error: &SmtpError| SmtpFailure { why: sentence(error), is_away: false };
    let from: Address = address::check(from).map_err(|error| SmtpFailure { why: error.to_string(), is_away: false })?;
    connection.command(Mail::new(Some(from), Vec::new())).await.map_err(|error| failed(&error))?;
    let (mut taken, mut delayed) = (Vec::new(), Vec::new());
    for to in open {
        let recipient = match address::check(to) {
            Ok(recipient) => recipient,
            Err(error) => {
                settled.insert((*to).to_owned(), Some(error.to_string()));
                continue;
            }
        };
        match connection.command(Rcpt::new(recipient, Vec::new())).await {
            Ok(_) => taken.push(*to),
            Err(error) if error.is_permanent() => drop(settled.insert((*to).to_owned(), Some(sentence(&error)))),
            Err(error) if error.is_transient() => delayed.push(format!("{to}: {}", sentence(&error))),
            Err(error) => return Err(failed(&error)),
        }
    }
    if !taken.is_empty() {
        connection.command(Data).await.map_err(|error| failed(&error))?;
        let outcome = match connection.message_iter(content.as_bytes().chunks(PIECE)).await {
            Ok(_) => None,
            Err(error) if error.is_permanent() => Some(sentence(&error)),
            Err(error) => return Err(failed(&error)),
        };
        settled.extend(taken.into_iter().map(|to| (to.to_owned(), outcome.clone())));
    }
    if delayed.is_empty() { Ok(()) } else { Err(SmtpFailure { why: delayed.join("; "), is_away: false }) }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, MOST_BYTES).map_err(|error| format!("{}: {error}", path.display()))
}

/// What went wrong, in one line.
fn sentence(error: &SmtpError) -> String {
    let source = error.source().map(ToString::to_string).filter(|source| !source.is_empty());
    let text = match (error.status(), source) {
        (Some(code), source) => format!("the server answers {code} {}", source.unwrap_or_default()),
        (None, Some(source)) => source,
        (None, None) => error.to_string(),
    };
    line(&text, MOST_SENTENCE)
}

/// What we call ourselves: the host's name where it is one that a server takes.
fn client_id() -> ClientId {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    if is_name(&name) && !name.is_empty() { ClientId::Domain(name) } else { ClientId::default() }
}
