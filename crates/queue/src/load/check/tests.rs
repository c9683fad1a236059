//! What is accepted as a dump, and where and why anything else is not.

use super::*;

const END: &str = "ab";

fn limits() -> LoadLimits {
    LoadLimits::new(LoadLimits::LARGEST_NUMBER, "", &[])
}

fn header(next: &str) -> String {
    let start = r#"{"queuekeeper_dump":2,"id":"d","taken":"2026-03-02T18:17:05Z","program":"1","redacted":false"#;
    format!(r#"{start},"left_out":[],"next":{{{next}}}}}"#)
}

fn trailer(nodes: usize) -> String {
    let counts = r#""ephemeral":0,"vanished":0,"jobs":9,"batches":0,"requests":0,"data_bytes":0,"newest_zxid":0"#;
    format!(r#"{{"end":{{"nodes":{nodes},{counts}}}}}"#)
}

/// A line of a znode: its path, and after a space what else there is to say of it.
fn node(text: &str) -> String {
    let (path, rest) = text.split_once(' ').unwrap_or((text, ""));
    format!(r#"{{"path":"{path}"{rest}}}"#)
}

fn ephemeral(path: &str) -> String {
    format!(r#"{path} ,"ephemeral":"0x1""#)
}

fn with_value(path: &str, bytes: usize) -> String {
    format!(r#"{path} ,"text":"{}""#, "x".repeat(bytes))
}

/// The lines with their checksum as the last.
fn summed(mut lines: Vec<String>) -> Vec<String> {
    let mut sum = Checksum::new();
    sum.add((lines.join("\n") + "\n").as_bytes());
    lines.push(format!(r#"{{"sha256":"{}"}}"#, sum.text()));
    lines
}

/// A whole dump of these znodes.
fn dump(nodes: &[&str]) -> Vec<String> {
    let lines = nodes.iter().map(|text| node(text));
    summed([header("")].into_iter().chain(lines).chain([trailer(nodes.len())]).collect())
}

fn read(lines: &[String]) -> Result<DumpReader, InvalidDump> {
    let mut reader = DumpReader::new(limits());
    let (first, rest) = lines.split_first().unwrap();
    reader.header(first.as_bytes())?;
    rest.iter().try_for_each(|line| reader.check(line.as_bytes()))?;
    reader.end()?;
    Ok(reader)
}

#[track_caller]
fn refused(lines: &[String], expected: &str) {
    let error = read(lines).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_whole_dump_is_accepted_with_its_counts_and_its_checksum() {
    let mut lines = dump(&["/", "/jobs", "/jobs/jid0000000042", "/jobs/jid0000000042/bid", "/locks"]);
    let reader = read(&lines).unwrap();
    let (read, sha256) = reader.end().unwrap();
    assert_eq!((read.nodes, read.jobs), (5, 9));
    assert_eq!(lines[6 + 1], format!(r#"{{"sha256":"{sha256}"}}"#));
    // An end of the last line, and nothing else, may follow.
    lines.push(String::new());
    assert!(self::read(&lines).is_ok());
    lines.push("{}".to_owned());
    refused(&lines, "line 10 follows the last line of the dump");
    let header = DumpReader::new(limits()).header(lines[0].as_bytes()).unwrap();
    assert_eq!((header.id.as_str(), header.format), ("d", FORMAT));
}

#[test]
fn a_first_line_is_that_of_a_dump_of_this_format() {
    let with = |first: String| [vec![first], dump(&["/"])[1..].to_vec()].concat();
    refused(&with(r#"{"a":1}"#.to_owned()), "line 1 is not the first line of a dump: missing field `queuekeeper_dump`");
    refused(
        &with(r#"{"queuekeeper_dump":2}"#.to_owned()),
        "line 1 is not the first line of a dump: missing field `id`",
    );
    let older = "line 1 says that the dump has format 1; this version reads 2, and the older ones have no checksum";
    refused(&with(r#"{"queuekeeper_dump":1}"#.to_owned()), older);
    let error = read(&with(r#"{"queuekeeper_dump":3}"#.to_owned())).unwrap_err().to_string();
    assert_eq!(error, "line 1 says that the dump has format 3; this version reads 2");
    refused(&with(" ".repeat(LONGEST_LINE + 1)), "line 1 is longer than 8 MiB");
    refused(&with(" ".repeat(LONGEST_LINE)), "line 1 is not the first line of a dump");
}

#[test]
fn a_dump_ends_with_its_counts_and_its_checksum() {
    let lines = dump(&["/", "/jobs"]);
    for (count, line) in [(1, 2), (2, 3), (3, 4), (4, 5)] {
        refused(&lines[..count], &format!("line {line} is missing: the dump was cut off"));
    }
    let [first, root, jobs, counts, sum] = &lines[..] else { panic!("{lines:?}") };
    let with = |lines: &[&String]| lines.iter().map(|line| (*line).clone()).collect::<Vec<_>>();
    refused(&with(&[first, root, counts]), "line 3 says that there are 2 znodes, but 1 were read");
    refused(&with(&[first, root, jobs, sum]), "line 4 has the checksum, and no line with the counts before it");
    for line in [jobs, counts] {
        refused(&with(&[first, root, jobs, counts, line]), "line 5 is not the last line, with the checksum");
    }
    let changed = lines.iter().map(|line| line.replace("/jobs", "/job"));
    refused(&changed.collect::<Vec<_>>(), "line 5 says that the lines before it have the SHA-256 ");
    refused(&with(&[first, &END.to_owned()]), "line 2 is not a line of a dump");
    refused(&with(&[first, &" ".repeat(LONGEST_LINE + 1)]), "line 2 is longer than 8 MiB");
    refused(&with(&[first, &" ".repeat(LONGEST_LINE)]), "line 2 is not a line of a dump");
}

#[test]
fn a_znode_comes_after_its_parent_and_before_what_follows_it() {
    for (nodes, expected) in [
        (&["/jobs"][..], "line 2 has the path /jobs, whose parent did not come before it"),
        (&["/", "/a/b"], "line 3 has the path /a/b, whose parent did not come before it"),
        (&["/", "/a", "/b/c"], "line 4 has the path /b/c, whose parent"),
        (&["/", "/a", "/a/b", "/c/b"], "line 5 has the path /c/b, whose parent"),
        (&["/", "/a", "/a"], "line 4 has the path /a a second time"),
        (&["/", "/b", "/a"], "line 4 has the path /a, which should have come earlier"),
        (&["/", "/a", "/a!", "/a/b"], "line 5 has the path /a/b, which should have come earlier"),
        (&["/", "/queuekeeper"], "line 3 has the path /queuekeeper, which is not part of the queue"),
        (&["/", "a"], "line 3 has a path that no znode can have: a path begins with a slash"),
    ] {
        refused(&dump(nodes), expected);
    }
    let lock = ephemeral("/a");
    refused(&dump(&["/", &lock, "/a/b"]), "line 4 has the path /a/b, whose parent did not come before it");
    assert!(read(&dump(&["/", &lock, "/b"])).is_ok());
}

#[test]
fn znodes_lie_no_deeper_than_any_server_needs() {
    let mut paths = vec!["/".to_owned()];
    paths.extend((1..=DEEPEST).map(|depth| "/a".repeat(depth)));
    let whole: Vec<_> = paths.iter().map(String::as_str).collect();
    assert!(read(&dump(&whole)).is_ok());
    let deeper = "/a".repeat(DEEPEST + 1);
    refused(&dump(&[&whole[..], &[&deeper]].concat()), "line 203 has a path of more than 200 parts");
}

#[test]
fn an_item_has_no_number_that_its_counter_would_take_long_to_reach() {
    for (folder, above, id) in [
        ("/jobs", &["/", "/jobs"][..], "jid"),
        ("/batches", &["/", "/batches"], "bid"),
        ("/access/large", &["/", "/access", "/access/large"], "qid"),
    ] {
        let with = |number: u32| {
            let path = format!("{folder}/{id}{number:010}");
            dump(&[above, &[&path]].concat())
        };
        assert!(read(&with(10_000_000)).is_ok());
        let line = above.len() + 2;
        refused(&with(10_000_001), &format!("line {line} has the number 10000001 for {folder}, above 10000000"));
    }
    let first = |next: u32| DumpReader::new(limits()).header(header(&format!(r#""/jobs":{next}"#)).as_bytes());
    assert!(first(10_000_001).is_ok());
    let error = first(10_000_002).unwrap_err().to_string();
    assert!(error.starts_with("line 1 has the number 10000001 for /jobs, above 10000000"), "{error}");
}

#[test]
fn each_counter_is_led_past_all_numbers_below_its_folder() {
    let numbers = |next: &str, nodes: &[&str]| {
        let mut reader = DumpReader::new(limits());
        reader.header(header(next).as_bytes()).unwrap();
        for text in nodes {
            reader.check(node(text).as_bytes()).unwrap();
        }
        reader.next_numbers().map(|(folder, next)| format!("{folder} {next}")).collect::<Vec<_>>()
    };
    let jobs = ["/", "/jobs", "/jobs/jid0000000007", "/jobs/jid0000000042", "/jobs/jid0000000042/bid"];
    assert_eq!(numbers("", &jobs), ["/jobs 43"]);
    assert_eq!(numbers(r#""/jobs":43"#, &jobs), ["/jobs 43"]);
    assert_eq!(numbers(r#""/jobs":45,"/access/small":0,"/odd":7"#, &jobs), ["/jobs 45", "/access/small 0"]);
    let others = ["/", "/access", "/access/large", "/access/large/qid0000000000", "/batches", "/batches/bid0000000001"];
    assert_eq!(numbers("", &others), ["/batches 2", "/access/large 1"]);
}

#[test]
fn a_value_is_no_larger_than_a_request() {
    // A request has the path, the value, 20 bytes, and 27 of the open ACL.
    let most = SERVER_LIMIT_BYTES - 4 - 20 - 27;
    assert!(read(&dump(&["/", &with_value("/odd", most)])).is_ok());
    let problem = "line 3 has the path /odd, whose value takes a request of 1048576 bytes, above 1048575";
    refused(&dump(&["/", &with_value("/odd", most + 1)]), problem);
    let lock = format!(r#"{},"text":"{}""#, ephemeral("/odd"), "x".repeat(most + 1));
    assert!(read(&dump(&["/", &lock])).is_ok(), "a lock is not made");
    // The pauses and what is above them are made in one transaction.
    let most = KEPT_LIMIT_BYTES - [1, 6, 12, 19].map(|path| path + 20 + 27).iter().sum::<usize>();
    let with = |bytes| dump(&["/", "/locks", "/locks/queue", &with_value("/locks/queue/ingest", bytes)]);
    assert!(read(&with(most)).is_ok());
    let problem = "line 5 has the path /locks/queue/ingest, whose value is set in the last request, which takes 460801 bytes with it, above 460800";
    refused(&with(most + 1), problem);
}

#[test]
fn the_znodes_of_an_item_are_one_unit_and_references_and_other_znodes_are_each() {
    let mut reader = DumpReader::new(limits());
    reader.header(header("").as_bytes()).unwrap();
    let lock = ephemeral("/jobs/jid0000000001/lock");
    let rows = [
        ("/", 1),
        ("/batches", 2),
        ("/batches/bid0000000007", 3),
        ("/batches/bid0000000007/states", 3),
        ("/batches/bid0000000007/states/batch-failed", 3),
        ("/batches/bid0000000007/states/batch-failed/jid0000000001", 4),
        ("/batches/bid0000000007/states/batch-failed/jid0000000002", 5),
        ("/batches/bid0000000007/status", 5),
        ("/jobs", 6),
        ("/jobs/jid0000000001", 7),
        ("/jobs/jid0000000001/bid", 7),
        (lock.as_str(), 0),
        ("/jobs/jid0000000001/status", 7),
        ("/jobs/jid0000000001x", 8),
        ("/jobs/jid0000000002", 9),
        ("/jobs/states", 10),
        ("/jobs/states/pending", 11),
    ];
    for (text, unit) in rows {
        match reader.line(node(text).as_bytes()).unwrap() {
            ParsedLine::Node(DumpNode { path, unit: found, .. }) => {
                assert_eq!((path, found), (Path::parse_whole(text), unit));
            }
            ParsedLine::Nothing => assert_eq!(unit, 0, "{text}"),
            ParsedLine::End(_) => panic!("{text} is no end"),
        }
    }
}
