use aws_sdk_s3::types::{Delete, EncodingType, ObjectIdentifier};

use super::common::{BUCKET, code, config, get, put, refusal, resolving_to_loopback, start};

/// Every kind of key that is legal and hard.
fn hard_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "a//b",
        "/a",
        "//",
        "/",
        "a/",
        "a/b",
        "a",
        "d",
        "d/e",
        ".",
        "..",
        "./a",
        "a/../b",
        "a/./b",
        "../../etc",
        "a b",
        "a+b",
        "a%20b",
        "%zz",
        "%",
        "a%2Fb",
        "%00",
        "a?b",
        "a#b",
        "a&b=c",
        "a;b",
        "a:b",
        "a\\b",
        "a\"b",
        "a<b>",
        "a'b",
        "*",
        "a|b",
        "~",
        "{a}",
        "[a]",
        "^`",
        "caf\u{e9}",
        "cafe\u{301}",
        "\u{1f600}",
        "a\u{ffff}",
        " a ",
        "a.",
        "-a",
        "\u{1}",
        "a\nb",
        "a\rb",
        "a\tb",
        "\u{7f}",
        "a\u{85}",
        "a\u{2028}",
        "?versionId=x",
        "a?versionId=null",
        "arn:aws",
    ]
    .map(str::to_owned)
    .into();
    keys.push("k".repeat(1024));
    keys.push("\u{e9}".repeat(512));
    keys.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn every_legal_key_is_written_read_listed_copied_and_deleted() {
    let (server, client) = start().await;
    let keys = hard_keys();
    for key in &keys {
        client.put_object().bucket(BUCKET).key(key).body(key.clone().into_bytes().into()).send().await.unwrap();
    }
    assert_eq!(server.keys(BUCKET), keys);
    for key in &keys {
        assert_eq!(get(&client, key).await, key.as_bytes(), "{key:?}");
        let source = format!("{BUCKET}/{}", percent(key));
        let copy = client.copy_object().bucket(BUCKET).key("target").copy_source(source).send().await;
        assert!(copy.is_ok(), "{key:?}: {copy:?}");
        assert_eq!(get(&client, "target").await, key.as_bytes(), "{key:?}");
    }
    client.delete_object().bucket(BUCKET).key("target").send().await.unwrap();
    let listed = client.list_objects_v2().bucket(BUCKET).encoding_type(EncodingType::Url).send().await.unwrap();
    let listed: Vec<_> = listed.contents().iter().map(|object| form_decoded(object.key().unwrap())).collect();
    assert_eq!(listed, keys);
    for key in &keys {
        client.delete_object().bucket(BUCKET).key(key).send().await.unwrap();
    }
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_deletes_every_key_that_xml_can_name() {
    let (server, client) = start().await;
    // XML 1.0 has no control characters and no U+FFFF, and a parser takes some for line ends.
    let is_xml = |char: char| !char.is_control() && char != '\u{ffff}' || matches!(char, '\t' | '\n');
    let is_xml = |key: &&String| key.chars().all(is_xml);
    let keys: Vec<_> = hard_keys().iter().filter(is_xml).cloned().collect();
    server.plant(BUCKET, &keys, b"x");
    let objects = keys.iter().map(|key| ObjectIdentifier::builder().key(key).build().unwrap());
    let delete = Delete::builder().set_objects(Some(objects.collect())).build().unwrap();
    let answer = client.delete_objects().bucket(BUCKET).delete(delete).send().await.unwrap();
    assert_eq!(server.keys(BUCKET), Vec::<String>::new());
    assert_eq!(answer.deleted().len(), keys.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_1025_bytes_is_refused() {
    let (_server, client) = start().await;
    let put = client.put_object().bucket(BUCKET).key("k".repeat(1025)).send().await;
    assert_eq!(refusal(put), code(400, "KeyTooLongError"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_a_host_or_a_part_of_the_path() {
    let (server, client) = start().await;
    put(&client, "d/a b", b"content").await;
    let virtual_host = config(&server)
        .endpoint_url(server.virtual_endpoint())
        .force_path_style(false)
        .http_client(resolving_to_loopback(None))
        .build();
    let virtual_host = aws_sdk_s3::Client::from_conf(virtual_host);
    assert_eq!(get(&virtual_host, "d/a b").await, b"content");
}

/// As in `x-amz-copy-source`.
fn percent(key: &str) -> String {
    key.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).into() } else { format!("%{byte:02X}") })
        .collect()
}

fn form_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&rest[..2]).unwrap(), 16).unwrap());
                rest = &rest[2..];
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).unwrap()
}
