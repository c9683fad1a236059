//! What the answers to the reads of a dump become.

use zookeeper_client::Error;

use super::*;
use crate::testing::stat;

const NO_NODE: MultiReadResult = MultiReadResult::Error { err: Error::NoNode };

fn found(data: &str, num_children: i32) -> MultiReadResult {
    MultiReadResult::Data { data: data.into(), stat: Stat { num_children, mtime: 1_000, ..stat() } }
}

fn names(children: &[&str]) -> MultiReadResult {
    MultiReadResult::Children { children: children.iter().map(|name| (*name).to_owned()).collect() }
}

fn at(path: &str) -> DumpPath {
    DumpPath { real: path.into(), shown: path.into() }
}

fn listed(children: &[&str]) -> Names {
    children.iter().map(|name| Arc::from(*name)).collect()
}

/// What a query becomes, a line each, and what was counted.
fn taken(path: &str, reading: Reading, answers: Vec<MultiReadResult>) -> (Vec<String>, Trailer) {
    let mut counts = Trailer::default();
    let query = Query { of: at(path), reading };
    let results = query.take(&mut answers.into_iter(), None, &mut counts).unwrap();
    let show = |result| match result {
        QueryResult::Lines(lines) => String::from_utf8(lines).unwrap().replace(",\"ctime\":1000", ""),
        QueryResult::Query(Query { of, reading }) => format!("{} {reading:?}", of.real),
        QueryResult::Children(of, names) => format!("{}: {}", of.real, names.join(" ")),
    };
    (results.into_iter().map(show).collect(), counts)
}

#[test]
fn an_item_is_read_with_the_children_that_it_may_have_and_any_other_znode_alone() {
    for (path, reads) in [
        ("/jobs/jid0000000042", 12),
        ("/batches/bid0000000007", 6),
        ("/access/small/qid0000000003", 4),
        ("/jobs", 1),
        ("/jobs/jid0000000042/status", 1),
        ("/odd/jid0000000042", 1),
    ] {
        assert_eq!(Query::first(at(path)).reads(), reads, "{path}");
    }
    let request = Query::first(at("/access/small/qid0000000003"));
    // Each of four reads has the path of 27 bytes, a chroot of 10 and 13 more; three have names of 5, 6 and 4.
    assert_eq!(request.bytes(10), 4 * (27 + 10 + 13) + 15);
    let list = Query { of: at("/jobs"), reading: Reading::Names(false) };
    assert_eq!((list.reads(), list.bytes(0)), (1, 5 + 13));
}

#[test]
fn the_path_of_a_child_has_one_slash() {
    let jobs = DumpPath::root().child("jobs", None);
    assert_eq!([&*jobs.real, &*jobs.shown, &*jobs.child("a", None).real], ["/jobs", "/jobs", "/jobs/a"]);
    let redaction = Redaction::new(&[7; 32]);
    let odd = DumpPath::root().child("bob", Some(&redaction)).child("ann", Some(&redaction));
    assert_eq!((&*odd.real, odd.shown.matches('/').count()), ("/bob/ann", 2));
    assert!(!odd.shown.contains("bob") && !odd.shown.contains("ann"), "{}", odd.shown);
}

