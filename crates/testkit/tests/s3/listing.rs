use std::collections::BTreeSet;

use aws_sdk_s3::types::EncodingType;

use super::common::{BUCKET, code, refusal, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_has_each_key_once_in_byte_order_whatever_the_size_of_its_pages() {
    let (server, client) = start().await;
    let keys: BTreeSet<_> = (0..2500).map(|n| format!("{}/{}", n % 7, n * 7919)).collect();
    server.plant(BUCKET, &keys, b"x");
    for most in [1000, 999, 7] {
        let mut pages = client.list_objects_v2().bucket(BUCKET).max_keys(most).into_paginator().send();
        let mut listed = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.unwrap();
            assert!(page.contents().len() <= usize::try_from(most).unwrap());
            listed.extend(page.contents().iter().map(|object| object.key().unwrap().to_owned()));
        }
        assert!(listed.iter().eq(&keys), "{most}");
    }
    let after = client.list_objects_v2().bucket(BUCKET).start_after("3/").prefix("3/").send().await.unwrap();
    assert!(
        after.contents().iter().map(|object| object.key().unwrap()).eq(keys.iter().filter(|key| key.starts_with("3/")))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_common_prefixes_and_count_as_keys() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["a", "b/1", "b/2", "b0", "c//x", "c/y", "d/", "\u{e9}/1"], b"x");
    let all = async |prefix: &str, most| {
        let list = client.list_objects_v2().bucket(BUCKET).prefix(prefix).delimiter("/").max_keys(most);
        let mut pages = list.into_paginator().send();
        let mut shown = BTreeSet::new();
        while let Some(page) = pages.next().await {
            let page = page.unwrap();
            let (keys, prefixes) = (page.contents(), page.common_prefixes());
            assert_eq!(page.key_count(), i32::try_from(keys.len() + prefixes.len()).ok());
            let texts =
                keys.iter().map(|one| one.key().unwrap()).chain(prefixes.iter().map(|one| one.prefix().unwrap()));
            texts.for_each(|text| assert!(shown.insert(text.to_owned()), "twice: {text}"));
        }
        shown.into_iter().collect::<Vec<_>>()
    };
    for most in [1, 2, 1000] {
        assert_eq!(all("", most).await, ["a", "b/", "b0", "c/", "d/", "\u{e9}/"]);
        assert_eq!(all("b/", most).await, ["b/1", "b/2"]);
        assert_eq!(all("c/", most).await, ["c//", "c/y"]);
        assert_eq!(all("z", most).await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_form_lists_the_same() {
    let (server, client) = start().await;
    server.plant(BUCKET, ["a", "b/1", "b/2", "c", "d/1"], b"x");
    let mut shown = Vec::new();
    let mut marker = String::new();
    loop {
        let list = client.list_objects().bucket(BUCKET).delimiter("/").max_keys(1).marker(&marker);
        let page = list.encoding_type(EncodingType::Url).send().await.unwrap();
        shown.extend(page.contents().iter().map(|one| one.key().unwrap().to_owned()));
        shown.extend(page.common_prefixes().iter().map(|one| one.prefix().unwrap().to_owned()));
        match page.next_marker() {
            Some(next) if page.is_truncated() == Some(true) => marker = next.to_owned(),
            _ => break,
        }
    }
    assert_eq!(shown, ["a", "b/", "c", "d/"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_listed_is_refused() {
    let (_server, client) = start().await;
    let wrong = client.list_objects_v2().bucket(BUCKET).continuation_token("no token").send().await;
    assert_eq!(refusal(wrong), code(400, "InvalidArgument"));
    let wrong = client.list_objects_v2().bucket(BUCKET).max_keys(-1).send().await;
    assert_eq!(refusal(wrong), code(400, "InvalidArgument"));
    let wrong = client.list_objects_v2().bucket("missing").send().await;
    assert_eq!(refusal(wrong), code(404, "NoSuchBucket"));
    let none = client.list_objects_v2().bucket(BUCKET).max_keys(0).send().await.unwrap();
    assert_eq!((none.key_count(), none.is_truncated()), (Some(0), Some(false)));
}
