//! What the znodes of an access request say.

use super::*;
use crate::mirror::clock::Offset;
use crate::mirror::image::tests::{empty, new_stat};
use queuekeeper_queue::path::Path;

const REQUEST: RequestId = RequestId::new(7);

fn node(data: &str) -> Found {
    Found::Node { data: data.as_bytes().to_vec(), stat: new_stat(1) }
}

#[test]
fn a_request_shows_what_its_token_says() {
    let mut image = empty();
    let path = Path::RequestNode(AccessQueue::Large, REQUEST, RequestNode::Token);
    let data = r#"{"token":"T","cloud-content-byte":7,"url":"https://store.example.edu/T","expiration-time":"2026-03-02T10:00:00Z"}"#;
    image.apply(path.clone(), &node(data));
    let [request] = &image.requests(Offset::default())[..] else { panic!("there is one") };
    assert_eq!((request.queue, request.id, &*request.token), (AccessQueue::Large, REQUEST, "T"));
    assert_eq!((request.requested_bytes, &*request.url), (7, "https://store.example.edu/T"));
    assert_eq!(request.expires, Some("2026-03-02T10:00:00Z".parse().unwrap()));
    image.apply(path.clone(), &node("["));
    assert!(image.is_unreadable(&path) && !image.is_unreadable(&Path::Request(AccessQueue::Large, REQUEST)));
    image.apply(path, &Found::Nothing);
    assert_eq!((image.requests(Offset::default()).len(), image.unreadable()), (0, 0));
}

#[test]
fn only_an_address_of_the_web_is_kept_and_none_that_is_too_long() {
    let longest = format!("http://{}", "x".repeat(MOST_URL_BYTES - "http://".len()));
    let too_long = format!("{longest}x");
    for (url, is_kept) in [
        ("https://store.example.edu/T?x=1", true),
        (&*longest, true),
        (&*too_long, false),
        ("ftp://store.example.edu/T", false),
        ("javascript:alert(1)", false),
        ("https://store.example.edu/a b", false),
        ("https://store.example.edu/é", false),
        ("", false),
    ] {
        let mut entry = Entry::default();
        let token = serde_json::json!({"token": "T", "url": url}).to_string();
        assert!(!entry.set(Some(RequestNode::Token), &node(&token)));
        assert_eq!(&*entry.url, if is_kept { url } else { "" });
    }
}
