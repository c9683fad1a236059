//! The services as the documentation starts them.

use std::fs;

use queuekeeper_testkit::documentation::block;
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::{connect, shared};
use zookeeper_client::{Acls, CreateMode};

use super::reader::Reader;

#[tokio::test(flavor = "multi_thread")]
async fn each_service_starts_by_its_command_of_the_documentation() {
    let server = shared().await.connect_string();
    let client = connect(&server).await;
    for chroot in ["/services", "/services/other"] {
        client.create(chroot, b"", &CreateMode::Persistent.with_acls(Acls::anyone_all())).await.unwrap();
    }
    let mut reader = Reader::new();
    for name in ["working", "objects", "profiles"] {
        fs::create_dir(reader.at(name)).unwrap();
    }
    fs::write(
        reader.at("config.yml"),
        format!(
            "stores: {{main: {{url: \"file://{}\"}}}}\ncatalogue: {{url: \"sqlite:c.db\"}}\n",
            reader.at("objects")
        ),
    )
    .unwrap();
    fs::write(reader.at("profiles/demo.yaml"), block("docs/ingest.md", "name: merritt_demo")).unwrap();
    for (name, chroot) in [
        ("zk1:2181,zk2:2181,zk3:2181/merritt", "/services"),
        ("zk1:2181,zk2:2181/merritt", "/services"),
        ("zk1:2181/merritt", "/services"),
        ("zk9:2181/merritt", "/services/other"),
    ] {
        reader.replace(name, format!("{server}{chroot}"));
    }
    reader.replace("/data/ingest", reader.at("working"));
    let web = reader.port("127.0.0.1:12181");
    for variable in ["QUEUEKEEPER_WEB_LISTEN_ADDRESS", "QUEUEKEEPER_INGEST_WEB_LISTEN_ADDRESS"] {
        reader.set(variable, &web);
    }

    let several = block("docs/operate.md", "queuekeeper serve --zookeeper prod=");
    let served =
        [block("README.md", "queuekeeper serve "), block("docs/operate.md", "queuekeeper serve --zookeeper zk1:")];
    assert_eq!(served[0], served[1]);
    let ingest = block("docs/ingest.md", "queuekeeper ingest ");
    for command in [served[0], ingest].into_iter().chain(several.lines()) {
        // The variables before a command are those of the program.
        let mut service =
            reader.start(command.replacen("QUEUEKEEPER_ZOOKEEPER=", "env QUEUEKEEPER_ZOOKEEPER=", 1).trim());
        service.ready(&web).await;
        service.end().await;
    }

    // With what the page on the daemons of Java adds: files of jobs at a port of their own.
    let added =
        block("docs/from-java.md", "queuekeeper ingest .. ").replacen("queuekeeper ingest ..", ingest.trim(), 1);
    let files = format!("127.0.0.1:{}", free_port());
    let added = added.replace(" :33121 ", &format!(" {files} ")).replace("10.0.0.0/8", "127.0.0.0/8");
    let mut service = reader.start(&added);
    service.ready(&web).await;
    let answer = reqwest::get(format!("http://{files}/ingestqueue/none")).await.unwrap();
    assert_eq!(answer.status(), 404);
    service.end().await;
}
