use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use queuekeeper_queue::dump::line::compare;
use queuekeeper_testkit::server::{config, connect};
use queuekeeper_testkit::tree::read_tree;
use serde_json::{Value, json};

use queuekeeper_zookeeper::{Auth, Config};

use super::world::{EXPANSION, SEQUENTIAL, World, odd, program, queuekeeper};

fn reported(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dumped_and_loaded_is_the_same_tree_and_its_numbers_go_on() {
    let source = odd().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("queue.jsonl");
    let file = file.to_str().unwrap();
    let dumped = queuekeeper(&["dump", "--zookeeper", &source.address, "--output", file]).await;
    assert!(dumped.status.success() && dumped.stdout.is_empty(), "{}", reported(&dumped));
    assert!(reported(&dumped).contains("2 jobs, 1 batch, 1 access request"), "{}", reported(&dumped));
    assert!(
        reported(&dumped).contains("locks of sessions, which are marked and will not be loaded: 2 znodes"),
        "{}",
        reported(&dumped)
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");

    // The chroot is made, and a file that stands in a pipe is the same.
    let (_, address) = World::nowhere().await;
    let loaded = queuekeeper(&["load", "--zookeeper", &address, file]).await;
    assert!(loaded.status.success(), "{}", reported(&loaded));
    for part in ["created the chroot", "not restored: 2 locks of sessions; times", "the next number in /jobs is 12345"]
    {
        assert!(reported(&loaded).contains(part), "{part} is not in {}", reported(&loaded));
    }
    let copy = World { client: connect(&address).await, address };
    assert_eq!(copy.lasting().await, source.lasting().await);
    for (folder, prefix, next) in
        [("/jobs", "jid", 12345), ("/batches", "bid", 4), ("/access/small", "qid", 8), ("/access/large", "qid", 5)]
    {
        let (_, number) = copy.client.create(&format!("{folder}/{prefix}"), b"", &SEQUENTIAL).await.unwrap();
        assert_eq!(number.to_string(), format!("{next:010}"), "{folder}");
        copy.client.delete(&format!("{folder}/{prefix}{next:010}"), None).await.unwrap();
    }

    // Of our own znodes, how far the jobs of batches are created, and nothing else.
    let own = read_tree(&copy.client, "/queuekeeper", &[]).await;
    let own: Vec<_> = own.iter().map(|(path, (data, _))| (path.as_str(), String::from_utf8_lossy(data))).collect();
    let note: Value = serde_json::from_slice(EXPANSION).unwrap();
    assert_eq!(own.len(), 3, "{own:?}");
    assert_eq!(serde_json::from_str::<Value>(&own[2].1).unwrap(), note);
    assert_eq!(own[2].0, "/queuekeeper/expansions/bid0000000003");

    let lines = |dump: &[u8]| -> Vec<Value> {
        dump.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    };
    let first = lines(&std::fs::read(file).unwrap());
    assert_eq!(first[0]["expansions"], json!({"bid0000000003": note}));
    let paths: Vec<_> = first.iter().filter_map(|line| line.get("path")?.as_str()).collect();
    assert!(paths.is_sorted_by(|one, other| compare(one, other).is_lt()), "{paths:?}");
    assert!(!paths.iter().any(|path| path.starts_with("/queuekeeper") || path.starts_with("/zookeeper")));
    let timeless = |lines: Vec<Value>| -> Vec<(Value, Value, Value)> {
        let nodes = lines.into_iter().filter(|line| line.get("path").is_some() && line.get("ephemeral").is_none());
        nodes.map(|mut line| (line["path"].take(), line["text"].take(), line["base64"].take())).collect()
    };
    let again = queuekeeper(&["dump", "--zookeeper", &copy.address]).await;
    assert_eq!(timeless(lines(&again.stdout)), timeless(first));
}

#[tokio::test]
async fn a_queue_that_is_empty_or_has_no_locks_is_loaded_as_it_is() {
    for nodes in [&[][..], &[("/jobs", &b""[..])], &[("/locks", b"x"), ("/locks/queue", b"")]] {
        let (source, copy) = (World::new().await, World::new().await);
        source.make(nodes).await;
        let (loaded, reported) = copy.load_reported(&source.dump(None).await, None, false).await.unwrap();
        assert_eq!((loaded.found, reported), (0, copy.loaded().await));
        assert_eq!(usize::try_from(loaded.read.nodes).unwrap(), 1 + nodes.len());
        assert_eq!(copy.lasting().await, source.lasting().await);
    }
}

#[tokio::test]
async fn a_batch_whose_jobs_may_not_all_be_created_yet_is_noted_for_its_daemon() {
    let batches = [(7, "Processing", true), (8, "Reporting", true), (9, "Pending", false)];
    let (source, copy) = (World::new().await, World::new().await);
    source.make(&[("/batches", b"")]).await;
    for (number, state, is_acquired) in batches {
        let (batch, status) = (format!("/batches/bid{number:010}"), format!(r#"{{"status":"{state}"}}"#));
        source.make(&[(&batch, b""), (&format!("{batch}/status"), status.as_bytes())]).await;
        if is_acquired {
            source.make(&[(&format!("{batch}/states"), b"")]).await;
        }
    }
    let (_, reported) = copy.load_reported(&source.dump(None).await, None, false).await.unwrap();
    assert_eq!(reported, copy.loaded().await);
    assert_eq!(copy.client.list_children("/queuekeeper/expansions").await.unwrap(), ["bid0000000007"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_gives_its_znodes_the_acl_that_it_was_given() {
    let (source, (_, address)) = (odd().await, World::nowhere().await);
    let directory = tempfile::tempdir().unwrap();
    let [file, auth] = ["queue.jsonl", "auth"].map(|name| directory.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(&file, source.dump(None).await).unwrap();
    std::fs::write(&auth, "digest:me:secret\n").unwrap();
    // One that is so long that as many numbers are used up at once as with a short one would be too many.
    let readers = (0..30).map(|number| format!(",digest:{number:060}:mlGHSBQBSjb7Mr5DUmpZVcEd00U=:r"));
    let acl = format!("auth::cdrwa{}", readers.collect::<String>());
    let arguments = ["load", "--zookeeper", &address, "--zookeeper.auth-file", &auth, "--zookeeper.acl", &acl, &file];
    let loaded = queuekeeper(&arguments).await;
    assert!(loaded.status.success(), "{}", reported(&loaded));
    assert!(reported(&loaded).contains("ACLs (new znodes have that of --zookeeper.acl)"), "{}", reported(&loaded));
    let stranger = connect(&address).await;
    assert_eq!(stranger.get_data("/jobs").await.unwrap_err(), zookeeper_client::Error::NoAuth);
    let auth = Auth::read_file(auth.as_ref()).unwrap();
    let client = Config { auth, ..config(&address) }.connect().await.unwrap();
    let copy = World { client, address };
    assert_eq!(copy.lasting().await, source.lasting().await);
    for path in copy.lasting().await.keys() {
        let (acl, _) = copy.client.get_acl(path).await.unwrap();
        let who: Vec<_> = acl.iter().map(|acl| (acl.scheme(), acl.permission().to_string())).collect();
        assert!(acl.len() == 31 && who[0] == ("digest", "ALL".to_owned()), "{path}: {who:?}");
        assert!(who[1..].iter().all(|who| *who == ("digest", "READ".to_owned())), "{path}: {who:?}");
    }
}

#[tokio::test]
async fn a_reader_that_has_read_enough_of_a_dump_is_no_failure() {
    let world = odd().await;
    for output in [&[][..], &["--output", "/dev/stdout"]] {
        let arguments = [&["dump", "--zookeeper", &world.address], output].concat();
        let (reader, writer) = std::io::pipe().unwrap();
        let child = program(&arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(100, reader).read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"queuekeeper_dump\""), "{line}");
        let ended = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
        assert!(ended.status.success() && ended.stderr.is_empty(), "{:?}: {}", ended.status, reported(&ended));
    }
}
