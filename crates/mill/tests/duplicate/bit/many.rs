//! Many items with three rotten ones: those are found, and no other, in memory that does not grow with the items.
//!
//! The long form, by hand: `QUEUEKEEPER_MANY_ITEMS=1000000 cargo test --test duplicate many -- --nocapture`.

use std::fs;
use std::process::Command;
use std::time::Instant;

use queuekeeper_testkit::s3::S3Server;

use super::world::Bit;
use crate::duplicate::world::{BUCKET, World, item, main, space};

/// What a process of its own works on: an empty database.
const DATABASE: &str = "QUEUEKEEPER_TEST_MANY_DATABASE";

/// How many items the short form has.
const SHORT: u64 = 2_100;

/// How much more memory a process may take, in kilobytes, for pages of a thousand items each, however many there are.
const MOST_KB: u64 = 96 << 10;

const CONTENT: &str = "the content of every item\n";

/// A figure of this process, in kilobytes.
fn memory_kb(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn key(number: u64) -> String {
    format!("many/{number:08}")
}

/// Puts so many items into the store, and into the records, as one that was put through the program is recorded.
async fn plant(world: &World, server: &S3Server, number: u64) {
    world.put(&main(), true, &item("first"), CONTENT, "text/plain").await;
    let keys = (0..number).map(|number| format!("content/{}/{}", space(), key(number)));
    server.plant(BUCKET, keys, CONTENT.as_bytes());
    let first = "(SELECT id FROM items WHERE key = 'first')";
    let items = format!(
        "INSERT INTO items (account, space, key) SELECT account, space, convert_to('many/' || lpad(n::text, 8, '0'), 'UTF8')
        FROM items, generate_series(0, {number} - 1) AS n WHERE key = 'first'"
    );
    world.tamper(items).await;
    for (table, columns) in [
        ("copies", "size, digests, etag, properties, seq, is_deleted, proof, proven"),
        ("audit_head", "seq, size, digests, is_deleted"),
    ] {
        let (kept, rows) = (format!("{table}.{}", columns.replace(", ", &format!(", {table}."))), "items.id <> item");
        let sql = format!(
            "INSERT INTO {table} (item, store, {columns}) SELECT items.id, store, {kept} FROM items, {table}
            WHERE item = {first} AND {rows}"
        );
        world.tamper(sql).await;
    }
}

/// In a process of its own: the memory of other tests would count, too.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are what the long form is for")]
fn of_many_items_exactly_the_rotten_ones_are_found_in_memory_that_stays_flat() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "duplicate::bit::many::child", "--ignored", "--nocapture", "--test-threads", "1"]);
    let output = command.env(DATABASE, World::postgres()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{}", output.status);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by another test, in a process of its own"]
#[expect(clippy::print_stdout, reason = "the figures are what the long form is for")]
async fn child() {
    let Ok(database) = std::env::var(DATABASE) else { return };
    let number = std::env::var("QUEUEKEEPER_MANY_ITEMS").ok().and_then(|number| number.parse().ok()).unwrap_or(SHORT);
    let world = World::from_bucket_in(&database).await;
    plant(&world, world.server(), number).await;
    let rotten = [key(1), key(number / 2), key(number - 1)];
    for key in &rotten {
        // What was planted is one content for all of them.
        world.put(&main(), false, &item(key), CONTENT, "text/plain").await;
        world.rot(key);
    }
    let bit = Bit::new(&world, "read");
    let before = memory_kb("VmRSS");
    // The peak is counted from here.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let began = Instant::now();
    bit.run_loop().await;
    let (seconds, peak) = (began.elapsed().as_secs_f64(), memory_kb("VmHWM"));
    let rate = number as f64 / seconds;
    println!("{number} items in {seconds:.1} s, {rate:.0}/s; {before} KiB before, {peak} KiB at most");
    assert_eq!(bit.errors().await.into_keys().collect::<Vec<_>>(), rotten);
    assert_eq!(bit.counts().await, [("success".to_owned(), number - 2), ("failure".to_owned(), 3)].into());
    assert!(peak < before + MOST_KB, "{before} KiB before, {peak} KiB at most");
}
