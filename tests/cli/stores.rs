//! Stores and the catalogue: content in, content out, and a record of it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use queuekeeper_testkit::s3::{Effect, Fault, Point, S3Server, Settings};
use rustix::process::{Pid, Signal, kill_process};

use super::program::{queuekeeper, run};

/// A directory with a configuration: a store in a directory, one in S3, and a catalogue.
pub(super) async fn configured(home: &Path) -> S3Server {
    let s3 = S3Server::start(Settings::default()).await.unwrap();
    s3.create_bucket("copies");
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir(home.join("objects")).unwrap();
    let keys = format!("{}\n{}\n", s3.access_key(), s3.secret_key());
    let config = format!(
        "stores:\n  main: {{url: \"file://{}\"}}\n  replica: {{url: \"s3://copies/all\", endpoint: \"{}\", \
         region: us-east-1, credentials_file: keys}}\ncatalogue: {{url: \"sqlite:catalogue.db\"}}\n",
        home.join("objects").display(),
        s3.endpoint()
    );
    fs::write(home.join("keys"), keys).unwrap();
    fs::write(home.join("config.yml"), config).unwrap();
    s3
}

/// Runs `queuekeeper store` or `catalogue` with the configuration.
pub(super) async fn command(home: &Path, arguments: &str) -> super::program::Ran {
    let file = home.join("config.yml");
    let words: Vec<_> = arguments.split(' ').chain(["--config.file", file.to_str().unwrap()]).collect();
    run(home, &words).await
}

