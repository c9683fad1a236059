//! The configuration of the documentation, read by the program. Rules and what is for Prometheus and Alertmanager is
//! read by `rules.rs` and `dashboards.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use queuekeeper_testkit::certs::Authority;
use queuekeeper_testkit::documentation::block;

use super::program::{Ran, run};

/// Stores, a catalogue and an account, beside which the page shows other keys.
const STORES: &str = "stores:\n  main: {url: \"file:///srv/main\"}\n  replica: {url: \"s3://preservation/replica\"}\n  \
                      cold: {url: \"s3://cold\"}\n";
const CATALOGUE: &str = "catalogue: {url: \"sqlite:c.db\"}\n";
const MILL: &str = "mill: {accounts: {account1: {stores: {\"1\": main, \"2\": replica}}}, policies: {directory: p}}\n";

/// A home directory for files of a configuration.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self(directory)
    }

    fn home(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file; returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.home().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Makes a token; returns its line for the tokens file.
    async fn token(&self, name: &str, role: &str) -> String {
        let made = run(self.home(), &["token", name, "--role", role]).await;
        format!("{}\n", made.is(0, &[]).err.lines().last().unwrap())
    }

    async fn check(&self, text: &str) -> Ran {
        run(self.home(), &["check-config", &self.write("config.yml", text)]).await
    }

    /// A configuration is valid, and is not once a key of it has another name.
    async fn is_read(&self, text: &str, printed: &[&str], key: &str) {
        self.check(text).await.is(0, printed);
        let misspelt = text.replacen(&format!("{key}: "), &format!("{key}s: "), 1);
        assert_ne!(misspelt, text);
        self.check(&misspelt).await.is(2, &[&format!("the key {key}s is unknown")]);
    }
}

#[tokio::test]
async fn stores_and_what_is_configured_beside_them_are_valid_as_documented() {
    let files = Files::new();
    files.write("replica.credentials", "key\nsecret\n");
    files.write("catalogue.password", "secret\n");
    let stores = block("docs/stores.md", "stores:\n");
    files.is_read(stores, &["stores: 3, catalogue: yes"], "storage_class").await;
    // The last line has the other kind of catalogue.
    let (text, other) = stores.split_once("\n# catalogue: ").unwrap();
    let (before, _) = text.rsplit_once('\n').unwrap();
    let other = format!("{before}\ncatalogue: {other}");
    files.is_read(&other, &["stores: 3, catalogue: yes"], "password_file").await;
    let cold = block("docs/mill.md", "# in config.yml\nstores:\n");
    files.is_read(cold, &["stores: 1, catalogue: no"], "restores_per_day").await;

    let with = |more: &str| format!("{STORES}{CATALOGUE}{more}");
    let account = with(block("docs/mill.md", "# beside stores and catalogue"));
    files.is_read(&account, &["stores: 3, catalogue: yes"], "policies").await;
    let limits = with(block("docs/mill.md", "# in config.yml\nmill:\n"));
    let printed = [
        "account1 in main: is read from replica",
        "account1 in replica: tasks start Mon-Fri 20:00-06:00 and Sat,Sun 00:00-24:00 (America/Los_Angeles)",
        "at most 20 MiB a second; at most 50 requests a second; leaves out *.tmp, cache/*; is checked by provider",
        "is repaired automatically; is written once; has what it stores adopted automatically",
    ];
    files.is_read(&limits, &printed, "write_once").await;
    files.is_read(&limits, &printed, "per_thousand_requests").await;

    files.write("tokens.yml", &files.token("minio", "store-events").await);
    let tokens = format!("{}tokens_file: tokens.yml\n", with(MILL));
    let events = format!("{tokens}{}", block("docs/mill.md", "# beside stores, tokens_file and mill"));
    files.is_read(&events, &["tokens: 1"], "messages_per_minute").await;
    files.write("tokens.yml", &files.token("lab", "depositor").await);
    let depositors = format!("{tokens}{}", block("docs/deposit.md", "depositors:\n"));
    files.is_read(&depositors, &["tokens: 1"], "deposits_per_minute").await;
    let access = with(block("docs/deposit.md", "access:\n")).replace("  cold:", "  deliveries:");
    files.is_read(&access, &["stores: 3, catalogue: yes"], "small_bytes").await;
}

#[tokio::test]
async fn the_profile_of_a_collection_is_valid_as_documented() {
    let files = Files::new();
    fs::create_dir(files.home().join("profiles")).unwrap();
    let profile = block("docs/ingest.md", "name: merritt_demo");
    let directory = files.home().join("profiles").display().to_string();
    let config = files.write("config.yml", STORES);
    let check = async |text: &str| {
        files.write("profiles/demo.yaml", text);
        run(files.home(), &["check-config", &config, "--profiles", &directory]).await
    };
    check(profile).await.is(0, &["1 valid profile"]);
    check(&profile.replace("internal_hosts", "internal_host")).await.is(2, &["demo.yaml, line 6", "internal_host"]);
    check(&profile.replace("store: main", "store: other")).await.is(2, &["store other is in none of the files"]);
}

#[tokio::test]
async fn users_and_certificates_are_valid_as_documented() {
    let files = Files::new();
    let authority = Authority::new(files.home(), "clients");
    let server = authority.certify("server");
    fs::rename(server.cert_file, files.home().join("server.pem")).unwrap();
    fs::rename(server.key_file, files.home().join("server-key.pem")).unwrap();
    let documented = block("docs/security.md", "tls_server_config:\n");
    // The page has the beginnings of hashes.
    let (mut text, mut users) = (documented.to_owned(), 0);
    while text.contains("$2b$12$...") {
        users += 1;
        text = text.replacen("$2b$12$...", &bcrypt::hash(users.to_string(), 4).unwrap(), 1);
    }
    let web = files.write("web.yml", &text);
    run(files.home(), &["check-web-config", &web]).await.is(0, &["web.yml is valid"]);
    let misspelt = files.write("misspelt.yml", &text.replace("client_ca_file", "client_ca_files"));
    run(files.home(), &["check-web-config", &misspelt]).await.is(2, &["misspelt.yml", "client_ca_files"]);

    let config = files.write("config.yml", block("docs/security.md", "users: "));
    let check = ["check-config", &config, "--web.config.file", &web];
    run(files.home(), &check).await.is(0, &["roles for users: 2, tokens: 0"]);
    files.write("web.yml", &text.replace("\"bob\"", "\"bill\""));
    run(files.home(), &check).await.is(2, &["bob"]);
    assert_eq!(users, 2);
}
