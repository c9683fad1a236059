use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use queuekeeper::config::{self, WebFile};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::harness::{Answer, Server, converse};
use queuekeeper_testkit::certs::{Authority, Certified};
use queuekeeper_testkit::wait::eventually;

/// A client that trusts an authority, with or without a certificate of its own.
struct Client<'a> {
    trusts: &'a Authority,
    is: Option<&'a Certified>,
    versions: &'a [&'static SupportedProtocolVersion],
}

impl Client<'_> {
    async fn connect(&self, port: u16) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.trusts.ca_file).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_protocol_versions(self.versions).with_root_certificates(roots);
        let config = match self.is {
            None => builder.with_no_client_auth(),
            Some(is) => {
                let chain = vec![CertificateDer::from_pem_file(&is.cert_file).unwrap()];
                let key = PrivateKeyDer::from_pem_file(&is.key_file).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// What comes of a request; an error where the two do not agree. In TLS 1.3 a client learns only by reading that
    /// its certificate was refused.
    async fn ask(&self, port: u16, path: &str) -> std::io::Result<Answer> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let mut stream = self.connect(port).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(Answer::read(&mut answer.as_slice()).await)
    }
}

const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12, &rustls::version::TLS13];

async fn start(path: &Path, text: &str) -> Server {
    std::fs::write(path, text).unwrap();
    Server::with(config::Web { file: Some(WebFile::read(path).unwrap()), ..config::Web::default() }).await
}

#[tokio::test]
async fn it_speaks_tls_from_the_lowest_version_that_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let server = authority.certify("server");
    let path = directory.path().join("web.yml");
    let only_12 = &[&rustls::version::TLS12][..];
    for (lines, versions, is_agreed) in [
        ("", BOTH, true),
        ("", only_12, true),
        ("  min_version: TLS13\n", BOTH, true),
        ("  min_version: TLS13\n", only_12, false),
        ("  max_version: TLS12\n", &[&rustls::version::TLS13], false),
    ] {
        // The files are named relative to the one that names them.
        let text = format!(
            "tls_server_config:\n  cert_file: server.pem\n  key_file: ./server-key.pem\n{lines}\
             http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=31536000\n"
        );
        let running = start(&path, &text).await;
        let client = Client { trusts: &authority, is: None, versions };
        let answer = client.ask(running.ports[0], "/").await;
        assert_eq!(answer.is_ok(), is_agreed, "{lines} {answer:?}");
        if let Ok(answer) = answer {
            answer.has(&["http/1.1 200 ok", "strict-transport-security: max-age=31536000"]);
        }
        // A request with http instead of https is answered with that.
        let plain = running.ask("GET / HTTP/1.1", &[]).await;
        plain.has(&["http/1.1 400 bad request"]);
        assert_eq!(plain.text(), "This server requires TLS. Use https.\n");
        running.stop().await;
    }

    // The same, with certificate and key in the file itself.
    let indented = |path| std::fs::read_to_string(path).unwrap().replace('\n', "\n    ");
    let (cert, key) = (indented(&server.cert_file), indented(&server.key_file));
    let running = start(&path, &format!("tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {key}\n")).await;
    let client = Client { trusts: &authority, is: None, versions: BOTH };
    assert_eq!(client.ask(running.ports[1], "/-/healthy").await.unwrap().code(), 200);
    running.stop().await;
}

#[tokio::test]
async fn with_client_certificates_no_client_is_let_in_without_one() {
    let directory = tempfile::tempdir().unwrap();
    let [authority, stranger] = ["ca", "stranger"].map(|name| Authority::new(directory.path(), name));
    let (_server, friend, foe) = (authority.certify("server"), authority.certify("friend"), stranger.certify("foe"));
    let path = directory.path().join("web.yml");
    for (kind, without) in [("RequireAndVerifyClientCert", false), ("VerifyClientCertIfGiven", true)] {
        let text = format!(
            "tls_server_config:\n  cert_file: server.pem\n  key_file: server-key.pem\n  client_ca_file: ca.pem\n  \
             client_auth_type: {kind}\n"
        );
        let running = start(&path, &text).await;
        for (is, is_let_in) in [(Some(&friend), true), (Some(&foe), false), (None, without)] {
            for versions in [BOTH, &[&rustls::version::TLS12]] {
                let client = Client { trusts: &authority, is, versions };
                for path in ["/metrics", "/-/healthy"] {
                    let answer = client.ask(running.ports[0], path).await;
                    let is_answered = answer.is_ok_and(|answer| answer.code() == 200);
                    assert_eq!(is_answered, is_let_in, "{kind} {path}");
                }
            }
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_a_wrong_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["old-ca", "new-ca"].map(|name| Authority::new(directory.path(), name));
    let [first, second] = [old.certify("first"), new.certify("second")];
    let (cert, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::copy(&first.cert_file, &cert).unwrap();
    std::fs::copy(&first.key_file, &key).unwrap();
    let path = directory.path().join("web.yml");
    let running = start(&path, "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n").await;
    let port = running.ports[0];
    let [by_old, by_new] = [&old, &new].map(|trusts| Client { trusts, is: None, versions: BOTH });
    let kept = by_old.connect(port).await.unwrap();
    by_new.ask(port, "/").await.unwrap_err();
    let limit = Duration::from_secs(20);
    let reported = async |client: &Client<'_>, expected: &str| {
        let metrics = client.ask(port, "/metrics").await.unwrap();
        metrics.text().contains(&format!("\nqueuekeeper_web_config_last_reload_successful {expected}\n"))
    };

    // Certificate and key are two files: between the two writes they do not fit.
    std::fs::copy(&second.cert_file, &cert).unwrap();
    eventually(limit, "the half is reported", async || reported(&by_old, "0").await).await;
    std::fs::copy(&second.key_file, &key).unwrap();
    eventually(limit, "the new one is used", async || by_new.ask(port, "/").await.is_ok()).await;
    assert!(reported(&by_new, "1").await);
    by_old.ask(port, "/").await.unwrap_err();
    // Who was connected stays so.
    assert_eq!(converse(kept, &["GET / HTTP/1.1", "Host: localhost"]).await.code(), 200);

    for wrong in ["", "http_server_config: {}\n"] {
        std::fs::write(&path, wrong).unwrap();
        eventually(limit, "it does not fall back to plain HTTP", async || reported(&by_new, "0").await).await;
        std::fs::write(&path, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n").unwrap();
        eventually(limit, "the right one is taken again", async || reported(&by_new, "1").await).await;
    }
    running.stop().await;
}
