//! Deposits that became several batches, as their depositor sees them.

use jiff::Timestamp;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_ingest::parts::uuid_of_part;
use queuekeeper_ingest::spec::id_of;
use queuekeeper_queue::JobChange;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

use super::program::run;
use super::withdrawals::{Caller, LONGEST, Server, says};

/// Makes the batch of a second part of a deposit, as the batch daemon does.
async fn second_part(server: &Server, catalogue: &Catalogue, deposit: &str) -> String {
    let first: Uuid = deposit.strip_prefix("bid-").unwrap().parse().unwrap();
    let (uuid, digest) = (uuid_of_part(first, 2), "0".repeat(64));
    catalogue.record_part(first, 2, uuid, 2).await.unwrap();
    let submission = json!({
        "batchID": id_of(uuid), "profile": "demo", "type": "batch-manifest", "filename": "a.txt", "partOf": deposit,
        "part": "2", "parts": "2", "partRows": "2", "manifestSHA256": digest,
    });
    server.world.queue.create_batch(submission.to_string().as_bytes(), Timestamp::now()).await.unwrap();
    id_of(uuid)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_of_several_batches_is_shown_as_one_and_withdrawn_with_all_of_them_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let made = [
        run(home, &["token", "lab", "--role", "depositor"]).await,
        run(home, &["token", "ops", "--role", "operator"]).await,
        // Of whom the file of the server speaks.
        run(home, &["token", "other", "--role", "depositor"]).await,
    ];
    let lines = made.each_ref().map(|made| made.err.lines().last().unwrap()).join("\n") + "\n";
    let server = Server::start(home, &lines, &home.join("audit.jsonl").display().to_string()).await;
    let [lab, ops, _] = made.map(|made| Caller { server: &server, token: made.out.trim().to_owned() });
    let catalogue = Catalogue::open(&format!("sqlite:{}", home.join("catalogue.db").display())).await.unwrap();
    let queue = &server.world.queue;
    let page = async |caller: &Caller<'_>, path: &str| caller.get(path).await.as_str().unwrap().to_owned();

    let id = lab.deposit().await;
    let (first, _) = server.expand(2).await;
    let part = second_part(&server, &catalogue, &id).await;
    let (second, jobs) = server.expand(3).await;
    let is_seen = async || lab.view(&id).await["processing"] == 5;
    eventually(LONGEST, "the jobs of both are seen", is_seen).await;
    let view = lab.view(&id).await;
    assert_eq!((&view["state"], &view["outcome"], &view["part_of"]), (&"reporting".into(), &Value::Null, &Value::Null));
    let parts: Vec<_> = view["parts"].as_array().unwrap().iter().map(|part| (&part["id"], &part["batch"])).collect();
    let batches = [first, second].map(|batch| Value::from(batch.to_string()));
    assert_eq!(parts, [(&id.clone().into(), &batches[0]), (&part.clone().into(), &batches[1])]);
    assert_eq!(lab.view(&part).await["part_of"], id);
    let listed = lab.get("/api/v1/deposits").await;
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["items"][0]["processing"]), (1, &5.into()));
    let shown = page(&lab, &format!("/submit/{id}")).await;
    assert!(shown.contains("too many rows for one batch") && shown.contains(&format!("submit/{part}\"")), "{shown}");
    assert!(page(&lab, &format!("/submit/{part}")).await.contains(&format!("of <a href=\"../submit/{id}\"")));
    let shown = page(&ops, &format!("/batches/{first}")).await;
    assert!(shown.contains(&format!("part 2, <a href=\"../batches/{second}\"")), "{shown}");
    let shown = page(&ops, &format!("/batches/{second}")).await;
    assert!(
        shown.contains("It is part 2 of 2 of a deposit that has too many rows")
            && shown.contains(&format!("batches/{first}\"")),
        "{shown}"
    );
    // By the id of the deposit, all of its batches are found.
    assert_eq!(ops.get(&format!("/api/v1/batches?text={id}")).await["total"], 2);

    // All of them, or none.
    says(&lab.withdraw(&part, None).await, 409, &format!("part 2 of {id}"));
    queue.change_job(jobs[0], &JobChange::success(), Timestamp::now()).await.unwrap();
    says(&lab.withdraw(&id, None).await, 409, &format!("its job {} is in Estimating", jobs[0]));
    for batch in [first, second] {
        assert_eq!(queue.load_batch(batch).await.unwrap().state(), Some(BatchState::Reporting));
    }
    let id = lab.deposit().await;
    let (first, _) = server.expand(2).await;
    let part = second_part(&server, &catalogue, &id).await;
    let (second, _) = server.expand(3).await;
    let (status, view) = lab.withdraw(&id, None).await;
    assert_eq!((status, &view["state"]), (200, &"withdrawn".into()), "{view}");
    for batch in [first, second] {
        assert_eq!(queue.load_batch(batch).await.unwrap().state(), Some(BatchState::Deleted));
    }
    let is_seen = async || lab.view(&id).await["outcome"] == "part 1: withdrawn; part 2: withdrawn";
    eventually(LONGEST, "both are", is_seen).await;
    assert_eq!((lab.view(&part).await["state"].clone(), lab.withdraw(&id, None).await.0), ("withdrawn".into(), 200));
}
