//! A transaction in words and numbers, and what the server's answers become.

use super::*;
use crate::testing::stat as stat_of;

fn path(text: &str) -> Path {
    Path::parse(text)
}

fn operations() -> Transaction {
    let mut transaction = Transaction::new();
    transaction
        .create_ephemeral(path("/jobs/jid0000000001/lock"))
        .check(path("/jobs/jid0000000001/status"), 3)
        .check_exists(path("/jobs"))
        .set(path("/jobs/jid0000000001/priority"), "5\n", 4)
        .create(path("/jobs/states/pending/05-jid0000000001"), "")
        .create(path("/jobs/jid0000000001/bid"), "bid0000000007")
        .delete(path("/jobs/states/failed/05-jid0000000001"), None)
        .delete(path("/jobs/jid0000000001/store"), Some(2))
        .delete(path("/jobs/jid0000000001/lock"), None);
    transaction
}

#[test]
fn a_transaction_lists_its_operations_a_line_each() {
    let expected = "\
create /jobs/jid0000000001/lock (ephemeral)
check /jobs/jid0000000001/status at version 3
check /jobs exists
set /jobs/jid0000000001/priority at version 4 = 5\\n
create /jobs/states/pending/05-jid0000000001
create /jobs/jid0000000001/bid = bid0000000007
delete /jobs/states/failed/05-jid0000000001
delete /jobs/jid0000000001/store at version 2
delete /jobs/jid0000000001/lock
";
    assert_eq!(operations().to_string(), expected);
    assert_eq!(operations().operations()[7].path(), &path("/jobs/jid0000000001/store"));
}

#[test]
fn what_lasts_of_a_transaction_is_neither_a_check_nor_a_lock_of_its_own() {
    let lasting = |transaction: &Transaction| transaction.lasting().map(ToString::to_string).collect::<Vec<_>>();
    let all: Vec<_> = operations().operations().iter().map(ToString::to_string).collect();
    assert_eq!(lasting(&operations()), all[3..8]);
    assert_eq!(operations().title(), "set /jobs/jid0000000001/priority");
    let mut release = Transaction::new();
    assert_eq!((release.is_empty(), release.title().as_str()), (true, "nothing"));
    release.check_exists(path("/jobs")).delete(path("/jobs/jid0000000001/lock"), None);
    assert_eq!(lasting(&release), ["delete /jobs/jid0000000001/lock"]);
    let mut checks = Transaction::new();
    checks.check_exists(path("/jobs"));
    assert_eq!((lasting(&checks).len(), checks.title().as_str()), (0, "check /jobs"));
    checks.append(release);
    assert!(checks.operations().len() == 3 && !checks.is_empty());
}

#[test]
fn a_request_is_as_large_as_its_paths_and_values_and_a_little_for_each_operation() {
    let mut transaction = Transaction::new();
    transaction
        .create(path("/jobs"), "12345")
        .set(path("/locks"), "123", 0)
        .check(path("/"), 0)
        .delete(path("/"), None);
    assert_eq!(transaction.size_bytes(), 5 + 5 + 6 + 3 + 1 + 1 + 4 * 25);
}

#[test]
fn data_is_shown_as_far_as_it_fits_a_line_or_two() {
    let shown = |data: &[u8]| Shown(data).to_string();
    assert_eq!(shown(b"a\x1b\xff\n"), "a\\u{1b}\u{fffd}\\n");
    assert_eq!(shown("\u{e9}".repeat(300).as_bytes()), "\u{e9}".repeat(300));
    let cut = format!("{}..", "x".repeat(300));
    for length in [301, 1200, 1201, 5000] {
        assert_eq!(shown("x".repeat(length).as_bytes()), cut, "{length}");
    }
    // As many bytes as characters of four bytes take, and one more.
    let crab = "\u{1f980}".repeat(300);
    assert_eq!([shown(crab.as_bytes()), shown(format!("{crab}x").as_bytes())], [crab.clone(), crab + ".."]);
}

#[test]
fn only_answers_that_have_a_stat_give_one() {
    let created = |stat| MultiWriteResult::Create { path: "/jobs".to_owned(), stat };
    assert_eq!(stat(&created(stat_of())), Some(stat_of()));
    assert_eq!(stat(&created(Stat { czxid: -1, ..stat_of() })), None);
    assert_eq!(stat(&MultiWriteResult::SetData { stat: stat_of() }), Some(stat_of()));
    assert_eq!(stat(&MultiWriteResult::Delete), None);
}
