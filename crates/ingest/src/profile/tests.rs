use std::fs;
use std::path::Path;

use ::url::Url;

use super::*;

const FULL: &str = r#"
name: demo
collections: ["ark:/99999/fk4-coll"]
owner: ark:99999/fk4owner
store: main
account: mill
space: objects
node: 9502
minter: {kind: ezid, shoulder: "ark:/99999/fk4", url: "https://ezid.example.edu"}
notification: {addresses: [ingest@example.edu], queued: true}
callback: https://depositor.example.edu/callback
priority: 7
hosts: [data.example.edu, "*.example.org"]
internal_hosts: ["working.internal:8080"]
credentials_file: demo.credentials
report: {mail: false, suppress: true}
"#;

const SHORT: &str =
    "name: short\nowner: ark:/99999/fk4owner\nstore: main\nminter: {kind: noid, shoulder: 'ark:/99999/fk5'}\n";

fn parse(text: &str) -> Result<Profile, ProfileError> {
    Profile::parse(Path::new("/p/demo.yaml"), text.as_bytes(), |path| {
        assert_eq!(path, Path::new("/p/demo.credentials"));
        Ok(b"data.example.edu: {username: merritt, password: very-secret}\n\"*.example.org:8443\": {username: a, password: b}".to_vec())
    })
}