#[test]
fn an_item_whose_children_are_all_known_is_lines_sorted_by_name() {
    let answers = vec![found("", 3), found("", 0), found("Pending", 1), found("{}", 0)];
    let children = listed(&["lock", "status", "bid"]);
    let (results, counts) = taken("/jobs/jid0000000042", Reading::Item(children), answers);
    let line = |path: &str, rest: &str| format!("{{\"path\":\"/jobs/jid0000000042{path}\"{rest}}}\n");
    let above =
        [line("", ""), line("/bid", r#","text":"{}""#), line("/lock", ""), line("/status", r#","text":"Pending""#)];
    // What lies below a child follows its line.
    assert_eq!(results, [above.concat(), "/jobs/jid0000000042/status Names(false)".to_owned()]);
    let expected = Trailer { nodes: 4, jobs: 1, data_bytes: 9, newest_zxid: 11, ..Trailer::default() };
    assert_eq!(counts, expected);
}

#[test]
fn a_line_after_what_lies_below_a_child_stands_for_itself() {
    let answers = vec![found("", 2), found("", 1), found("", 0)];
    let (results, _) = taken("/odd", Reading::Listed(listed(&["a", "b"])), answers);
    assert_eq!(results.len(), 3, "{results:?}");
    assert_eq!(results[1..], ["/odd/a Names(false)".to_owned(), "{\"path\":\"/odd/b\"}\n".to_owned()]);
}

#[test]
fn an_item_with_children_of_other_names_is_listed_and_read_again() {
    let (path, children) = ("/jobs/jid0000000042", || listed(&["bid", "notes"]));
    let (results, counts) = taken(path, Reading::Item(children()), vec![found("", 3), found("", 0), NO_NODE]);
    assert_eq!((results, counts), (vec![format!("{path} Names(true)")], Trailer::default()));
    let answers = || vec![names(&["bid", "notes"])];
    assert_eq!(taken(path, Reading::Names(true), answers()).0, [format!("{path} Listed([\"bid\", \"notes\"])")]);
    // A listed child that is gone has vanished.
    let (results, counts) = taken(path, Reading::Listed(children()), vec![found("", 2), found("", 0), NO_NODE]);
    assert_eq!((results.len(), counts.nodes, counts.vanished), (1, 2, 1));
    let gone = taken(path, Reading::Item(children()), vec![NO_NODE, NO_NODE, NO_NODE]);
    assert_eq!(gone, (Vec::new(), Trailer { vanished: 1, ..Trailer::default() }));
    // So many values are not read together.
    let many: Vec<_> = (0..VALUES_IN_FLIGHT).map(|name| name.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(taken(path, Reading::Names(true), vec![names(&many)]).0, [format!("{path} Node")]);
    let fewer = taken(path, Reading::Names(true), vec![names(&many[1..])]).0;
    assert!(fewer[0].starts_with(&format!("{path} Listed")), "{fewer:?}");
    assert_eq!(taken(path, Reading::Names(true), vec![NO_NODE]).1.vanished, 1);
}

#[test]
fn any_other_znode_is_a_line_and_its_children_one_after_the_other() {
    let (results, counts) = taken("/odd", Reading::Node, vec![found("x", 0)]);
    assert_eq!((results, counts.nodes), (vec!["{\"path\":\"/odd\",\"text\":\"x\"}\n".to_owned()], 1));
    let (results, _) = taken("/odd", Reading::Node, vec![found("", 1)]);
    assert_eq!(results[1..], ["/odd Names(false)"]);
    let lock = MultiReadResult::Data { data: Vec::new(), stat: Stat { ephemeral_owner: 1, ..stat() } };
    assert_eq!(taken("/odd", Reading::Node, vec![lock]).1.ephemeral, 1);
    assert_eq!(taken("/odd", Reading::Node, vec![NO_NODE]).1.vanished, 1);
    for (path, items) in [
        ("/jobs/jid0000000042", [1, 0, 0]),
        ("/batches/bid0000000007", [0, 1, 0]),
        ("/access/small/qid0000000003", [0, 0, 1]),
        ("/jobs/jid0000000042/bid", [0, 0, 0]),
    ] {
        let Trailer { jobs, batches, requests, .. } = taken(path, Reading::Node, vec![found("", 0)]).1;
        assert_eq!([jobs, batches, requests], items, "{path}");
    }

    let (results, counts) = taken("/odd", Reading::Names(false), vec![names(&["b", "zookeeper", "a"])]);
    assert_eq!((results, counts), (vec!["/odd: a b zookeeper".to_owned()], Trailer::default()));
    let root = taken("/", Reading::Names(false), vec![names(&["queuekeeper", "jobs", "zookeeper", "access"])]);
    assert_eq!(root.0, ["/: access jobs"]);
    let many: Vec<_> = (10..10 + VALUES_IN_FLIGHT).map(|name| name.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let all = taken("/odd", Reading::Names(false), vec![names(&many)]).0;
    assert_eq!(all, [format!("/odd: {}", many.join(" "))]);
    // Its line is written already.
    assert_eq!(taken("/odd", Reading::Names(false), vec![NO_NODE]), (Vec::new(), Trailer::default()));
}

#[test]
fn what_cannot_be_read_is_named_with_its_reason() {
    let denied = || MultiReadResult::Error { err: Error::NoAuth };
    let other = || Error::UnexpectedError("an answer of another kind".into());
    for (reading, answers, path, expected) in [
        (Reading::Node, vec![denied()], "/odd", Error::NoAuth),
        (Reading::Node, Vec::new(), "/odd", other()),
        (Reading::Node, vec![names(&[])], "/odd", other()),
        (Reading::Names(false), vec![denied()], "/odd", Error::NoAuth),
        (Reading::Names(true), vec![found("", 0)], "/odd", other()),
        (Reading::Item(listed(&["a"])), vec![found("", 1), denied()], "/odd/a", Error::NoAuth),
    ] {
        let shown = format!("{reading:?}");
        let query = Query { of: at("/odd"), reading };
        let (at, error) = query.take(&mut answers.into_iter(), None, &mut Trailer::default()).unwrap_err();
        assert_eq!((&*at, error), (path, expected), "{shown}");
    }
}

#[test]
fn names_that_are_replaced_are_sorted_as_they_are_shown() {
    let redaction = Redaction::new(&[7; 32]);
    let children: Vec<_> = (0..8).map(|child| format!("child {child}")).collect();
    let answer = MultiReadResult::Children { children: children.clone() };
    let query = Query { of: at("/odd"), reading: Reading::Names(false) };
    let results = query.take(&mut [answer].into_iter(), Some(&redaction), &mut Trailer::default()).unwrap();
    let [QueryResult::Children(_, names)] = &results[..] else { panic!("{results:?}") };
    assert!(names.is_sorted_by_key(|name| at("/odd").child(name, Some(&redaction)).shown), "{names:?}");
    let query = Query { of: at("/odd"), reading: Reading::Node };
    let lines = query.take(&mut [found("bob", 0)].into_iter(), Some(&redaction), &mut Trailer::default()).unwrap();
    let [QueryResult::Lines(line)] = &lines[..] else { panic!("{lines:?}") };
    assert!(!String::from_utf8_lossy(line).contains("bob"));
}
