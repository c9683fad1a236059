//! The smallest dump, a long chroot, and the largest value.

use zookeeper_client::Client;

use queuekeeper_testkit::server::connect;

use super::refused::dump;
use super::world::{PERSISTENT, SEQUENTIAL, World};

#[tokio::test]
async fn a_dump_without_znodes_leaves_the_chroot_and_its_value() {
    let copy = World::new().await;
    copy.client.set_data("/", b"its own", None).await.unwrap();
    let loaded = copy.load(dump(&[]).as_bytes(), None, false).await.unwrap();
    assert_eq!((loaded.read.nodes, loaded.found), (0, 0));
    assert_eq!(copy.lasting().await.into_iter().collect::<Vec<_>>(), [("/".to_owned(), b"its own".to_vec())]);
}

/// Each operation has the chroot: a transaction of as many operations as usual would be more than a server takes.
#[tokio::test]
async fn a_load_below_a_long_chroot_makes_transactions_that_the_server_takes() {
    let (source, copy) = (World::new().await, World::below(&"far".repeat(3_000)).await);
    source.make(&[("/odd", b""), ("/jobs", b""), ("/jobs/jid0000000300", b"")]).await;
    let paths: Vec<_> = (0..300).map(|number| format!("/odd/{number}")).collect();
    for paths in paths.chunks(50) {
        let mut writer = source.client.new_multi_writer();
        for path in paths {
            writer.add_create(path, b"1", &PERSISTENT).unwrap();
        }
        writer.commit().await.unwrap();
    }
    copy.load(&source.dump(None).await, None, false).await.unwrap();
    assert_eq!(copy.lasting().await, source.lasting().await);
    let (_, next) = copy.client.create("/jobs/jid", b"", &SEQUENTIAL).await.unwrap();
    assert_eq!(next.to_string(), "0000000301");
}

/// Whether the server takes a value of so many bytes; where it does not, it closes the connection.
async fn is_taken(client: &Client, path: &str, bytes: usize) -> bool {
    client.create(path, &vec![b'x'; bytes], &PERSISTENT).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_value_that_the_server_takes_is_loaded_and_a_larger_one_is_refused_unsent() {
    let source = World::new().await;
    let (mut taken, mut refused) = (1_000_000, 1_100_000);
    while taken + 1 < refused {
        let bytes = usize::midpoint(taken, refused);
        let client = connect(&source.address).await;
        if is_taken(&client, "/large", bytes).await {
            client.delete("/large", None).await.unwrap();
            taken = bytes;
        } else {
            refused = bytes;
        }
    }
    for more in [0, 1] {
        let copy = World::new().await;
        let bytes = taken + source.address.len() - copy.address.len() + more;
        let line = format!(r#"{{"path":"/large","text":"{}"}}"#, "x".repeat(bytes));
        match copy.load(dump(&[r#"{"path":"/"}"#.to_owned(), line]).as_bytes(), None, false).await {
            Ok(_) => assert_eq!((more, copy.client.get_data("/large").await.unwrap().0.len()), (0, bytes)),
            Err(refused) => {
                let words = "the path /large, whose value takes a request of 1048576 bytes, above 1048575";
                assert!(more == 1 && refused.to_string().contains(words), "{more} more: {refused}");
            }
        }
    }
}