#[test]
fn a_profile_has_the_keys_of_the_design_and_defaults_for_most() {
    let full = parse(FULL).unwrap();
    assert_eq!((full.name.as_str(), full.owner.as_str()), ("demo", "ark:/99999/fk4owner"));
    assert_eq!(full.collections[0].as_str(), "ark:/99999/fk4coll");
    assert_eq!((full.account.as_str(), full.space.as_str(), full.node), ("mill", "objects", 9502));
    assert_eq!(full.minter.shoulder().to_string(), "ark:/99999/fk4");
    assert_eq!((full.is_mailed_when_queued, full.is_report_mailed, full.is_success_suppressed), (true, false, true));
    let login = |url: &str| full.credentials.login(&Url::parse(url).unwrap()).map(Login::username);
    assert_eq!(login("https://data.example.edu/a"), Some("merritt"));
    assert_eq!(login("https://a.example.org:8443/"), Some("a"));
    for url in ["http://data.example.edu/", "https://example.edu/", "https://a.example.org/"] {
        assert_eq!(login(url), None, "{url}");
    }
    assert!(!format!("{full:?}").contains("very-secret"));
    assert!(full.guard().check(&Url::parse("http://working.internal:8080/").unwrap()).is_ok());
    assert!(full.guard().check(&Url::parse("http://elsewhere.edu/").unwrap()).is_err());

    let short = parse(SHORT).unwrap();
    assert_eq!((short.account.as_str(), short.space.as_str(), short.node), ("short", "short", 1));
    assert_eq!((short.is_report_mailed, short.hosts.is_none()), (true, true));
    assert!(matches!(short.minter, Minter::Noid(_)));
    let options = |more: &str| match parse(&FULL.replace("example.edu\"}", &format!("example.edu\", {more}}}"))) {
        Ok(Profile { minter: Minter::Ezid { options, .. }, .. }) => options,
        other => panic!("{other:?}"),
    };
    let all = options("target: 'https://repository.example/o/', owner: library, mints: true");
    assert_eq!((all.owner.as_deref(), all.mints), (Some("library"), true));
    assert_eq!(all.target.unwrap().to_string(), "https://repository.example/o/");
    assert_eq!(*options("mints: false"), EzidOptions::default());
    for more in ["owner: ''", "target: 'file:///a'", "mints: perhaps"] {
        assert!(parse(&FULL.replace("example.edu\"}", &format!("example.edu\", {more}}}"))).is_err(), "{more}");
    }
    assert!(parse(&SHORT.replace("fk5'}", "fk5', mints: true}")).is_err());
    assert_eq!(full.priority(1_000_000), 7);
    let by_number = [0, 1, 2, 3, 100, 12_000, 13_000, u64::MAX].map(|jobs| short.priority(jobs));
    assert_eq!(by_number, [5, 5, 11, 15, 51, 98, 99, 99]);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_without_secrets() {
    for (from, to, line, expected) in [
        ("priority: 7", "prority: 7", Some(12), "the key prority is unknown; expected one of name, collections, owner"),
        ("priority: 7", "priority: 100", Some(12), "priority: use a number from 0"),
        ("priority: 7", "priority: high", Some(12), "expected"),
        ("name: demo", "name: a/b", Some(2), "name: invalid name"),
        ("store: main", "", None, "store"),
        ("ark:99999/fk4owner", "library", Some(4), "owner: \"library\" is not an ARK"),
        ("[ingest@example.edu]", "[a@b@c]", Some(10), "notification: \"a@b@c\" is not a mail address"),
        ("\"*.example.org\"", "http://x", Some(13), "hosts: \"http://x\" is not a host"),
        (
            "https://depositor.example.edu/callback",
            "https://u:very-secret@d.edu/",
            Some(11),
            "callback: the URL https://d.edu/ has a user",
        ),
        ("https://depositor.example.edu/callback", "file:///x", Some(11), "callback: use an https"),
        ("kind: ezid", "kind: noid", Some(9), "minter: noid has no url"),
        ("kind: ezid", "kind: arks", Some(9), "minter: kind is neither"),
        ("queued: true", "queue: true", Some(10), "the key queue is unknown"),
        ("demo.credentials", "''", Some(15), "credentials_file is empty"),
    ] {
        let error = parse(&FULL.replace(from, to)).unwrap_err();
        assert!(error.why.contains(expected) && !error.why.contains("very-secret"), "{error}");
        assert!(line.is_none() || error.line == line, "{error}, not {line:?}");
    }
    assert!(parse("").is_err() && parse("# only\n").is_err() && parse("- a\n").is_err());
    let credentials =
        |text: &str| Credentials::parse(Path::new("c"), text.as_bytes()).map(|_| ()).unwrap_err().to_string();
    assert!(!credentials("a.edu: {username: x, password: {very: secret}}").contains("secret"));
    assert!(!credentials("a.edu: {username: x, passwort: very-secret}").contains("secret"));
}

#[test]
fn a_directory_is_read_again_and_a_bad_file_takes_no_other_one_down() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("a.yaml", SHORT);
    write("b.yml", &SHORT.replace("short", "other"));
    write("c.yaml", "name: [");
    write(".hidden.yaml", "nothing");
    write("notes.txt", "nothing");
    let mut profiles = Profiles::read(directory.path()).unwrap();
    let names = |profiles: &Profiles| profiles.iter().map(|one| one.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&profiles), ["other", "short"]);
    assert_eq!(profiles.errors().iter().map(|one| one.path.file_name().unwrap()).collect::<Vec<_>>(), ["c.yaml"]);
    assert!(profiles.read_again().unwrap().is_empty());

    // Invalid now: the last valid one stays in force. The name of another file is no second profile.
    write("a.yaml", &SHORT.replace("store", "stor"));
    write("b.yml", &SHORT.replace("short", "other").replace("fk5", "fk6"));
    write("c.yaml", &SHORT.replace("short", "other"));
    write("d.yaml", &SHORT.replace("short", "new"));
    let changes = profiles.read_again().unwrap();
    assert_eq!(
        (&*changes.added, &*changes.changed, &*changes.removed),
        (&["new".to_owned()][..], &["other".to_owned()][..], &[][..])
    );
    assert_eq!(changes.broken.len(), 2, "{changes}");
    assert!(changes.to_string().contains("other is also the name of"), "{changes}");
    assert_eq!(names(&profiles), ["new", "other", "short"]);
    assert_eq!(profiles.get("other").unwrap().minter.shoulder().to_string(), "ark:/99999/fk6");

    write("a.yaml", SHORT);
    fs::remove_file(directory.path().join("b.yml")).unwrap();
    fs::remove_file(directory.path().join("d.yaml")).unwrap();
    let changes = profiles.read_again().unwrap();
    assert_eq!(changes.removed, ["new"]);
    assert_eq!(changes.repaired.len(), 2, "{changes}");
    assert!(profiles.errors().is_empty());

    // The file of credentials belongs to its profile.
    write("a.yaml", &format!("{SHORT}credentials_file: secrets\n"));
    let changes = profiles.read_again().unwrap();
    assert!(changes.broken[0].why.contains("credentials_file"), "{changes}");
    write("secrets", "data.example.edu: {username: a, password: b}");
    let changes = profiles.read_again().unwrap();
    assert_eq!((changes.changed.len(), changes.repaired.len()), (1, 1), "{changes}");
    write("secrets", "data.example.edu: {username: a, password: c}");
    assert_eq!(profiles.read_again().unwrap().changed, ["short"]);
    fs::remove_dir_all(directory.path()).unwrap();
    assert!(profiles.read_again().is_err() && profiles.get("short").is_some());
}
