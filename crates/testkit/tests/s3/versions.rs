use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};

use super::common::{BUCKET, code, get, put, refusal, start};

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_kept_where_a_bucket_keeps_them() {
    let (server, client) = start().await;
    put(&client, "a", b"0").await;
    let status = BucketVersioningStatus::Enabled;
    let configuration = VersioningConfiguration::builder().status(status.clone()).build();
    client.put_bucket_versioning().bucket(BUCKET).versioning_configuration(configuration).send().await.unwrap();
    let versioning = client.get_bucket_versioning().bucket(BUCKET).send().await.unwrap();
    assert_eq!(versioning.status(), Some(&status));
    put(&client, "a", b"1").await;
    put(&client, "a", b"2").await;
    let deleted = client.delete_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!(deleted.delete_marker(), Some(true));
    let read = client.get_object().bucket(BUCKET).key("a").send().await;
    assert_eq!(refusal(read), code(404, "NoSuchKey"));
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());

    let mut found = Vec::new();
    let (mut key, mut version) = (None, None);
    loop {
        let list = client.list_object_versions().bucket(BUCKET).max_keys(1);
        let page = list.set_key_marker(key).set_version_id_marker(version).send().await.unwrap();
        found.extend(page.delete_markers().iter().map(|one| (one.version_id().unwrap().to_owned(), one.is_latest())));
        found.extend(page.versions().iter().map(|one| (one.version_id().unwrap().to_owned(), one.is_latest())));
        if page.is_truncated() != Some(true) {
            break;
        }
        (key, version) = (page.next_key_marker, page.next_version_id_marker);
    }
    assert_eq!(
        found.iter().map(|(_, is_latest)| *is_latest == Some(true)).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert_eq!(found[3].0, "null");
    for ((version, _), content) in found[1..].iter().zip([b"2", b"1", b"0"]) {
        let read = client.get_object().bucket(BUCKET).key("a").version_id(version).send().await.unwrap();
        assert_eq!(read.body.collect().await.unwrap().to_vec(), content);
    }
    client.delete_object().bucket(BUCKET).key("a").version_id(&found[0].0).send().await.unwrap();
    assert_eq!(get(&client, "a").await, b"2");
    let bucket = client.delete_bucket().bucket(BUCKET).send().await;
    assert_eq!(refusal(bucket), code(409, "BucketNotEmpty"));
}
