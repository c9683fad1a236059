//! Killed at any write, it ends as if it had run once.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use queuekeeper_mill::duplicate::ASIDE;
use queuekeeper_testkit::sqlite;
use queuekeeper_testkit::traced::{self, Trace, Traced, WriteFault};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::world;

/// What the child works on.
const CHILD: &str = "QUEUEKEEPER_TEST_MILL_CHILD";

/// Each write is tried where this is `every`, and each about those of what is kept aside where it is `aside`.
const WHICH: &str = "QUEUEKEEPER_TEST_KILLED";

/// How many writes before and behind one of what is kept aside are tried with it: the database's, before and after.
const ABOUT: usize = 2;

/// How many writes of copies are tried else, and as many of all.
const SOME: usize = 6;

const AT_A_TIME: usize = 3;

/// How long a process may take until all is done: the mill waits for a minute where something has failed.
const LIMIT: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by another test, in a process of its own"]
async fn child() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    traced::show_writes();
    let mill = world::mill(Path::new(&directory)).await;
    let stop = CancellationToken::new();
    let run = tokio::spawn(mill.run(stop.clone()));
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await.unwrap().unwrap();
    stop.cancel();
    run.await.unwrap();
}

/// Whether a loop is over, the log was followed to its end, and nothing waits.
fn is_done(directory: &Path) -> bool {
    let left = "SELECT (SELECT COUNT(*) FROM loops WHERE producer = 'duplication' AND loop > 0), (SELECT COUNT(*) FROM morsels),
        (SELECT COUNT(*) FROM tasks), (SELECT COUNT(*) FROM intents),
        (SELECT COUNT(*) FROM audit_log WHERE seq > (SELECT MAX(seq) FROM followers))";
    sqlite::rows(&world::database(directory), left) == [serde_json::json!([1, 0, 0, 0, 0])]
}

/// Runs a process until all is done, or it has ended.
async fn run(directory: &Path, fault: Option<WriteFault>) -> Trace {
    // Nobody waits here for the leases of a process that is gone.
    for sql in [
        "UPDATE tasks SET visible = 0, holder = NULL WHERE holder IS NOT NULL",
        "UPDATE tasks SET visible = 0 WHERE attempts > 0 OR is_put_off",
        "UPDATE loops SET lease_end = 0",
        "UPDATE intents SET lease_end = 0",
    ] {
        let _changed = sqlite::rows(&world::database(directory), sql);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "killed::run::child", "--ignored", "--quiet", "--test-threads", "1"])
        .env(CHILD, directory);
    let process = Traced::start(&command, directory.to_owned(), fault);
    let began = Instant::now();
    while !process.has_ended() && !is_done(directory) {
        if began.elapsed() > LIMIT {
            let end = world::end(directory).await;
            panic!("{fault:?}: it is not done: {end:#?}, {:?}", process.stop().await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    process.stop().await
}

/// The end of a world whose first process meets a fault, and what that one wrote.
async fn end(fault: Option<WriteFault>) -> (Trace, Vec<String>) {
    let directory = TempDir::new().unwrap();
    world::set_up(directory.path()).await;
    let trace = run(directory.path(), fault).await;
    let (mut last, mut attempts) = (trace.code, 0);
    while last != Some(0) {
        attempts += 1;
        assert!(attempts < 4, "{fault:?}");
        last = run(directory.path(), None).await.code;
    }
    (trace, world::end(directory.path()).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "which writes were tried is what a long run shows")]
async fn copies_are_made_changed_and_deleted_once_by_a_mill_that_is_killed_at_any_write() {
    let (trace, expected) = end(None).await;
    let has = |line: &str| expected.iter().any(|found| found.starts_with(line));
    assert!(
        has("replica/account1.theses/changed: \"new\"") && has("replica/account1.theses/one: \"1\""),
        "{expected:#?}"
    );
    assert!(
        has("replica/x-queuekeeper-aside/..: \"old\"") && has("replica/x-queuekeeper-aside/..: \"gone\""),
        "{expected:#?}"
    );
    assert!(has("replica/account1.theses/described: \"same\" Some(\"text/html\")"), "{expected:#?}");
    let writes = trace.writes.len();
    // Most are of the database: those of the copies are tried as often as all others.
    let is_of_copy = |at: &usize| {
        let write = trace.writes[at - 1].to_string();
        write.contains("replica/") && !write.contains("probe")
    };
    let of_copies = (1..=writes).filter(is_of_copy).collect::<Vec<_>>();
    let chosen: BTreeSet<usize> = match std::env::var(WHICH).as_deref() {
        Ok("every") => (1..=writes).collect(),
        Ok("aside") => {
            let aside = of_copies.iter().filter(|at| trace.writes[**at - 1].to_string().contains(ASIDE));
            aside.flat_map(|at| at.saturating_sub(ABOUT).max(1)..=(at + ABOUT).min(writes)).collect()
        }
        _ => {
            let some = |of: &[usize]| {
                let step = of.len().div_ceil(SOME);
                of.iter().skip(step / 2).step_by(step).copied().collect::<Vec<_>>()
            };
            some(&of_copies).into_iter().chain(some(&(1..=writes).collect::<Vec<_>>())).collect()
        }
    };
    let trials = chosen.into_iter().map(|at| async move {
        let trial = move || Handle::current().block_on(end(Some(WriteFault::Kill(at))));
        (at, tokio::task::spawn_blocking(trial).await.unwrap())
    });
    let mut trials = stream::iter(trials.collect::<Vec<_>>()).buffer_unordered(AT_A_TIME);
    let (mut met, mut differences) = (0, Vec::new());
    while let Some((at, (trace, found))) = trials.next().await {
        let behind = trace.writes.last().filter(|_| trace.code.is_none());
        met += usize::from(behind.is_some());
        println!("killed behind write {at} of {writes}: {}", behind.map_or("none".to_owned(), ToString::to_string));
        // How often a line is there counts: something put aside twice has one line twice.
        let often = |lines: &[String], line: &String| lines.iter().filter(|other| *other == line).count();
        let more = found.iter().filter(|line| often(&found, line) > often(&expected, line));
        let more = more.map(|line| format!("left over: {line}"));
        let less = expected.iter().filter(|line| often(&found, line) < often(&expected, line));
        let less = less.map(|line| format!("missing: {line}"));
        differences.extend(more.chain(less).map(|line| format!("{at}, {behind:?}: {line}")));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(met >= SOME / 2, "{met} kills");
}
