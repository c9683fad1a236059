//! Lines as they are written and read, and their order.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::testing::stat;

fn written(path: &str, data: &[u8], stat: &Stat) -> String {
    let mut out = Vec::new();
    write_node(&mut out, path, data, stat);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_checksum_is_the_sha_256_of_all_that_was_added() {
    // The published test vectors.
    let mut sum = Checksum::new();
    assert_eq!(sum.text(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sum.add(b"a");
    sum.add(b"bc");
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((sum.text(), format!("{sum:?}")), (abc.to_owned(), format!("Checksum({abc:?})")));
}

#[test]
fn a_znode_is_a_line_with_what_there_is_to_say_of_it() {
    let lock = Stat { mtime: 1_000, ephemeral_owner: 0x1_2345, ..stat() };
    assert_eq!(written("/a", b"", &lock), "{\"path\":\"/a\",\"ctime\":1000,\"ephemeral\":\"0x12345\"}\n");
    let text = "{\"path\":\"/a\",\"ctime\":1000,\"mtime\":2000,\"text\":\"\u{e9}\\n\"}\n";
    assert_eq!(written("/a", "\u{e9}\n".as_bytes(), &stat()), text);
    let base64 = "{\"path\":\"/a\",\"ctime\":1000,\"mtime\":2000,\"base64\":\"/w==\"}\n";
    assert_eq!(written("/a", b"\xff", &stat()), base64);
}

#[test]
fn a_line_is_of_one_kind_or_refused() {
    let trailer =
        r#"{"nodes":1,"ephemeral":2,"vanished":3,"jobs":4,"batches":5,"requests":6,"data_bytes":7,"newest_zxid":8}"#;
    let end = Trailer {
        nodes: 1,
        ephemeral: 2,
        vanished: 3,
        jobs: 4,
        batches: 5,
        requests: 6,
        data_bytes: 7,
        newest_zxid: 8,
    };
    let line = format!(r#"{{"end":{trailer}}}"#);
    assert_eq!(read_line(line.as_bytes()).unwrap(), DumpLine::End(end));
    assert_eq!(read_line(br#"{"sha256":"ab"}"#).unwrap(), DumpLine::Checksum("ab".into()));

    let node = r#""path":"/a""#;
    for (line, reason) in [
        ("{}".to_owned(), "is neither"),
        (format!(r#"{{{node},"end":{trailer}}}"#), "is neither"),
        (format!(r#"{{{node},"sha256":"ab"}}"#), "is neither"),
        (format!(r#"{{"end":{trailer},"sha256":"ab"}}"#), "is neither"),
        (format!(r#"{{"end":{trailer},"text":"a"}}"#), "is neither"),
        (format!(r#"{{"end":{trailer},"base64":""}}"#), "is neither"),
        (format!(r#"{{"end":{trailer},"ephemeral":"0x1"}}"#), "is neither"),
        (r#"{"sha256":"ab","text":"a"}"#.to_owned(), "is neither"),
        (r#"{"text":"a"}"#.to_owned(), "is neither"),
        (format!(r#"{{{node},"text":"a","base64":""}}"#), "has a value both as text and as base64"),
        (format!(r#"{{{node},"base64":"a"}}"#), "has a value that is not base64"),
        (format!(r#"{{{node},"odd":1}}"#), "is not a line of a dump: unknown field"),
        (format!(r#"{{{node},"ctime":"\u001b"}}"#), "is not a line of a dump: invalid type: string \"\\u{1b}\""),
    ] {
        let error = read_line(line.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{line}: {error}");
    }
}

#[test]
fn a_quotation_is_short_and_obeyed_by_no_terminal() {
    assert_eq!(quoted(&"say \"it's\" a\\b\u{1b}[2J\n\u{e9}"), "say \"it's\" a\\b\\u{1b}[2J\\n\u{e9}");
    assert_eq!(quoted(&"x".repeat(300)), "x".repeat(300));
    assert_eq!(quoted(&"x".repeat(301)), format!("{}\u{2026}", "x".repeat(300)));
}

#[test]
fn the_children_of_a_znode_come_between_it_and_its_next_sibling() {
    let sorted = ["/", "/a", "/a/b", "/a/b/c", "/a/c", "/a!", "/a-", "/a0", "/b"];
    for (one, path) in sorted.iter().enumerate() {
        for (other, second) in sorted.iter().enumerate() {
            assert_eq!(compare(path, second), one.cmp(&other), "{path} {second}");
        }
    }
    assert_eq!(compare("/a/", "/a"), Ordering::Equal);
}

proptest! {
    #[test]
    fn a_znode_is_read_as_it_was_written(
        path in "(/[a-zé\"\\\\]{1,5}){1,3}", data in proptest::collection::vec(any::<u8>(), 0..40), owner in 0..2_i64,
    ) {
        let line = written(&path, &data, &Stat { ephemeral_owner: owner, ..stat() });
        let node = NodeLine { path: path.into(), data, is_ephemeral: owner != 0 };
        prop_assert_eq!(read_line(line.as_bytes()).unwrap(), DumpLine::Node(node));
    }
}
