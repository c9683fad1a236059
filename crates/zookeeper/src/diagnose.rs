//! Finds out why a server grants no session.
//!
//! The client library reports every failure to get one as "no hosts", "timeout" or "connection loss". So each server is
//! checked directly: does its name resolve, does it listen, does it speak TLS, do both sides accept the certificates,
//! does it serve. The check sends `srvr`, the one four-letter command that ZooKeeper answers by default; where it is
//! disabled, the answer says so. No session is created.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::Host;
use super::tls::Loaded;

/// How long one step of the diagnosis may take: a name, a connection, a handshake, an answer.
const STEP: Duration = Duration::from_secs(2);

/// The longest answer to `srvr` that is read; a real one has some 200 bytes.
const MOST_ANSWER: u64 = 4096;

/// The longest reason that is passed on from a handshake, in characters.
const MOST_REASON: usize = 160;

/// How a server behaves that grants no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// Its name has no address.
    NameNotResolved(String),
    /// Nothing listens on its port.
    Refused,
    /// No connection came about in time.
    TimedOut,
    /// The connection failed in another way, as by a missing route.
    Unreachable(String),
    /// It listens, but does not answer as a ZooKeeper server.
    NoAnswer,
    /// It speaks TLS and we do not.
    SpeaksTls,
    /// We speak TLS and it does not.
    SpeaksPlaintext,
    /// We do not accept its certificate.
    CertificateNotTrusted(String),
    /// It does not accept our certificate, or wants one.
    CertificateRefused(String),
    /// It runs, but serves no client: it is starting, or its ensemble has no quorum.
    NotServing,
    /// It answers as it should, now.
    Serves,
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameNotResolved(why) => write!(f, "its name cannot be resolved ({why})"),
            Self::Refused => f.write_str("connection refused; is the server running, and is the port correct?"),
            Self::TimedOut => write!(f, "no connection within {} s; does a firewall block it?", STEP.as_secs()),
            Self::Unreachable(why) => write!(f, "it cannot be reached ({why})"),
            Self::NoAnswer => f.write_str(
                "it accepts connections, but does not answer as ZooKeeper; does it hang, or is the port wrong?",
            ),
            Self::SpeaksTls => {
                f.write_str("it expects TLS, which is not enabled here; enable TLS, or use its plaintext port")
            }
            Self::SpeaksPlaintext => {
                f.write_str("it does not speak TLS, which is enabled here; disable TLS, or use its secure port")
            }
            Self::CertificateNotTrusted(why) => {
                write!(f, "its certificate is not accepted ({why}); check the CA file and the host's name")
            }
            Self::CertificateRefused(why) => {
                write!(
                    f,
                    "it rejected the TLS handshake ({why}); check the client certificate and the server's trust store"
                )
            }
            Self::NotServing => {
                f.write_str("it runs, but serves no client; is it still starting, or does its ensemble have no quorum?")
            }
            Self::Serves => f.write_str("it answers now"),
        }
    }
}

/// The symptom of each server, in the order of the connect string; `Display` writes one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(Vec<(Host, Symptom)>);

impl Failures {
    /// The servers and their symptoms.
    pub fn iter(&self) -> impl Iterator<Item = (&Host, &Symptom)> {
        self.0.iter().map(|(host, symptom)| (host, symptom))
    }

    /// Whether nothing is wrong with any of them.
    #[must_use]
    pub fn all_serve(&self) -> bool {
        self.0.iter().all(|(_, symptom)| *symptom == Symptom::Serves)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Servers of one symptom are named together: an ensemble that is down is one fact, not five.
        let mut said: Vec<&Symptom> = Vec::new();
        for (_, symptom) in &self.0 {
            if said.contains(&symptom) {
                continue;
            }
            let hosts: Vec<String> =
                self.0.iter().filter(|(_, s)| s == symptom).map(|(host, _)| host.to_string()).collect();
            let stop = if said.is_empty() { "" } else { "; " };
            write!(f, "{stop}{}: {symptom}", hosts.join(", "))?;
            said.push(symptom);
        }
        Ok(())
    }
}

/// Diagnoses all servers at once; takes some seconds at most.
pub(super) async fn diagnose(hosts: &[Host], tls: Option<&Loaded>) -> Failures {
    let diagnoses = hosts.iter().map(|host| async move { (host.clone(), diagnose_host(host, tls).await) });
    Failures(futures::future::join_all(diagnoses).await)
}

async fn diagnose_host(host: &Host, tls: Option<&Loaded>) -> Symptom {
    let stream = match open(host).await {
        Ok(stream) => stream,
        Err(symptom) => return symptom,
    };
    match tls {
        None => match query_srvr(stream).await {
            Ok(answer) => answer,
            Err(_no_answer) if speaks_tls(host).await => Symptom::SpeaksTls,
            Err(_no_answer) => Symptom::NoAnswer,
        },
        Some(tls) => match handshake(host, stream, Arc::clone(&tls.config)).await {
            // With TLS 1.3 a server checks our certificate only after our side of the handshake is done.
            Ok(stream) => query_srvr(stream).await.unwrap_or_else(|error| refusal(&error).unwrap_or(Symptom::NoAnswer)),
            Err(error) => match refusal(&error) {
                Some(symptom) => symptom,
                None if speaks_plaintext(host).await => Symptom::SpeaksPlaintext,
                None => Symptom::NoAnswer,
            },
        },
    }
}

