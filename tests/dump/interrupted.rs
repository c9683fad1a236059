use futures::{StreamExt as _, stream};
use queuekeeper_queue::load::LoadError;

use super::world::{PERSISTENT, World, odd, with_checksum};

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_load_keeps_the_queue_paused_and_can_be_gone_on_with() {
    let source = odd().await;
    let (wanted, dump) = (source.lasting().await, source.dump(None).await);
    let first_line = dump.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for part in [0, 1, 2, 3, 4] {
        let cut = first_line + (dump.len() - first_line - 1) * part / 4;
        let copy = World::new().await;
        let stopped = copy.load(&dump, Some(cut), false).await.unwrap_err();
        assert!(matches!(stopped, LoadError::Stopped { .. }), "{stopped}");
        assert!(stopped.to_string().contains("the cable was pulled") && stopped.to_string().contains("--resume"));
        for lock in ["ingest", "accessSmall", "accessLarge"] {
            let (note, _) = copy.client.get_data(&format!("/locks/queue/{lock}")).await.unwrap();
            assert!(String::from_utf8(note).unwrap().contains("a dump is being loaded"), "{lock}");
        }
        assert!(matches!(copy.load(&dump, None, false).await, Err(LoadError::Interrupted(_))));
        let other = String::from_utf8(dump[..first_line].to_vec()).unwrap().replace("0123456789abcdef", "another");
        let other = copy.load(other.as_bytes(), None, true).await;
        assert!(matches!(other, Err(LoadError::AnotherDump { .. })), "{other:?}");
        // One that was edited has the same id.
        let text = std::str::from_utf8(&dump).unwrap();
        let (lines, _) = text.split_once("{\"sha256\"").unwrap();
        let edited = with_checksum(lines.replace("no such outcome", "no such result"));
        assert_ne!(edited.as_bytes(), dump);
        let other = copy.load(edited.as_bytes(), None, true).await.unwrap_err();
        assert!(matches!(other, LoadError::AnotherDump { .. }), "{other}");
        assert!(other.to_string().contains("(0123456789abcdef, SHA-256 "), "{other}");

        let there = copy.loaded().await;
        assert!(part < 4 || there > 0);
        let (loaded, reported) = copy.load_reported(&dump, None, true).await.unwrap();
        assert_eq!((loaded.found, reported), (there, copy.loaded().await));
        assert_eq!(copy.lasting().await, wanted);
        assert!(matches!(copy.load(&dump, None, true).await, Err(LoadError::NothingToResume)));
    }
}

#[tokio::test]
async fn what_somebody_else_changes_meanwhile_is_not_overwritten() {
    let source = odd().await;
    let dump = source.dump(None).await;
    let copy = World::new().await;
    copy.load(&dump, Some(dump.len() - 1), false).await.unwrap_err();
    let path = "/jobs/jid0000000041/bid";
    copy.client.set_data(path, b"bid0000000099", None).await.unwrap();
    let stopped = copy.load(&dump, None, true).await.unwrap_err().to_string();
    assert!(stopped.contains(path) && stopped.contains("by another client"), "{stopped}");
    assert_eq!(copy.client.get_data(path).await.unwrap().0, b"bid0000000099");
}

/// A znode of nearly the largest size is created by a request of its own. What is there then may have been created by the
/// same request, whose answer was lost.
#[tokio::test]
async fn a_large_znode_that_came_to_be_meanwhile_counts_as_loaded_only_with_the_value_of_the_dump() {
    let source = World::new().await;
    let large = vec![b'x'; 1_040_000];
    source.make(&[("/large", &large)]).await;
    let dump = source.dump(None).await;
    let (first, rest) = dump.split_at(dump.iter().position(|byte| *byte == b'\n').unwrap() + 1);
    for value in [&large[..], &large[1..]] {
        let copy = World::new().await;
        // The chroot was seen to be empty before the second line is read.
        let blocks = stream::iter([first, rest]).enumerate().then(async |(number, block)| {
            if number == 1 {
                copy.client.create("/large", value, &PERSISTENT).await.unwrap();
            }
            Ok(block.to_vec())
        });
        match copy.load_blocks(&dump, blocks, false).await {
            Ok((loaded, nodes, _)) => {
                assert_eq!((value.len(), loaded.found, nodes), (large.len(), 0, 1));
                assert_eq!(copy.lasting().await, source.lasting().await);
            }
            Err(stopped) => {
                assert!(value.len() < large.len(), "{stopped}");
                assert!(stopped.to_string().contains("/large was created or changed by another client"), "{stopped}");
                assert_eq!(copy.client.get_data("/large").await.unwrap().0, value);
            }
        }
    }
}
