use std::path::Path;

use queuekeeper::config::WebFile;

use super::command_line::queuekeeper;
use queuekeeper_testkit::certs::Authority;

const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

fn refused(directory: &Path, text: &str) -> String {
    let path = directory.join("web.yml");
    std::fs::write(&path, text).unwrap();
    WebFile::read(&path).err().unwrap_or_else(|| panic!("taken: {text}")).to_string()
}

#[test]
fn what_is_not_taken_is_refused_by_name_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let (server, other) = (authority.certify("server"), authority.certify("other"));
    std::fs::write(directory.path().join("empty.pem"), "").unwrap();
    let pair = "cert_file: server.pem\n  key_file: server-key.pem\n";
    let tls = |lines: &str| format!("tls_server_config:\n  {pair}  {lines}\n");
    for (text, reported) in [
        (
            "tls_server_confg:\n  a: b\n".to_owned(),
            &["line 1: the key tls_server_confg is unknown", "basic_auth_users"][..],
        ),
        ("rate_limit:\n  burst: 1\n".to_owned(), &["line 1: the key rate_limit is unknown"]),
        (tls("cipher_suites: []"), &["line 4: the key cipher_suites is unknown", "min_version"]),
        (tls("client_allowed_sans: [a]"), &["line 4: the key client_allowed_sans is unknown"]),
        (tls("min_version: TLS11"), &["line 4: min_version: expected TLS12 or TLS13"]),
        (tls("min_version: TLS13\n  max_version: TLS12"), &["line 5: max_version is below min_version"]),
        (
            tls("client_auth_type: RequireAnyClientCert\n  client_ca_file: ca.pem"),
            &["line 4", "RequireAndVerifyClientCert"],
        ),
        (tls("client_auth_type: RequireAndVerifyClientCert"), &["client_auth_type requires client_ca_file"]),
        (tls("client_ca_file: ca.pem"), &["client_auth_type does not request"]),
        (tls("cert: x"), &["line 4: cert_file and cert must not both be set"]),
        (tls("cert_file: other.pem"), &["line 4: the key cert_file is duplicated"]),
        (
            tls("client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: empty.pem"),
            &["empty.pem: it contains no valid certificate"],
        ),
        ("tls_server_config: {}\n".to_owned(), &["cert_file is missing"]),
        ("tls_server_config:\n  cert_file: server.pem\n".to_owned(), &["key_file is missing"]),
        ("tls_server_config:\n  cert_file: ''\n  key_file: b\n".to_owned(), &["line 2: cert_file is empty"]),
        (
            "tls_server_config: {cert_file: no.pem, key_file: b}\n".to_owned(),
            &["cannot read", "no.pem", "No such file"],
        ),
        ("tls_server_config: {cert_file: ., key_file: b}\n".to_owned(), &["cannot read", "it is not a file"]),
        (
            "tls_server_config: {cert_file: server.pem, key_file: server.pem}\n".to_owned(),
            &["server.pem: it does not contain a private key"],
        ),
        (
            "tls_server_config: {cert_file: server-key.pem, key_file: server-key.pem}\n".to_owned(),
            &["it contains no valid certificate"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: other-key.pem}\n".to_owned(),
            &["server.pem: it does not match the key", "other-key.pem"],
        ),
        (
            "tls_server_config: {cert: word, key: word}\n".to_owned(),
            &["line 1, cert: it contains no valid certificate"],
        ),
        ("http_server_config:\n  http2: true\n".to_owned(), &["line 2: http2: only HTTP/1.1 is supported"]),
        (
            "http_server_config:\n  headers:\n    X-Frame-Options: sameorigin\n".to_owned(),
            &["line 3: the header X-Frame-Options is not supported"],
        ),
        (
            "http_server_config:\n  headers:\n    Strict-Transport-Security: \"a\\nb\"\n".to_owned(),
            &["line 3: Strict-Transport-Security"],
        ),
        (
            "basic_auth_users:\n  alice: secret\n".to_owned(),
            &["line 2: the user alice: not a bcrypt hash", "queuekeeper password alice"],
        ),
        (format!("basic_auth_users:\n  a: {HASH}\n  b: {HASH}x\n"), &["line 3: the user b"]),
        (format!("basic_auth_users:\n  a: {HASH}\n  a: {HASH}\n"), &["line 3: the key a is duplicated"]),
        (format!("basic_auth_users:\n  'a:b': {HASH}\n"), &["line 2: the user a:b: a name must not contain a colon"]),
        (
            format!("basic_auth_users:\n  a: {}\n", HASH.replace("$10$", "$31$")),
            &["line 2", "cost of the hash is 31", "4 to 16"],
        ),
        ("basic_auth_users: [secret]\n".to_owned(), &["line 1"]),
        ("basic_auth_users: secret\n".to_owned(), &["line 1"]),
        ("basic_auth_users:\n  alice:\n    - secret\n".to_owned(), &["line 3"]),
        ("a: [\n".to_owned(), &["line "]),
        (String::new(), &["web.yml: it is empty", "write {}"]),
        ("# nothing yet\n".to_owned(), &["web.yml: it is empty except for comments", "write {}"]),
        ("--- {}\n--- {}\n".to_owned(), &["web.yml"]),
        ("\u{0}".to_owned(), &["web.yml"]),
        ("x".repeat(2 << 20), &["cannot read", "larger than 1 MiB"]),
    ] {
        let error = refused(directory.path(), &text);
        for part in reported {
            assert!(error.contains(part), "{part:?} is not in {error:?} for:\n{text:.300}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!error.contains("secret") && !error.contains("QOauhQ"), "{error}");
    }
    // Bytes that are no text, and files that are none.
    let path = directory.path().join("web.yml");
    std::fs::write(&path, b"a: \xff\n").unwrap();
    assert!(WebFile::read(&path).unwrap_err().to_string().contains("it is not UTF-8"));
    assert!(WebFile::read(directory.path()).unwrap_err().to_string().contains("it is not a file"));
    drop((server, other));
}

#[test]
fn what_is_taken_is_what_the_exporters_take() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "ca");
    let _ = authority.certify("server");
    let path = directory.path().join("web.yml");
    for text in [
        "{}\n".to_owned(),
        "basic_auth_users:\n".to_owned(),
        format!("basic_auth_users:\n  alice: {HASH}\n  bob: {}\n", HASH.replace("$2y$", "$2b$")),
        "tls_server_config:\n  cert_file: server.pem\n  key_file: server-key.pem\n  client_auth_type: NoClientCert\n"
            .to_owned(),
        "tls_server_config:\n  cert_file: server.pem\n  key_file: server-key.pem\n  client_ca_file: ca.pem\n  \
         client_auth_type: RequireAndVerifyClientCert\n  min_version: TLS12\n  max_version: TLS13\n\
         http_server_config:\n  http2: false\n  headers:\n    Strict-Transport-Security: max-age=1\n    \
         X-Content-Type-Options: nosniff\n    X-Frame-Options: deny\n"
            .to_owned(),
    ] {
        std::fs::write(&path, &text).unwrap();
        WebFile::read(&path).unwrap_or_else(|error| panic!("{error}: {text}"));
        // Prometheus' own tool has the last word on its format.
        let tool = std::process::Command::new("promtool").args(["check", "web-config"]).arg(&path).output().unwrap();
        assert!(tool.status.success(), "{tool:?}: {text}");
        let ours = queuekeeper(&["check-web-config"]).arg(&path).output().unwrap();
        assert!(ours.status.success() && String::from_utf8_lossy(&ours.stdout).contains("is valid"), "{ours:?}");
    }
    std::fs::write(&path, "basic_auth_users:\n  alice: secret\n").unwrap();
    let ours = queuekeeper(&["check-web-config"]).arg(&path).output().unwrap();
    let reported = String::from_utf8_lossy(&ours.stderr).into_owned();
    assert!(ours.status.code() == Some(2) && reported.contains("web.yml, line 2: the user alice"), "{reported}");
}
