use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    ChecksumAlgorithm, ChecksumMode, ChecksumType, CompletedMultipartUpload, CompletedPart, ObjectAttributes,
};
use queuekeeper_testkit::s3::Settings;

use super::common::{BUCKET, code, get, put, refusal, start, start_with};

const MIB: usize = 1024 * 1024;

async fn create(client: &Client, algorithm: Option<(ChecksumAlgorithm, ChecksumType)>) -> String {
    let (algorithm, kind) = algorithm.unzip();
    let create = client.create_multipart_upload().bucket(BUCKET).key("a").metadata("owner", "me");
    let create = create.set_checksum_algorithm(algorithm).set_checksum_type(kind);
    create.send().await.unwrap().upload_id.unwrap()
}

async fn upload(client: &Client, id: &str, number: i32, body: Vec<u8>) -> CompletedPart {
    let part = client.upload_part().bucket(BUCKET).key("a").upload_id(id).part_number(number);
    let part = part.body(ByteStream::from(body)).send().await.unwrap();
    CompletedPart::builder()
        .part_number(number)
        .set_e_tag(part.e_tag)
        .set_checksum_sha256(part.checksum_sha256)
        .set_checksum_crc32(part.checksum_crc32)
        .build()
}

fn listed(parts: &[&CompletedPart]) -> CompletedMultipartUpload {
    let parts = parts.iter().map(|part| (*part).clone()).collect();
    CompletedMultipartUpload::builder().set_parts(Some(parts)).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_become_an_object_whose_entity_tag_says_so() {
    let (server, client) = start().await;
    let id = create(&client, None).await;
    let second = upload(&client, &id, 7, vec![2; 10]).await;
    let first = upload(&client, &id, 3, vec![1; 5 * MIB]).await;
    let _unlisted = upload(&client, &id, 9, vec![9; 10]).await;
    let parts = client.list_parts().bucket(BUCKET).key("a").upload_id(&id).max_parts(2).send().await.unwrap();
    let numbers: Vec<_> =
        parts.parts().iter().map(|part| (part.part_number().unwrap(), part.size().unwrap())).collect();
    assert_eq!((numbers, parts.is_truncated()), (vec![(3, 5 * 1024 * 1024), (7, 10)], Some(true)));
    assert_eq!((server.uploads(BUCKET), server.keys(BUCKET).len()), (1, 0));

    let complete = |parts: &[&CompletedPart]| {
        let complete = client.complete_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
        complete.multipart_upload(listed(parts))
    };
    assert_eq!(refusal(complete(&[&second, &first]).send().await), code(400, "InvalidPartOrder"));
    let wrong = CompletedPart::builder().part_number(7).e_tag("\"x\"").build();
    assert_eq!(refusal(complete(&[&first, &wrong]).send().await), code(400, "InvalidPart"));
    let done = complete(&[&first, &second]).if_none_match("*").send().await.unwrap();
    // `(head -c 5242880 /dev/zero | tr '\0' '\1' | md5sum; ..)` of both parts, and the MD5 of those 32 bytes.
    assert_eq!(done.e_tag(), Some("\"34d4c179026ab040d35d264b856c514a-2\""));
    let content = [vec![1; 5 * MIB], vec![2; 10]].concat();
    assert_eq!(get(&client, "a").await, content);
    let part = client.get_object().bucket(BUCKET).key("a").part_number(2).send().await.unwrap();
    assert_eq!((part.parts_count(), part.content_length()), (Some(2), Some(10)));
    let head = client.head_object().bucket(BUCKET).key("a").send().await.unwrap();
    assert_eq!(head.metadata().unwrap()["owner"], "me");
    let attributes = client.get_object_attributes().bucket(BUCKET).key("a");
    let attributes = attributes.object_attributes(ObjectAttributes::ObjectSize);
    let attributes = attributes.object_attributes(ObjectAttributes::ObjectParts).send().await.unwrap();
    assert_eq!(attributes.object_size(), Some(5 * 1024 * 1024 + 10));
    assert_eq!(attributes.object_parts().unwrap().total_parts_count(), Some(2));
    assert_eq!(server.uploads(BUCKET), 0);
    assert_eq!(refusal(complete(&[&first, &second]).send().await), code(404, "NoSuchUpload"));

    // A copy is one body again.
    let copy = client.copy_object().bucket(BUCKET).key("b").copy_source(format!("{BUCKET}/a")).send().await.unwrap();
    assert!(!copy.copy_object_result.unwrap().e_tag.unwrap().contains('-'));
    assert_eq!(get(&client, "b").await, content);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_hold_at_the_completion_and_an_aborted_upload_never_completes() {
    let (server, client) = start().await;
    let id = create(&client, None).await;
    let part = upload(&client, &id, 1, vec![1; 10]).await;
    let etag = put(&client, "a", b"first").await;
    let complete = || {
        let complete = client.complete_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
        complete.multipart_upload(listed(&[&part]))
    };
    assert_eq!(refusal(complete().if_none_match("*").send().await), code(412, "PreconditionFailed"));
    assert_eq!(refusal(complete().if_match("\"x\"").send().await), code(412, "PreconditionFailed"));
    let abort = client.abort_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
    abort.clone().send().await.unwrap();
    assert_eq!(refusal(abort.send().await), code(404, "NoSuchUpload"));
    assert_eq!(refusal(complete().if_match(etag).send().await), code(404, "NoSuchUpload"));
    assert_eq!(server.content(BUCKET, "a").unwrap(), b"first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_too_small_is_refused_unless_it_is_the_last() {
    let (_server, client) = start().await;
    let id = create(&client, None).await;
    let first = upload(&client, &id, 1, vec![1; 5 * MIB - 1]).await;
    let second = upload(&client, &id, 2, vec![1; 1]).await;
    let complete = client.complete_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
    let complete = complete.multipart_upload(listed(&[&first, &second])).send().await;
    assert_eq!(refusal(complete), code(400, "EntityTooSmall"));
}

#[tokio::test(flavor = "multi_thread")]
async fn checksums_of_parts_are_combined_or_summed_again() {
    let (_server, client) = start_with(Settings { minimum_part_bytes: 1, ..Settings::default() }).await;
    let cases = [
        // The check values of both CRCs for `123456789`; of the others, base64 of the digest of both digests.
        (ChecksumAlgorithm::Crc64Nvme, ChecksumType::FullObject, "rosUhgp5mIg="),
        (ChecksumAlgorithm::Crc32, ChecksumType::FullObject, "y/Q5Jg=="),
        (ChecksumAlgorithm::Crc32, ChecksumType::Composite, "rBMwBw==-2"),
        (ChecksumAlgorithm::Sha256, ChecksumType::Composite, "bnRBBTileCDVQlLT/6fZJGrqcf3O3X6G8kD8V7zZqxQ=-2"),
    ];
    for (algorithm, kind, expected) in cases {
        let id = create(&client, Some((algorithm.clone(), kind.clone()))).await;
        let first = upload(&client, &id, 1, b"1234".to_vec()).await;
        let second = upload(&client, &id, 2, b"56789".to_vec()).await;
        let complete = client.complete_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
        complete.multipart_upload(listed(&[&first, &second])).send().await.unwrap();
        let head = client.head_object().bucket(BUCKET).key("a").checksum_mode(ChecksumMode::Enabled);
        let head = head.send().await.unwrap();
        let sum = head.checksum_crc64_nvme().or(head.checksum_crc32()).or(head.checksum_sha256());
        assert_eq!((sum, head.checksum_type()), (Some(expected), Some(&kind)), "{algorithm:?}");
    }
    let create = client.create_multipart_upload().bucket(BUCKET).key("a").checksum_algorithm(ChecksumAlgorithm::Sha256);
    let create = create.checksum_type(ChecksumType::FullObject).send().await;
    assert_eq!(refusal(create), code(400, "InvalidRequest"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_copied_from_a_range_of_an_object() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["source"], b"0123456789");
    let id = create(&client, None).await;
    let copy = client.upload_part_copy().bucket(BUCKET).key("a").upload_id(&id).part_number(1);
    let copy = copy.copy_source(format!("{BUCKET}/source"));
    let refused = copy.clone().copy_source_if_match("\"x\"").send().await;
    assert_eq!(refusal(refused), code(412, "PreconditionFailed"));
    assert_eq!(refusal(copy.clone().copy_source_range("bytes=8-12x").send().await).0, 400);
    let part = copy.copy_source_range("bytes=2-4").send().await.unwrap();
    let part = CompletedPart::builder().part_number(1).set_e_tag(part.copy_part_result.unwrap().e_tag).build();
    let complete = client.complete_multipart_upload().bucket(BUCKET).key("a").upload_id(&id);
    complete.multipart_upload(listed(&[&part])).send().await.unwrap();
    assert_eq!(get(&client, "a").await, b"234");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_uploads_are_listed_in_pages() {
    let (_server, client) = start().await;
    let mut begun = Vec::new();
    for key in ["a", "b", "b", "c//d"] {
        let create = client.create_multipart_upload().bucket(BUCKET).key(key).send().await.unwrap();
        begun.push((key.to_owned(), create.upload_id.unwrap()));
    }
    let (mut key, mut id) = (None, None);
    let mut found = Vec::new();
    loop {
        let list = client.list_multipart_uploads().bucket(BUCKET).max_uploads(1);
        let page = list.set_key_marker(key).set_upload_id_marker(id).send().await.unwrap();
        let ids = page.uploads().iter().map(|one| (one.key().unwrap().to_owned(), one.upload_id().unwrap().to_owned()));
        found.extend(ids);
        if page.is_truncated() != Some(true) {
            break;
        }
        (key, id) = (page.next_key_marker, page.next_upload_id_marker);
    }
    assert_eq!(found, begun);
}
