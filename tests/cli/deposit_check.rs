//! `submit --check`: what is wrong with a deposit, before it is made.

use queuekeeper_testkit::origin::Origin;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Client, LONGEST, answer, batches, says};
use super::program::run;
use super::repository::Repository;

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_the_lines_that_are_wrong_and_the_urls_that_cannot_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let repository = Repository::start_beside_origins(&data);
    let origin = Origin::start().await;
    origin.serve("/a", "content");
    let manifest = |rows: &[String]| {
        let rows = rows.join("\n");
        let profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest";
        format!("#%checkm_0.7\n#%profile | {profile}\n{rows}\n#%eof\n")
    };
    let sound = format!("{} | | | 7 | | a", origin.url("/a"));
    let gone = format!("{} | | | 7 | | b", origin.url("/b?key=secret"));
    let wrong = format!("{} | md5 | 12 | 7 | | c", origin.url("/c"));
    let (file, text) = (directory.path().join("m.checkm"), data.display().to_string());
    let path = file.display().to_string();
    let check = async |profile: &str, more: &[&str]| {
        let arguments = ["submit", &path, "--check", "--data", &text, "--profile", profile];
        run(directory.path(), &[&arguments, more].concat()).await
    };

    std::fs::write(&file, manifest(std::slice::from_ref(&sound))).unwrap();
    let found = check("internal", &["-o", "json"]).await.json();
    assert_eq!((&found["type"], &found["rows"]), (&"object-manifest".into(), &1.into()), "{found}");
    assert_eq!((&found["urls_requested"], &found["problems"]), (&1.into(), &json!([])), "{found}");
    // The daemons would not go to an address of this machine for another profile, and it is not requested.
    assert_ne!(origin.take_requests(), []);
    check("default", &[]).await.is(3, &["line 3: cannot fetch", "1 problem; nothing was deposited"]);
    assert_eq!(origin.take_requests(), []);
    let profiles = data.join("profiles").display().to_string();
    let without_data = ["submit", &path, "--check", "--profile", "default"];
    run(directory.path(), &[&without_data[..], &["--profiles", &profiles]].concat()).await.is(3, &["1 problem"]);
    run(directory.path(), &without_data).await.is(2, &["--check requires the directory of the profiles, or --data"]);
    check("none", &[]).await.is(3, &["there is no valid profile \"none\""]);
    check("internal", &["--digest", "md5:00000000000000000000000000000000"]).await.is(3, &["expected the md5 digest"]);

    // One of a profile that is not known is no file, unless that is said; nor are its warnings kept back.
    let half = format!("{} | md5 | | 7 | | a", origin.url("/a"));
    std::fs::write(&file, manifest(&[half])).unwrap();
    check("internal", &[]).await.is(0, &["no reason to refuse it was found\nwarning: line 3: "]);
    let unknown = manifest(std::slice::from_ref(&sound)).replace("http://uc3", "https://uc3");
    std::fs::write(&file, &unknown).unwrap();
    let why = "its profile \"https://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\" is not one for deposits; \
               expected one of http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest, ";
    check("internal", &[]).await.is(3, &[why]);
    check("internal", &["--type", "file"]).await.is(0, &["type: file"]);
    let by_server = ["submit", &path, "--server", &repository.address, "--profile", "internal"];
    run(directory.path(), &by_server).await.is(3, &[why]);
    let client = Client { address: repository.address.clone(), token: None };
    let sent = client.form("/submit", Some(("m.checkm", &unknown)), &[("profile", "internal")]).await;
    assert_eq!(sent.status(), 400);
    assert!(sent.text().await.unwrap().contains("set its type to file"));
    assert_eq!(batches(&data.join("working")), [""; 0]);

    let bad = manifest(&[sound, wrong, gone]);
    std::fs::write(&file, &bad).unwrap();
    let found = check("internal", &[]).await;
    found.is(3, &["line 4, column ", "line 5: cannot fetch", "the origin answers 404", "2 problems"]);
    assert!(!found.out.contains("secret") && !found.err.contains("secret"), "{found:?}");
    // A manifest of which each row is wrong is not listed in full.
    let many: Vec<_> = (0..150).map(|at| format!("{} | | | 7 | | {at}", origin.url("/none"))).collect();
    std::fs::write(&file, manifest(&many)).unwrap();
    let found = check("internal", &["-o", "json"]).await;
    found.is(3, &["at least 100 problems"]);
    let listed: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((listed["problems"].as_array().unwrap().len(), &listed["has_more"]), (100, &true.into()));

    // A host that does not answer is one problem, however many of its URLs there are.
    let dead: Vec<_> = (0..150).map(|at| format!("http://127.0.0.1:1/{at} | | | 7 | | {at}")).collect();
    std::fs::write(&file, manifest(&dead)).unwrap();
    let same = "; the same holds for 149 other URLs of 127.0.0.1:1";
    check("internal", &[]).await.is(3, &["line 3: cannot fetch http://127.0.0.1:1/0: ", same, "error: 1 problem"]);
    // A server sees nothing of a file: its lines are read before.
    let by_server = ["submit", &path, "--check", "--server", &repository.address, "--profile", "internal"];
    run(directory.path(), &by_server).await.is(0, &["the server would accept it\n"]);
    std::fs::write(&file, manifest(&["no url".to_owned()])).unwrap();
    run(directory.path(), &by_server).await.is(3, &["line 3, column 1: ", "1 problem"]);

    // A dry run reads the manifest at a URL in the same way.
    origin.serve("/m", bad);
    let deposit = json!({"profile": "internal", "url": origin.url("/m"), "type": "object-manifest"});
    let dry = async |body: &Value| {
        let request = client.request(Method::POST, "/api/v1/deposits?dry_run=true");
        answer(request.header("content-type", "application/json").body(body.to_string()).send().await.unwrap()).await
    };
    // A dry run has some seconds, in which a busy machine may not come to the URLs, or to an end.
    let in_time = async |body: &Value| {
        eventually_some(LONGEST, "it ends in time", async || Some(dry(body).await).filter(|(status, _)| *status != 503))
            .await
    };
    eventually(LONGEST, "the URL is requested in time", async || {
        let (status, problem) = in_time(&deposit).await;
        assert!(status == 400 && says(&problem, "line 4, column "), "{problem}");
        says(&problem, "line 5: cannot")
    })
    .await;
    let mut file = deposit;
    file["type"] = "file".into();
    assert_eq!(in_time(&file).await.0, 200);
    // One that ends before all URLs were requested says so: nothing answers at these.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/a | | | 7 | | ", silent.local_addr().unwrap());
    let rows: Vec<_> = (0..20).map(|at| format!("{silent}{at}")).collect();
    origin.serve("/slow", manifest(&rows));
    file = json!({"profile": "internal", "url": origin.url("/slow"), "type": "object-manifest"});
    let (status, answer) = in_time(&file).await;
    assert_eq!((status, &answer["state"], &answer["urls_not_requested"]), (200, &"accepted".into(), &20.into()));
    assert_eq!(batches(&data.join("working")), [""; 0]);
    let deposits = client.get("/api/v1/deposits").await.1["items"].clone();
    assert!(deposits.as_array().unwrap().iter().all(|one| one["state"] == "refused"), "{deposits}");
    assert_eq!(client.get("/api/v1/batches").await.1["items"], json!([]));
}