async fn open(host: &Host) -> Result<TcpStream, Symptom> {
    let address = (host.name(), host.port());
    let found = timeout(STEP, tokio::net::lookup_host(address)).await;
    let addresses: Vec<_> = match found {
        Ok(Ok(addresses)) => addresses.collect(),
        Ok(Err(error)) => return Err(Symptom::NameNotResolved(error.to_string())),
        Err(_elapsed) => return Err(Symptom::NameNotResolved("the name server does not answer".to_owned())),
    };
    match timeout(STEP, TcpStream::connect(addresses.as_slice())).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(match error.kind() {
            ErrorKind::ConnectionRefused => Symptom::Refused,
            ErrorKind::TimedOut => Symptom::TimedOut,
            _ => Symptom::Unreachable(error.to_string()),
        }),
        Err(_elapsed) => Err(Symptom::TimedOut),
    }
}

/// The answer of a server to a four-letter command, at most so many bytes of it; if there is none, why, as far as the
/// connection shows it.
pub(super) async fn command(
    host: &Host,
    tls: Option<&Loaded>,
    command: &[u8; 4],
    most: u64,
) -> Result<String, Symptom> {
    let stream = open(host).await?;
    let failed = |error: io::Error| refusal(&error).unwrap_or(Symptom::NoAnswer);
    match tls {
        None => query(stream, command, most).await.map_err(failed),
        Some(tls) => {
            let stream = handshake(host, stream, Arc::clone(&tls.config)).await.map_err(failed)?;
            query(stream, command, most).await.map_err(failed)
        }
    }
}

/// Sends a four-letter command and reads the answer; an error when there is none.
async fn query(mut stream: impl AsyncRead + AsyncWrite + Unpin, command: &[u8; 4], most: u64) -> io::Result<String> {
    let mut answer = Vec::new();
    let query = async {
        stream.write_all(command).await?;
        stream.flush().await?;
        let read = (&mut stream).take(most).read_to_end(&mut answer).await;
        // What came before a connection was torn down is still an answer.
        if answer.is_empty() { read.map(drop) } else { Ok(()) }
    };
    timeout(STEP, query).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Sends `srvr` and evaluates the answer; an error when there is none.
async fn query_srvr(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<Symptom> {
    let answer = query(stream, b"srvr", MOST_ANSWER).await?;
    if answer.contains("not currently serving requests") {
        Ok(Symptom::NotServing)
    } else if answer.starts_with("Zookeeper version") || answer.contains("not in the whitelist") {
        Ok(Symptom::Serves)
    } else {
        Err(ErrorKind::InvalidData.into())
    }
}

async fn handshake(
    host: &Host,
    stream: TcpStream,
    config: Arc<ClientConfig>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.name().to_owned()).map_err(io::Error::other)?;
    timeout(STEP, TlsConnector::from(config).connect(name, stream)).await?
}

/// What a failed handshake shows about certificates; `None` when it failed before they came into play.
fn refusal(error: &io::Error) -> Option<Symptom> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    match error {
        rustls::Error::InvalidCertificate(_) => Some(Symptom::CertificateNotTrusted(shorten(&error.to_string()))),
        rustls::Error::AlertReceived(_) => Some(Symptom::CertificateRefused(shorten(&error.to_string()))),
        _ => None,
    }
}

/// Keeps a reason within a log line: it may list every name of a certificate, and a server's names are its own choice.
fn shorten(reason: &str) -> String {
    let mut short: String = reason.chars().filter(|c| !c.is_control()).take(MOST_REASON).collect();
    if reason.chars().nth(MOST_REASON).is_some() {
        short.push_str("...");
    }
    short
}

/// Whether a server that did not answer in plain text does so by TLS: it then shows a certificate or sends an alert.
async fn speaks_tls(host: &Host) -> bool {
    let no_trust = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    match open(host).await {
        Ok(stream) => match handshake(host, stream, Arc::new(no_trust)).await {
            Ok(_) => true,
            Err(error) => refusal(&error).is_some(),
        },
        Err(_symptom) => false,
    }
}

async fn speaks_plaintext(host: &Host) -> bool {
    match open(host).await {
        Ok(stream) => query_srvr(stream).await.is_ok(),
        Err(_symptom) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sentences as ZooKeeper 3.8.0 sends them, the first one as a member of an ensemble without a quorum.
    #[tokio::test]
    async fn answers_are_distinguished() {
        for (answer, symptom) in [
            ("This ZooKeeper instance is not currently serving requests\n", Some(Symptom::NotServing)),
            ("srvr is not executed because it is not in the whitelist.\n", Some(Symptom::Serves)),
            ("Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\n", Some(Symptom::Serves)),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", None),
            ("", None),
        ] {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            theirs.write_all(answer.as_bytes()).await.unwrap();
            theirs.shutdown().await.unwrap();
            assert_eq!(query_srvr(ours).await.ok(), symptom, "{answer}");
            let mut question = String::new();
            theirs.read_to_string(&mut question).await.unwrap();
            assert_eq!(question, "srvr");
        }
    }

    #[test]
    fn a_reason_stays_short_and_in_one_line() {
        assert_eq!(shorten("bad\ncertificate"), "badcertificate");
        assert_eq!(shorten(&"\u{e9}".repeat(500)), format!("{}...", "\u{e9}".repeat(MOST_REASON)));
    }
}
