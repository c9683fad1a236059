use super::*;

/// As Merritt's own tests have it, shortened, with the keys that they lack.
const FILE: &str = "# Merritt Test
ProfileID: merritt_test_content
ProfileDescription: Merritt Test
Identifier-scheme: ARK
Collection.2: ark:/99999/m5000001
Collection.1: ark:/99999/m5000000
Type: MRT-curatorial
Aggregate:
Owner: ark:/99999/j2000000
Notification.1: test.email@test.edu
HandlerQueue.1: org.cdlib.mrt.ingest.handlers.queue.HandlerDisaggregate
HandlerQueue.2: org.cdlib.mrt.ingest.handlers.queue.HandlerSubmit
StorageService: http://storage.test.edu:35121/
StorageNode: 9999
Priority: 03
ObjectMinterURL: https://ezid.test.edu/shoulder/ark:/99999/fk4
CallbackURL: https://depositor.test.edu/callback
NotificationSuppression: true
Context: merritt_test
";

fn settings() -> ImportSettings {
    let stores = BTreeMap::from([("http://storage.test.edu:35121".to_owned(), "main".parse().unwrap())]);
    ImportSettings { stores, ..ImportSettings::default() }
}

fn imported(text: &str, settings: &ImportSettings) -> Result<Imported, Vec<String>> {
    import(Path::new("p/test"), text.as_bytes(), settings)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn a_profile_of_merritt_becomes_one_of_ours() {
    let Imported { name, yaml, notes, service } = imported(FILE, &settings()).unwrap();
    assert_eq!(service.as_deref(), Some("http://storage.test.edu:35121"));
    assert_eq!(name.as_str(), "merritt_test_content");
    let profile = Profile::parse(Path::new("x.yaml"), yaml.as_bytes(), |_| Ok(Vec::new())).unwrap();
    let collections: Vec<_> = profile.collections.iter().map(Ark::as_str).collect();
    assert_eq!(collections, ["ark:/99999/m5000000", "ark:/99999/m5000001"]);
    assert_eq!((profile.name, profile.owner.as_str()), (name, "ark:/99999/j2000000"));
    assert_eq!((profile.store.to_string().as_str(), profile.node, profile.fixed_priority), ("main", 9999, Some(3)));
    assert_eq!(profile.addresses, ["test.email@test.edu"]);
    assert_eq!((profile.is_report_mailed, profile.is_success_suppressed), (true, true));
    assert_eq!(profile.callback.unwrap().reveal().as_str(), "https://depositor.test.edu/callback");
    let crate::profile::Minter::Ezid { shoulder, url, .. } = profile.minter else { panic!("{yaml}") };
    assert_eq!((shoulder.to_string().as_str(), url.reveal().as_str()), ("ark:/99999/fk4", "https://ezid.test.edu/"));
    for expected in [
        "p/test: lines 11, 12: HandlerQueue has no equivalent",
        "p/test: line 19: Context has no equivalent",
        "p/test: line 8: Aggregate has no equivalent",
        "add hosts",
        "p/test: line 16: add credentials_file",
    ] {
        assert!(notes.iter().any(|note| note.contains(expected)), "{expected}: {notes:?}");
    }
    assert_eq!(notes.len(), 8, "{notes:?}");
}

#[test]
fn what_cannot_be_converted_is_named_with_its_line() {
    for (from, to, expected) in [
        ("Context:", "Contxt:", "p/test, line 19: the key \"Contxt\" is unknown"),
        ("Context:", "Collection:", "p/test, line 19: the key \"Collection\" is unknown"),
        ("Context:", "Owner.1:", "p/test, line 19: the key \"Owner.1\" is unknown"),
        ("Context: merritt_test", "Owner: ark:/99999/x", "p/test, line 19: Owner is also in line 9"),
        ("ProfileID: merritt_test_content", "", "p/test: it has no ProfileID"),
        ("merritt_test_content", "${NAME}_content", "line 2: ProfileID: invalid name"),
        ("Owner: ark:/99999/j2000000", "Owner: library", "line 9: Owner: \"library\" is not an ARK"),
        ("test.email@test.edu", "Some One <a@b.edu>", "line 10: Notification.1: \"Some One"),
        ("35121/", "35122", "line 13: StorageService: set the store that replaces http://storage.test.edu:35122"),
        ("StorageNode: 9999", "StorageNode: x", "line 14: StorageNode: "),
        ("Priority: 03", "Priority: 100", "line 15: Priority: use a number from 0"),
        (
            "/shoulder/ark:/99999/fk4",
            "/nd/noidu_b5.",
            "line 16: ObjectMinterURL names no shoulder of EZID; set the shoulder",
        ),
        ("/ark:/99999/fk4", "/ark:/99999/AEIOU", "line 16: ObjectMinterURL: "),
        ("https://depositor", "https://user:secret@depositor", "line 17: CallbackURL: "),
        ("https://depositor.test.edu/callback", "https://d.test.edu/?key=x", "line 17: CallbackURL: use an https"),
        ("Suppression: true", "Suppression: failed", "line 18: NotificationSuppression: "),
    ] {
        let errors = imported(&FILE.replacen(from, to, 1), &settings()).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(expected) && !errors[0].contains("secret"), "{expected}: {errors:?}");
    }
    let errors = imported("A: b\nOwner: x\n", &ImportSettings::default()).unwrap_err();
    assert_eq!(errors.len(), 5, "{errors:?}");
}

#[test]
fn what_the_files_do_not_say_is_taken_from_the_settings() {
    let noid = FILE.replace("https://ezid.test.edu/shoulder/ark:/99999/fk4", "http://noid.test.edu/nd/noidu_b5.");
    let settings = ImportSettings {
        stores: BTreeMap::new(),
        store: Some("other".parse().unwrap()),
        shoulder: Some("ark:/99999/b5".parse().unwrap()),
    };
    let Imported { yaml, notes, .. } = imported(&noid, &settings).unwrap();
    assert!(yaml.contains("store: \"other\"\n"), "{yaml}");
    assert!(yaml.contains("minter: {kind: noid, shoulder: \"ark:/99999/b5\"}\n"), "{yaml}");
    assert!(notes.iter().any(|note| note.contains("line 16: identifiers are minted here")), "{notes:?}");
}
