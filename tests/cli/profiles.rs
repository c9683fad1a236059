//! `profiles import`.

use std::fs;

use super::program::run;

const ONE: &str = "ProfileID: one_content\nType: MRT-curatorial\nCollection.1: ark:/99999/m51\nOwner: ark:/99999/j21\n\
                   Notification.1: a@test.edu\nStorageService: http://store:35121\nStorageNode: 7\n\
                   ObjectMinterURL: https://ezid.test.edu/shoulder/ark:/99999/fk4\n";

#[tokio::test]
async fn a_check_of_the_configuration_reads_the_profiles_and_finds_their_stores() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    fs::create_dir_all(at("profiles")).unwrap();
    fs::create_dir_all(at("objects")).unwrap();
    let [profiles, config] = ["profiles", "config.yml"].map(|name| at(name).display().to_string());
    let profile = |name: &str, store: &str| {
        let text = format!(
            "name: {name}\nowner: ark:/1/o\nstore: {store}\nminter: {{kind: noid, shoulder: ark:/99999/fk4}}\n"
        );
        fs::write(at(&format!("profiles/{name}.yaml")), text).unwrap();
    };
    let objects = at("objects").display().to_string();
    fs::write(&config, format!("stores:\n  main: {{url: \"file://{objects}\"}}\n")).unwrap();
    profile("one", "main");
    profile("two", "elsewhere");
    let alone = ["check-config", "--profiles", &profiles];
    run(home.path(), &alone).await.is(0, &["2 valid profiles"]);
    let with_stores = ["check-config", &config, "--profiles", &profiles];
    run(home.path(), &with_stores).await.is(
        2,
        &["stores: 1", "profile two: store elsewhere is in none of the files", "1 valid profile", "1 problem in"],
    );
    profile("two", "main\nunknown: 1");
    run(home.path(), &with_stores).await.is(2, &["two.yaml, line 4", "1 valid profile"]);
    profile("two", "main");
    run(home.path(), &with_stores).await.is(0, &["2 valid profiles"]);
    run(home.path(), &["check-config"]).await.is(2, &["FILE"]);
}

#[tokio::test]
async fn profiles_of_merritt_are_converted_and_nothing_is_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    fs::create_dir_all(at("merritt/admin")).unwrap();
    fs::create_dir(at("profiles")).unwrap();
    fs::write(at("merritt/.hidden"), "nothing").unwrap();
    fs::write(at("merritt/one_content"), ONE).unwrap();
    fs::write(at("merritt/two_content.txt"), ONE.replace("one_content", "two_content").replace("Owner", "Owners"))
        .unwrap();
    let [from, to] = ["merritt", "profiles"].map(|name| at(name).display().to_string());
    let import = async |more: &[&str]| {
        let fixed = ["profiles", "import", &from, "--profiles", &to];
        run(home.path(), &[&fixed[..], more].concat()).await
    };
    let written = || fs::read_dir(at("profiles")).unwrap().count();

    import(&["--store", "main"]).await.is(
        1,
        &[
            "two_content.txt, line 4: the key \"Owners\" is unknown",
            "1 of 2 files cannot be converted; nothing was written",
        ],
    );
    fs::write(at("merritt/two_content.txt"), ONE).unwrap();
    import(&["--store", "main"]).await.is(1, &["one_content is also the ProfileID of", "merritt/one_content"]);
    fs::write(at("merritt/two_content.txt"), ONE.replace("one_content", "two_content")).unwrap();
    import(&[]).await.is(1, &["line 6: StorageService: set the store that replaces http://store:35121"]);
    // A URL that is misspelt is not passed over.
    let both = ["--store", "main", "--store", "http://stroe:35121=other"];
    import(&both).await.is(2, &["--store", "http://stroe:35121=other: no profile in"]);
    // Nor is any file written where another one cannot be.
    fs::create_dir(at("profiles/two_content.yaml")).unwrap();
    import(&["--store", "main"]).await.is(1, &["cannot read", "two_content.yaml"]);
    fs::remove_dir(at("profiles/two_content.yaml")).unwrap();
    let many: Vec<_> = (2..200).map(|number| format!("Collection.{number}: ark:/99999/m{number}\n")).collect();
    fs::write(at("merritt/z_content"), ONE.replace("one_content", "z_content") + &many.concat()).unwrap();
    // As if the disk were full behind the first kilobyte of a file.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_queuekeeper");
    let arguments = ["-c", limited, "sh", program, "profiles", "import", &from, "--profiles", &to, "--store", "main"];
    let ran = std::process::Command::new("sh").args(arguments).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(1) && said.contains("z_content.yaml; nothing was written"), "{said}");
    fs::remove_file(at("merritt/z_content")).unwrap();
    assert_eq!(written(), 0);

    let ran = import(&["--store", "http://store:35121/=main"]).await;
    ran.is(
        0,
        &[
            &format!("merritt/one_content: {to}/one_content.yaml was written"),
            &format!("merritt/two_content.txt: {to}/two_content.yaml was written"),
            "merritt/one_content: line 2: Type has no equivalent",
            "add credentials_file",
        ],
    );
    let yaml = fs::read_to_string(at("profiles/two_content.yaml")).unwrap();
    assert!(yaml.contains("name: \"two_content\"\n") && yaml.contains("store: \"main\"\n"), "{yaml}");

    // The same again changes nothing; what a person has edited stays until it is to be replaced.
    fs::write(at("profiles/two_content.yaml"), format!("{yaml}hosts: [data.test.edu]\n")).unwrap();
    import(&["--store", "main"]).await.is(3, &["two_content.yaml exists and has other contents; --force"]);
    let ran = import(&["--store", "main", "--force"]).await;
    ran.is(0, &["one_content.yaml is unchanged", "two_content.yaml was replaced"]);
    assert_eq!(fs::read_to_string(at("profiles/two_content.yaml")).unwrap(), yaml);
    assert_eq!(written(), 2);
    run(home.path(), &["profiles", "import", "/nowhere", "--profiles", &to]).await.is(1, &["nowhere"]);
}
