//! Commands of the documentation that need stores, tokens or a server, run from the pages.

use std::fs;

use queuekeeper_testkit::documentation::{block, commands};
use queuekeeper_testkit::wait::eventually_some;
use serde_json::Value;

use super::client::LONGEST;
use super::reader::Reader;
use super::stores::configured;
use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn stores_and_a_catalogue_are_used_backed_up_and_restored_as_documented() {
    let reader = Reader::new();
    let s3 = configured(reader.home()).await;
    for name in ["data", "profiles"] {
        fs::create_dir(reader.at(name)).unwrap();
    }
    fs::write(reader.at("profiles/demo.yaml"), block("docs/ingest.md", "name: merritt_demo")).unwrap();
    fs::write(reader.at("data/a"), "some data\n").unwrap();
    fs::write(reader.at("thesis.pdf"), "a thesis\n").unwrap();
    let mut terminal = reader.terminal();
    terminal.follow_all(block("docs/stores.md", "queuekeeper check-config config.yml --probe"));
    assert_eq!(fs::read(reader.at("copy.pdf")).unwrap(), b"a thesis\n");
    let (code, listed) =
        terminal.run("queuekeeper store get main/theses/data.tar | tar t; queuekeeper store ls replica/theses/");
    assert!(code == 0 && listed.contains("data/a") && listed.contains("2026/thesis.pdf"), "{listed}");

    fs::write(reader.at("catalogue.db"), "no database at all, but more than some bytes of text").unwrap();
    let restored = terminal.follow_all(block("docs/stores.md", "mkdir damaged "));
    let (code, rebuilt) = terminal.run(&restored.last().unwrap().0.command.replace(" rebuild ", " rebuild --yes "));
    // There are items, and no objects: tests/cli/repairs.rs has those rebuilt.
    assert!(code == 3 && rebuilt.contains("the spaces of the profiles have no objects"), "{code}: {rebuilt}");
    let (code, verified) = terminal.run("queuekeeper store verify main/theses/2026/thesis.pdf");
    assert!(code == 0 && verified.contains("proven"), "{verified}");
    drop(terminal);
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_made_checked_and_used_as_documented() {
    let world = World::new("documented-token").await;
    let mut reader = Reader::new();
    let web = reader.port("127.0.0.1:12181");
    reader.set("QUEUEKEEPER_WEB_LISTEN_ADDRESS", &web);
    // That day comes.
    reader.replace("2027-01-31", "2999-01-31");
    let users = block("docs/security.md", "users: ").replace("# tokens_file", "tokens_file");
    fs::write(reader.at("config.yml"), users).unwrap();
    let user = |name: &str| format!("  {name}: {}\n", bcrypt::hash(name, 4).unwrap());
    fs::write(reader.at("web.yml"), format!("basic_auth_users:\n{}{}", user("alice"), user("bob"))).unwrap();
    let mut terminal = reader.terminal();
    let lines = commands(block("docs/security.md", "queuekeeper token ci "));
    let [make, hash, check, ask] = &lines[..] else { panic!("{lines:#?}") };
    let made = terminal.follow(make);
    let token = made.lines().find(|line| line.starts_with("qk_")).unwrap();
    assert!(made.contains("2027-01-31"), "{made}");
    fs::write(reader.at("ci.token"), token).unwrap();
    terminal.follow(hash);
    let checked = terminal.follow(check);
    assert!(checked.contains("roles for users: 2, tokens: 1"), "{checked}");
    let serve =
        format!("queuekeeper serve --zookeeper {} --config.file config.yml --web.config.file web.yml", world.address);
    let mut server = reader.start(&serve);
    server.ready(&web).await;
    terminal.run(&format!("export TOKEN={token}"));
    let who = terminal.follow(ask);
    assert!(who.contains("\"ci\"") && who.contains("\"operator\""), "{who}");
    drop(terminal);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_made_by_the_requests_of_the_documentation() {
    let world = World::new("documented-deposit").await;
    let mut reader = Reader::new();
    let web = reader.port("127.0.0.1:12181");
    reader.set("QUEUEKEEPER_WEB_LISTEN_ADDRESS", &web);
    for (variable, value) in [
        ("QUEUEKEEPER_ZOOKEEPER", world.address.clone()),
        ("QUEUEKEEPER_CONFIG_FILE", reader.at("config.yml")),
        ("QUEUEKEEPER_INGEST_WEB_LISTEN_ADDRESS", "127.0.0.1:0".to_owned()),
    ] {
        reader.set(variable, value);
    }
    for name in ["main", "working", "profiles"] {
        fs::create_dir(reader.at(name)).unwrap();
    }
    let stores =
        format!("stores: {{main: {{url: \"file://{}\"}}}}\ncatalogue: {{url: \"sqlite:c.db\"}}\n", reader.at("main"));
    let depositors = block("docs/deposit.md", "depositors:\n");
    fs::write(reader.at("config.yml"), format!("{stores}tokens_file: tokens.yml\n{depositors}")).unwrap();
    fs::write(reader.at("profiles/demo.yaml"), block("docs/ingest.md", "name: merritt_demo")).unwrap();
    fs::write(reader.at("scan.txt"), "content\n").unwrap();
    let (_, digest) = reader.terminal().run("python3 -m zipfile -c rbn.zip scan.txt && sha256sum <rbn.zip");
    reader.replace("0f3a..", digest.split(' ').next().unwrap());

    let mut terminal = reader.terminal();
    let (code, token) = terminal.run("queuekeeper token lab --role depositor 2>>tokens.yml");
    assert_eq!(code, 0, "{token}");
    terminal.run(&format!("export TOKEN={token}"));
    let daemons = reader.start("queuekeeper ingest --profiles profiles --working working");
    let mut server = reader.start("queuekeeper serve --deposits.profiles profiles --deposits.working working");
    server.ready(&web).await;
    let lines = commands(block("docs/deposit.md", "deposits=http"));
    let (look, lines) = lines.split_last().unwrap();
    for line in lines {
        terminal.follow(line);
    }
    let done = eventually_some(LONGEST, "the deposit is completed", async || {
        let seen: Value = serde_json::from_str(terminal.follow(look).lines().last()?).ok()?;
        (seen["state"] == "completed").then_some(seen)
    })
    .await;
    assert!(done["jobs"][0]["ark"].as_str().unwrap().starts_with("ark:/99999/fk4"), "{done}");
    assert_eq!((&done["depositor"], &done["completed"]), (&"lab".into(), &1.into()), "{done}");
    drop(terminal);
    server.end().await;
    daemons.end().await;
}
