use queuekeeper_queue::dump::Redaction;
use serde_json::Value;

use super::world::{World, queuekeeper};

/// Stands in every place where something could tell of people or content, in a spelling that survives every path.
const SECRET: &str = "geheim";

async fn telling() -> World {
    let world = World::new().await;
    let ark = format!("ark:/99999/{SECRET}");
    let text = |text: &str| text.replace("SECRET", SECRET);
    let configuration = text(
        r#"{"batchID":"bid-SECRET","jobID":"jid-SECRET","profile":"SECRET_content","type":"SECRET","submitter":"SECRET/User SECRET","submissionDate":"SECRET Mar 02 10:15:40 PST 2026","filename":"SECRET.zip","title":"SECRET","creator":"SECRET","objectID":"ark:/99999/SECRET","localID":"SECRET;b SECRET","update":"SECRET","SECRET":["SECRET",{"SECRET":"SECRET"},7],"retry_count":"SECRET"}"#,
    );
    let status = text(
        r#"{"status":"SECRET","last_successful_status":"SECRET","last_modified":"SECRET","retry_count":"SECRET","message":"no route to SECRET"}"#,
    );
    let token = text(r#"{"token":"SECRET","url":"https://SECRET/x","status":"SECRET","cloud-content-byte":"SECRET"}"#);
    let pairs = [
        ("/", SECRET.to_owned()),
        ("/access", SECRET.to_owned()),
        ("/access/small", String::new()),
        ("/access/small/qid0000000001", SECRET.to_owned()),
        ("/access/small/qid0000000001/token", token),
        ("/access/small/qid0000000001/status", status.clone()),
        ("/access/small/SECRET", SECRET.to_owned()),
        ("/batch-uuids", String::new()),
        ("/batch-uuids/bid-SECRET", SECRET.to_owned()),
        ("/batches", String::new()),
        ("/batches/bid0000000001", SECRET.to_owned()),
        ("/batches/bid0000000001/submission", configuration.clone()),
        ("/batches/bid0000000001/status-report", text(r#"{"failed_jobs":["SECRET"]}"#)),
        ("/batches/bid0000000001/status", text(r#"{"status":"Failed","message":"SECRET"#)),
        ("/batches/bid0000000001/states", SECRET.to_owned()),
        ("/batches/bid0000000001/states/batch-SECRET", SECRET.to_owned()),
        ("/jobs", String::new()),
        ("/jobs/jid0000000001", SECRET.to_owned()),
        ("/jobs/jid0000000001/bid", SECRET.to_owned()),
        ("/jobs/jid0000000001/configuration", configuration),
        ("/jobs/jid0000000001/status", status),
        ("/jobs/jid0000000001/priority", SECRET.to_owned()),
        ("/jobs/jid0000000001/space_needed", SECRET.to_owned()),
        ("/jobs/jid0000000001/identifiers", format!(r#"{{"primary_id":"{ark}","local_id":["{SECRET}"]}}"#)),
        ("/jobs/jid0000000001/identifier", format!(r#"["{SECRET}"]"#)),
        ("/jobs/jid0000000001/metadata", text(r#"{"erc_who":"SECRET","erc_what":"SECRET","erc_when":"SECRET"}"#)),
        ("/jobs/jid0000000001/store", text(r#"{"manifest_url":"SECRET","mode":"add/9501/ark:/99999/SECRET"}"#)),
        ("/jobs/jid0000000001/inventory", text(r#""SECRET""#)),
        ("/jobs/jid0000000001/SECRET", SECRET.to_owned()),
        ("/jobs/states", String::new()),
        ("/jobs/states/SECRET", SECRET.to_owned()),
        ("/jobs/states/pending", String::new()),
        ("/jobs/states/pending/SECRET-jid0000000001", SECRET.to_owned()),
        ("/jobs/states/pending/05-jid0000000001", SECRET.to_owned()),
        ("/locks", String::new()),
        ("/locks/collections", String::new()),
        ("/locks/collections/SECRET_content", text(r#"{"who":"SECRET","why":"SECRET","since":"SECRET"}"#)),
        ("/locks/localid", String::new()),
        ("/locks/localid/SECRET_owner", SECRET.to_owned()),
        ("/locks/queue", String::new()),
        ("/locks/queue/ingest", text(r#"{"who":"SECRET","why":"SECRET","SECRET":1}"#)),
        ("/locks/queue/localid", String::new()),
        ("/locks/queue/localid/SECRET", String::new()),
        ("/locks/storage", String::new()),
        ("/locks/storage/ark_99999_SECRET", SECRET.to_owned()),
        ("/queuekeeper", String::new()),
        ("/queuekeeper/expansions", String::new()),
        ("/queuekeeper/expansions/bid0000000001", text(r#"{"next":1,"digest":"SECRET","last":null}"#)),
        ("/SECRET", SECRET.to_owned()),
        ("/SECRET/SECRET", text(r#"{"SECRET":"SECRET"}"#)),
    ];
    let pairs: Vec<_> = pairs.iter().map(|(path, data)| (text(path), data)).collect();
    let nodes: Vec<_> = pairs.iter().skip(1).map(|(path, data)| (path.as_str(), data.as_bytes())).collect();
    world.client.set_data("/", SECRET.as_bytes(), None).await.expect("the root can be written");
    world.make(&nodes).await;
    world
}

#[tokio::test]
async fn a_redacted_dump_shows_nothing_of_people_or_content_and_can_be_loaded() {
    let world = telling().await;
    let nodes = world.lasting().await;
    assert!(nodes.values().filter(|data| String::from_utf8_lossy(data).contains(SECRET)).count() > 30);
    let output = queuekeeper(&["dump", "--redact", "--zookeeper", &world.address]).await;
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(encoded) = line.get("base64") {
            panic!("all of it was text: {encoded}");
        }
    }
    assert!(!text.to_lowercase().contains(SECRET), "{text}");

    let shown = |text: &str, path: &str| -> Value {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let line = lines.into_iter().find(|line| line.get("path").is_some_and(|found| found == path)).unwrap();
        serde_json::from_str(line["text"].as_str().unwrap()).unwrap()
    };
    let identifiers = shown(&text, "/jobs/jid0000000001/identifiers");
    let ark = identifiers["primary_id"].as_str().unwrap();
    let configuration = shown(&text, "/jobs/jid0000000001/configuration");
    assert_eq!(configuration["objectID"], ark);
    let collection = configuration["profile"].as_str().unwrap();
    let uuid = configuration["batchID"].as_str().unwrap();
    for path in
        [format!("/locks/storage/{ark}"), format!("/locks/collections/{collection}"), format!("/batch-uuids/{uuid}")]
    {
        assert!(text.contains(&format!(r#"{{"path":"{path}","#)), "{path} is not in {text}");
    }
    assert_eq!(shown(&text, "/jobs/jid0000000001/store")["mode"], format!("add/9501/{ark}"));

    let again = String::from_utf8(world.dump(Some(Redaction::new(&[1; 32]))).await).unwrap();
    assert_ne!(shown(&again, "/jobs/jid0000000001/identifiers")["primary_id"], ark, "pseudonyms are of one dump");
    let copy = World::new().await;
    copy.load(&output.stdout, None, false).await.unwrap();
    assert_eq!(copy.lasting().await.len(), nodes.len());
}
