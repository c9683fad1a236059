//! A database of SQLite, read and changed by a program that knows nothing of who wrote it: Python's `sqlite3`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const RUN: &str = "
import json, sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=60) as database:
    for row in database.execute(sys.argv[2]):
        print(json.dumps([value.hex() if isinstance(value, bytes) else value for value in row]))
";

/// Executes a statement; the answer has a JSON array for each row, in which bytes are hexadecimal.
///
/// # Panics
/// When it cannot be executed.
#[must_use]
pub fn rows(database: &Path, sql: &str) -> Vec<Value> {
    let output = Command::new("python3").args(["-c", RUN]).arg(database).arg(sql).output().expect("python3 runs");
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
