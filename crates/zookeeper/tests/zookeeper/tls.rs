//! TLS: certificates that fit, and each way in which they do not.

use std::time::Duration;

use queuekeeper_zookeeper::diagnose::Symptom;
use queuekeeper_zookeeper::server::{ClientAuth, Options, ServerTls};
use queuekeeper_zookeeper::tls::Identity;
use queuekeeper_zookeeper::{Config, ConnectError, Connection, PrivateServer, Sessions, Tls};
use tokio::time::timeout;

use super::connect::{config, create};
use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::wait::eventually_some;

const LIMIT: Duration = Duration::from_secs(30);

fn with_tls(connect_string: &str, ca: &Authority, identity: Option<Identity>) -> Config {
    Config { tls: Some(Tls { ca_file: Some(ca.ca_file.clone()), identity }), ..config(connect_string) }
}

async fn symptom(config: Config) -> Symptom {
    eventually_some(LIMIT, "a handshake is as fast as a diagnosis expects", async || {
        let error = config.connect().await.expect_err("the two do not go together");
        assert!(error.is_retryable(), "the other side may be repaired: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        let symptoms: Vec<_> =
            error.failures().expect("a reason by host").iter().map(|(_, symptom)| symptom.clone()).collect();
        let [symptom] = symptoms.as_slice() else { panic!("{symptoms:?}") };
        (!matches!(symptom, Symptom::NoAnswer | Symptom::TimedOut)).then(|| symptom.clone())
    })
    .await
}

#[tokio::test]
async fn tls_connects_with_what_fits_and_says_what_does_not() {
    let files = tempfile::tempdir().unwrap();
    let ours = Authority::new(files.path(), "ours");
    let strange = Authority::new(files.path(), "strange");
    let (server_cert, client_cert) = (ours.certify("server"), ours.certify("client"));
    let tls = ServerTls {
        key_store: server_cert.key_store,
        trust_store: ours.ca_file.clone(),
        client_auth: ClientAuth::Need,
    };
    let server = PrivateServer::start(Options { tls: Some(tls), ..Options::default() }).await.unwrap();
    let (plain, secure) = (server.connect_string(), server.secure_connect_string().unwrap());

    let client = with_tls(&secure, &ours, Some(client_cert.identity())).connect().await.unwrap();
    create(&client, "/by-tls", b"x").await;
    let seen = config(&plain).connect().await.unwrap().get_data("/by-tls").await.unwrap();
    assert_eq!(seen.0, b"x");

    let untrusted = symptom(with_tls(&secure, &strange, Some(client_cert.identity()))).await;
    assert!(matches!(untrusted, Symptom::CertificateNotTrusted(_)), "{untrusted}");
    let anonymous = symptom(with_tls(&secure, &ours, None)).await;
    assert!(matches!(anonymous, Symptom::CertificateRefused(_)), "{anonymous}");
    let stranger = symptom(with_tls(&secure, &ours, Some(strange.certify("stranger").identity()))).await;
    assert!(matches!(stranger, Symptom::CertificateRefused(_)), "{stranger}");
    assert_eq!(symptom(config(&secure)).await, Symptom::SpeaksTls);
    assert_eq!(symptom(with_tls(&plain, &ours, Some(client_cert.identity()))).await, Symptom::SpeaksPlaintext);
}

#[tokio::test]
async fn a_bad_file_ends_the_search_for_the_first_session_but_not_for_a_later_one() {
    let files = tempfile::tempdir().unwrap();
    let ours = Authority::new(files.path(), "ours");
    let server_cert = ours.certify("server");
    let tls = ServerTls {
        key_store: server_cert.key_store,
        trust_store: ours.ca_file.clone(),
        client_auth: ClientAuth::None,
    };
    let server = PrivateServer::start(Options { tls: Some(tls), ..Options::default() }).await.unwrap();
    let config = with_tls(&server.secure_connect_string().unwrap(), &ours, None);
    let aside = files.path().join("aside.pem");

    std::fs::rename(&ours.ca_file, &aside).unwrap();
    let error = Sessions::new(config.clone()).establish().await.unwrap_err();
    assert!(matches!(error, ConnectError::Config(_)), "{error}");

    std::fs::rename(&aside, &ours.ca_file).unwrap();
    let mut sessions = Sessions::new(config);
    drop(sessions.establish().await.unwrap());
    std::fs::rename(&ours.ca_file, &aside).unwrap();
    let mut states = sessions.subscribe();
    let again = tokio::spawn(async move { sessions.establish().await.map(drop) });
    let failed = |state: &Connection| matches!(state, Connection::Connecting { failed_attempts: 2.., .. });
    timeout(LIMIT, states.wait_for(failed)).await.unwrap().unwrap();
    assert!(!again.is_finished());
    std::fs::rename(&aside, &ours.ca_file).unwrap();
    timeout(LIMIT, again).await.unwrap().unwrap().unwrap();
    assert!(matches!(*states.borrow(), Connection::Connected { sessions: 2, .. }));
}

#[tokio::test]
async fn files_that_cannot_be_used_end_the_attempt_by_name() {
    let files = tempfile::tempdir().unwrap();
    let ours = Authority::new(files.path(), "ours");
    let (one, other) = (ours.certify("one"), ours.certify("other"));
    let missing = files.path().join("missing.pem");
    let mixed = Identity { cert_file: one.cert_file.clone(), key_file: other.key_file.clone() };
    let swapped = Identity { cert_file: one.key_file.clone(), key_file: one.cert_file.clone() };
    for (ca_file, identity, named) in [
        (&missing, None, "missing.pem"),
        (&one.key_file, None, "one-key.pem cannot be used for TLS: it contains no certificate"),
        (&ours.ca_file, Some(mixed), "does not match the key"),
        (&ours.ca_file, Some(swapped), "one-key.pem"),
    ] {
        let config = Config { tls: Some(Tls { ca_file: Some(ca_file.clone()), identity }), ..config("127.0.0.1:1") };
        let error = config.connect().await.unwrap_err();
        assert!(matches!(error, ConnectError::Config(_)) && !error.is_retryable(), "{error}");
        let said = error.to_string();
        assert!(said.contains(named) && said.contains(files.path().to_str().unwrap()), "{said}");
        assert!(config.check().is_err());
    }
}

#[test]
fn flags_switch_tls_on_and_half_an_identity_is_refused() {
    let file = |name: &str| Some(name.into());
    assert_eq!(Tls::from_flags(false, None, None, None).unwrap(), None);
    assert_eq!(Tls::from_flags(true, None, None, None).unwrap(), Some(Tls { ca_file: None, identity: None }));
    assert_eq!(Tls::from_flags(false, file("ca"), None, None).unwrap().unwrap().ca_file, file("ca"));
    let identity = Tls::from_flags(false, None, file("cert"), file("key")).unwrap().unwrap().identity;
    assert_eq!(identity, Some(Identity { cert_file: "cert".into(), key_file: "key".into() }));
    assert!(Tls::from_flags(true, file("ca"), file("cert"), None).is_err());
    assert!(Tls::from_flags(true, file("ca"), None, file("key")).is_err());
}
