//! Storms.
use queuekeeper::zookeeper::PrivateServer;
use queuekeeper::zookeeper::server::Options;

use super::harness::{Mirror, connect, create};

#[tokio::test]
async fn smoke() {
    let server = PrivateServer::start(Options::default()).await.unwrap();
    let root = connect(&server.connect_string()).await;
    create(&root, "/a", b"").await;
    let at = format!("{}/a", server.connect_string());
    let client = connect(&at).await;
    let mirror = Mirror::start(&at);
    mirror.is_synced().await;
    mirror.equals(&client).await;
    for path in ["/jobs", "/jobs/jid0000000001", "/jobs/jid0000000001/bid"] {
        create(&client, path, b"bid0000000001").await;
    }
    create(&client, "/jobs/jid0000000001/status", br#"{"status":"Pending","retry_count":0}"#).await;
    mirror.equals(&client).await;
    eprintln!("{:?}", mirror.steps());
    mirror.stop().await;
}