#[tokio::test(flavor = "multi_thread")]
async fn content_goes_in_and_comes_out_of_every_store_and_each_change_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let (content, got) = (home.join("content"), home.join("got"));
    fs::write(&content, "some content\n").unwrap();
    let file = content.to_str().unwrap();
    let sha256 = "cf2c5c5f5ac7a1ae3d0f8d0d5b0c0e2a";
    command(home, "catalogue migrate").await.is(0, &["created with schema"]);
    command(home, "catalogue migrate").await.is(0, &["is up to date"]);
    for store in ["main", "replica"] {
        let put = |options: &str| format!("store put {file} {store}/space/a/b.txt {options}");
        command(home, &put("-o json"))
            .await
            .is(4, &[&format!("there is no space {store}/space; --create-space creates it")]);
        let wrong = format!("--create-space --digest sha256:{sha256}{sha256}");
        command(home, &put(&wrong)).await.is(1, &["sha256 is ", &format!("expected {sha256}{sha256}")]);
        let written = command(home, &put("--content-type text/plain -o json")).await.json();
        assert_eq!((&written["size"], &written["key"]), (&13.into(), &"a/b.txt".into()), "{written}");
        let digest = written["digests"]["sha256"].as_str().unwrap().to_owned();
        command(home, &put("-o table")).await.is(3, &["exists; --replace replaces it"]);
        command(home, &put(&format!("--replace --digest SHA-256:{digest}"))).await.is(0, &[&digest]);

        command(home, &format!("store ls {store}")).await.is(0, &["space\n"]);
        command(home, &format!("store ls {store}/space")).await.is(0, &["KEY", " 13  20", "  a/b.txt\n"]);
        command(home, &format!("store ls {store}/space/b -o json"))
            .await
            .is(0, &["{\"items\": []}", "no item matches"]);
        let csv = command(home, &format!("store ls {store}/space/a -o csv")).await;
        csv.is(0, &["key,size,modified,etag,key_encoded\na/b.txt,13,20", ",a/b.txt\n"]);

        command(home, &format!("store get {store}/space/a/b.txt")).await.is(0, &["some content\n"]);
        let to = got.to_str().unwrap();
        command(home, &format!("store get {store}/space/a/b.txt {to}")).await.is(0, &["file", to]);
        assert_eq!(fs::read(&got).unwrap(), b"some content\n");
        command(home, &format!("store get {store}/space/a/b.txt {to}")).await.is(3, &["exists; --replace"]);
        // A file that it did not begin stays as it is; what it began of another state does not.
        let (part, state) = (home.join("got.part"), home.join("got.part.state"));
        fs::rename(&got, &part).unwrap();
        let get = format!("store get {store}/space/a/b.txt {to}");
        command(home, &get).await.is(3, &["got.part exists, but is not from `store get`"]);
        assert_eq!(fs::read(&part).unwrap(), b"some content\n");
        fs::write(&state, "of another one").unwrap();
        let held = fs::File::open(&part).unwrap();
        held.lock().unwrap();
        command(home, &get).await.is(3, &["another process is writing", "got.part"]);
        drop(held);
        command(home, &format!("{get} -o json")).await.json();
        assert_eq!((fs::read(&got).unwrap(), part.exists(), state.exists()), (b"some content\n".into(), false, false));
        fs::remove_file(&got).unwrap();
        std::os::unix::fs::symlink("elsewhere", &got).unwrap();
        command(home, &format!("{get} --replace")).await.is(3, &["got is not a regular file"]);
        fs::remove_file(&got).unwrap();
        command(home, &format!("store get {store}/space/none {to}")).await.is(4, &["there is no item"]);
        command(home, &format!("store verify {store}/space/a/b.txt")).await.is(0, &["result", "proven"]);
    }
    command(home, "store cp main/space/a/b.txt replica/space/copy").await.is(0, &["sha512"]);
    command(home, "store cp replica/space/copy replica/space/copy/of/it").await.is(0, &["replica/space/copy/of/it"]);
    command(home, "store cp replica/space/copy main/other/copy")
        .await
        .is(4, &["there is no space main/other; --create-space creates it"]);
    command(home, "store cp replica/space/copy main/other/copy --create-space").await.is(0, &["main/other/copy"]);
    assert_eq!(fs::read(home.join("objects/other/copy")).unwrap(), b"some content\n");

    // A byte rots, and the date does not.
    let path = home.join("objects/other/copy");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "some c0ntent\n").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    command(home, "store verify main/other/copy").await.is(1, &["damaged", "the store has"]);
    let why = "main/other/copy: damaged: ";
    command(home, "store cp main/other/copy replica/space/bad").await.is(1, &[why, "the store has"]);
    command(home, "store cp main/other/copy main/other/bad").await.is(1, &[why, "the store has"]);
    command(home, &format!("store get main/other/copy {}", got.display())).await.is(1, &["damaged"]);
    assert!(!got.exists() && !home.join("got.part").exists());
    command(home, "store ls replica/space").await.is(0, &["copy/of/it"]);

    command(home, "store rm main/other/copy").await.is(2, &["--yes"]);
    command(home, "store rm main/other --yes").await.is(3, &["the space is not empty"]);
    command(home, "store rm main/other/copy --yes").await.is(0, &["deleted main/other/copy"]);
    command(home, "store rm main/other/copy --yes").await.is(4, &["there is no item"]);
    command(home, "store rm main/other --yes").await.is(0, &["deleted main/other"]);
    command(home, "store ls main").await.is(0, &["space\n"]);
    fs::remove_file(home.join("objects/space/a/b.txt")).unwrap();
    command(home, "store verify main/space/a/b.txt").await.is(1, &["missing: the store does not have it", "13 bytes"]);
    command(home, "store put - main/x-duracloud-admin/a --create-space").await.is(3, &["reserved"]);

    command(home, "catalogue check").await.is(0, &["no problems found"]);
    let backup = home.join("backup.db");
    command(home, &format!("catalogue backup {}", backup.display())).await.is(0, &["wrote "]);
    assert!(fs::read(&backup).unwrap().starts_with(b"SQLite format 3"));
    let again = format!("catalogue backup {}", backup.display());
    command(home, &again).await.is(3, &["backup.db exists; --replace replaces it"]);
    command(home, &format!("{again} --replace")).await.is(0, &["wrote "]);

    // A mistyped path makes no catalogue, and a link in place of a space leads nowhere.
    let config = fs::read_to_string(home.join("config.yml")).unwrap();
    fs::write(home.join("config.yml"), config.replace("catalogue.db", "cataloge.db")).unwrap();
    command(home, "catalogue check").await.is(4, &["cataloge.db: there is none; `catalogue migrate` creates it"]);
    assert!(!home.join("cataloge.db").exists());
    std::os::unix::fs::symlink("/etc", home.join("objects/link")).unwrap();
    command(home, "store ls main/link").await.is(1, &["a symbolic link is in its place"]);
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_go_through_pipes_and_what_is_wrong_is_one_line_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let file = home.join("config.yml");
    let config = file.to_str().unwrap();
    let arguments = ["store", "put", "-", "main/space//odd/../key ", "--create-space", "--config.file", config];
    let mut child = queuekeeper(home, &arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&vec![b'x'; 3_000_000]).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let got = run(home, &["store", "get", "main/space//odd/../key ", "--config.file", config]).await;
    assert_eq!((got.code, got.out.len()), (0, 3_000_000));

    command(home, "store ls gone").await.is(2, &["there is no store gone in ", "it has main, replica"]);
    command(home, "store ls a/../b").await.is(2, &["the space has an invalid name"]);
    command(home, "store get main").await.is(2, &["an item is named STORE/SPACE/KEY"]);
    let long = "k".repeat(1020);
    command(home, &format!("store put /dev/null replica/space/{long}")).await.is(2, &["at most 1024 bytes", "k…k"]);
    command(home, "store put /dev/null main/space/a --digest md5:12").await.is(2, &["md5 digests have 32 hexadecimal"]);
    s3.stop().await;
    let away = command(home, "store ls replica").await;
    away.is(1, &["store replica: no answer from http://127.0.0.1:", " yet (connection refused), trying again until "]);
    fs::write(home.join("keys"), "one line only\n").unwrap();
    command(home, "store ls main").await.is(2, &["config.yml, line 3: stores: replica: not a credentials file"]);
    fs::write(&file, format!("stores:\n  main: {{url: \"file://{}\"}}\n", home.join("objects").display())).unwrap();
    command(home, "store put /dev/null main/space/a")
        .await
        .is(2, &["names no catalogue, which is required to record changes"]);
    command(home, "catalogue check").await.is(2, &["has no catalogue"]);
    fs::write(&file, format!("stores:\n  main: {{url: \"file://{}\"}}\n", home.join("gone").display())).unwrap();
    command(home, "store ls main")
        .await
        .is(1, &["store main: ", "there is no such directory; create it, or mount its volume"]);
    fs::write(home.join("catalogue.db"), "no database at all, but more than some bytes of text").unwrap();
    fs::write(&file, "catalogue: {url: \"sqlite:catalogue.db\"}\n").unwrap();
    command(home, "catalogue check").await.is(1, &["catalogue.db: ", "restore it from a backup"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_the_configuration_tries_each_store_with_probe() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let file = home.join("config.yml");
    let config = file.to_str().unwrap();
    run(home, &["check-config", config]).await.is(0, &["stores: 2", "catalogue: yes"]);
    assert!(s3.requests().is_empty());
    let probed = run(home, &["check-config", config, "--probe"]).await;
    probed.is(
        0,
        &[
            "store main: keeps ",
            "sha512",
            "holds conditions",
            "store replica: keeps ",
            "catalogue.db: there is none yet",
        ],
    );
    assert_eq!(s3.keys("copies"), [""; 0]);
    assert!(!home.join("catalogue.db").exists());
    s3.stop().await;
    let failed = run(home, &["check-config", config, "--probe"]).await;
    failed.is(1, &["store main: keeps ", "store replica: ", "1 store or catalogue cannot be used"]);
    fs::write(home.join("catalogue.db"), "no database at all, but more than some bytes of text").unwrap();
    let failed = run(home, &["check-config", config, "--probe"]).await;
    failed.is(1, &["store main: keeps ", "catalogue.db: ", "restore it from a backup", "2 stores and catalogues"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_removes_the_bucket_that_it_made_and_a_name_that_no_bucket_has_is_wrong_usage() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let file = home.join("config.yml");
    let config = fs::read_to_string(&file).unwrap().replace("s3://copies/all", "s3://{space}-cold");
    fs::write(&file, config).unwrap();
    let probed = run(home, &["check-config", file.to_str().unwrap(), "--probe"]).await;
    probed.is(0, &["store replica: keeps "]);
    assert!(!probed.err.contains("remove it"), "{probed:?}");
    assert_eq!((s3.count("CreateBucket"), s3.count("DeleteBucket")), (1, 1));
    command(home, "store ls replica").await.is(0, &["replica has no spaces"]);
    command(home, "store put /dev/null replica/a_b/key --create-space").await.is(2, &["a_b-cold"]);
    command(home, "store put /dev/null replica/maps/key --create-space").await.is(0, &["replica/maps/key"]);
    let listed = command(home, "store ls replica -o json").await.json();
    assert_eq!(listed["spaces"], serde_json::json!(["maps"]));
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_was_changed_around_the_program_is_reported_and_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let content = home.join("content");
    fs::write(&content, "some content\n").unwrap();
    let put = format!("store put {} main/space/a --create-space", content.display());
    command(home, &put).await.is(0, &[]);
    command(home, "store cp main/space/a replica/space/a --create-space").await.is(0, &[]);
    // Of another date, and of another size.
    for changed in ["some c0ntent\n", "other content\n"] {
        fs::write(home.join("objects/space/a"), changed).unwrap();
        let verified = command(home, "store verify main/space/a -o json").await;
        verified.is(1, &["\"result\": \"changed\"", "main/space/a: changed: ", " in the catalogue"]);
        for to in ["replica/space/b", "main/space/b"] {
            let copied = command(home, &format!("store cp main/space/a {to}")).await;
            copied.is(1, &["main/space/a: changed: ", "in the catalogue"]);
        }
    }
    command(home, "store ls replica/space/b").await.is(0, &["no item matches"]);
    command(home, "store ls main/space/b").await.is(0, &["no item matches"]);
    // The same content again, under another date: it is what was recorded.
    fs::write(home.join("objects/space/a"), "some content\n").unwrap();
    command(home, "store verify main/space/a").await.is(0, &["proven"]);
    command(home, "store cp main/space/a main/space/b").await.is(0, &["main/space/b"]);
    // What others brought is known to none.
    fs::write(home.join("objects/space/brought"), "brought").unwrap();
    command(home, "store verify main/space/brought").await.is(3, &["neither the store nor the catalogue"]);
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_text_is_listed_reversibly() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    let space = home.join("objects/space");
    fs::create_dir(&space).unwrap();
    for name in [&b"=1,\xff"[..], b"\\xff", b"-a\n"] {
        fs::write(space.join(OsStr::from_bytes(name)), "").unwrap();
    }
    let listed = command(home, "store ls main/space -o json").await.json();
    let encoded: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["key_encoded"]).collect();
    assert_eq!(encoded, ["%2Da%0A", "%3D1%2C%FF", "%5Cxff"], "{listed}");
    let csv = command(home, "store ls main/space -o csv").await;
    csv.is(0, &["etag,key_encoded\n", ",%2Da%0A\n", ",%3D1%2C%FF\n", ",%5Cxff\n"]);
    command(home, "store ls main/space --limit 1").await.is(0, &["the first item; --all shows all of them"]);
    let missing = command(home, "store ls main/none -o json").await;
    missing.is(4, &["there is no such space"]);
    assert_eq!(missing.out, "");
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_breaks_off_does_not_look_whole() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    s3.plant("copies", (0..1500).map(|number| format!("all/space/{number:05}")), b"x");
    let why = "store replica: list space: access to s3://copies/all is denied";
    for (format, lines) in [("json", 1000), ("csv", 1001), ("table", 1001)] {
        let fault = Fault::new(Effect::Refuse(403, "AccessDenied")).on("ListObjectsV2").nth(2);
        s3.inject(fault);
        let listed = command(home, &format!("store ls replica/space --all -o {format}")).await;
        s3.clear_faults();
        // Beside it may be said that an answer was waited for.
        let errors = listed.err.lines().filter(|line| line.starts_with("error: "));
        assert_eq!((listed.code, errors.count()), (1, 1), "{}", listed.err);
        assert!(listed.err.contains(why), "{}", listed.err);
        match format {
            "json" => {
                let list: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
                assert_eq!(list["items"].as_array().unwrap().len(), lines);
                assert!(list["error"].as_str().unwrap().starts_with(why), "{}", list["error"]);
            }
            "csv" => {
                let (rows, last) = listed.out.trim_end().rsplit_once('\n').unwrap();
                assert_eq!((rows.lines().count(), last.starts_with(&format!("error: {why}"))), (lines, true), "{last}");
            }
            _ => assert_eq!(listed.out.lines().count(), lines),
        }
    }
    let listed = command(home, "store ls replica/space --all -o json").await.json();
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["error"]), (1500, &serde_json::Value::Null));
    s3.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_within_s3_that_was_interrupted_says_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let s3 = configured(home).await;
    command(home, "store put /dev/null replica/space/a --create-space").await.is(0, &[]);
    let stalled = s3.inject(Fault::new(Effect::Stall(Point::Commit, None)).on("CopyObject").key("all/space/b"));
    let config = home.join("config.yml");
    let arguments = ["store", "cp", "replica/space/a", "replica/space/b", "--config.file", config.to_str().unwrap()];
    let child = queuekeeper(home, &arguments).spawn().unwrap();
    stalled.reached(1).await;
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(5), "{err}");
    for part in
        ["it was interrupted, and http://", "there is no item yet; the next change of it, from ", " UTC on, finds out"]
    {
        assert!(err.contains(part), "{part}: {err}");
    }
    s3.clear_faults();
    s3.stop().await;
}
