use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::MetadataDirective;

use super::common::{BUCKET, code, get, put, refusal, start};

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_many_writers_finds_the_key_absent() {
    let (server, client) = start().await;
    let writers = (0..16).map(|_| {
        let put = client.put_object().bucket(BUCKET).key("a").if_none_match("*").body(ByteStream::from_static(b"x"));
        tokio::spawn(put.send())
    });
    let writers: Vec<_> = writers.collect();
    let mut written = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => written += 1,
            refused => assert_eq!(refusal(refused), code(412, "PreconditionFailed")),
        }
    }
    assert_eq!((written, server.count("PutObject")), (1, 16));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_holds_to_the_entity_tag_that_it_names() {
    let (_server, client) = start().await;
    let put_if =
        |tag: &str| client.put_object().bucket(BUCKET).key("a").if_match(tag).body(ByteStream::from_static(b"2"));
    assert_eq!(refusal(put_if("\"x\"").send().await), code(404, "NoSuchKey"));
    let etag = put(&client, "a", b"1").await;
    assert_eq!(refusal(put_if("\"x\"").send().await), code(412, "PreconditionFailed"));
    assert_eq!(get(&client, "a").await, b"1");
    put_if(&etag).send().await.unwrap();
    assert_eq!(refusal(put_if(&etag).send().await), code(412, "PreconditionFailed"));
    assert_eq!(get(&client, "a").await, b"2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_holds_to_the_entity_tag_that_it_names() {
    let (server, client) = start().await;
    let etag = put(&client, "a", b"1").await;
    let delete = |tag: &str| client.delete_object().bucket(BUCKET).key("a").if_match(tag).send();
    assert_eq!(refusal(delete("\"x\"").await), code(412, "PreconditionFailed"));
    assert_eq!(server.keys(BUCKET), ["a"]);
    delete(&etag).await.unwrap();
    assert_eq!(refusal(delete(&etag).await), code(412, "PreconditionFailed"));
    client.delete_object().bucket(BUCKET).key("a").send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_holds_to_its_conditions() {
    let (_server, client) = start().await;
    let etag = put(&client, "a", b"0123456789").await;
    let get = || client.get_object().bucket(BUCKET).key("a");
    assert_eq!(refusal(get().if_match("\"x\"").send().await), code(412, "PreconditionFailed"));
    assert_eq!(refusal(get().if_none_match(&etag).send().await).0, 304);
    let head = client.head_object().bucket(BUCKET).key("a").if_match("\"x\"").send().await;
    assert_eq!(refusal(head).0, 412);
    let part = get().if_match(&etag).range("bytes=2-4").send().await.unwrap();
    assert_eq!(part.content_range(), Some("bytes 2-4/10"));
    assert_eq!(&part.body.collect().await.unwrap().to_vec(), b"234");
    let tail = get().range("bytes=-3").send().await.unwrap();
    assert_eq!(&tail.body.collect().await.unwrap().to_vec(), b"789");
    assert_eq!(refusal(get().range("bytes=10-").send().await), code(416, "InvalidRange"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_holds_to_conditions_of_its_source_and_of_its_target() {
    let (_server, client) = start().await;
    let etag = put(&client, "a", b"1").await;
    let copy = |key: &str| client.copy_object().bucket(BUCKET).key(key).copy_source(format!("{BUCKET}/a"));
    assert_eq!(refusal(copy("b").copy_source_if_match("\"x\"").send().await), code(412, "PreconditionFailed"));
    copy("b").copy_source_if_match(&etag).if_none_match("*").send().await.unwrap();
    assert_eq!(refusal(copy("b").if_none_match("*").send().await), code(412, "PreconditionFailed"));
    assert_eq!(refusal(copy("b").if_match("\"x\"").send().await), code(412, "PreconditionFailed"));
    copy("b").if_match(&etag).send().await.unwrap();
    assert_eq!(refusal(copy("a").send().await), code(400, "InvalidRequest"));
    let replaced = copy("a").metadata_directive(MetadataDirective::Replace).metadata("owner", "me").send().await;
    assert_eq!(replaced.unwrap().copy_object_result.unwrap().e_tag.unwrap(), etag);
    let head = client.head_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!(head.metadata().unwrap()["owner"], "me");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_with_objects_is_not_deleted() {
    let (_server, client) = start().await;
    put(&client, "a", b"1").await;
    let delete = || client.delete_bucket().bucket(BUCKET).send();
    assert_eq!(refusal(delete().await), code(409, "BucketNotEmpty"));
    client.delete_object().bucket(BUCKET).key("a").send().await.unwrap();
    delete().await.unwrap();
    assert_eq!(refusal(delete().await), code(404, "NoSuchBucket"));
    assert_eq!(refusal(client.head_bucket().bucket(BUCKET).send().await).0, 404);
    client.create_bucket().bucket(BUCKET).send().await.unwrap();
    assert_eq!(refusal(client.create_bucket().bucket(BUCKET).send().await), code(409, "BucketAlreadyOwnedByYou"));
    let buckets = client.list_buckets().send().await.unwrap();
    assert_eq!(buckets.buckets()[0].name(), Some(BUCKET));
}
