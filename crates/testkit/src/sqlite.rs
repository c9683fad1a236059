//! A database of SQLite, read and changed by a program that knows nothing of who wrote it: Python's `sqlite3`.
//!
//! One Python serves a whole test binary: starting one takes longer than most statements, and tests wait by asking
//! again and again. It ends with its input, which ends with the test binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Answers each line, a path and a statement, by one line: rows, or a text that says what is wrong.
const SERVE: &str = r"
import contextlib, json, sqlite3, sys
for line in sys.stdin:
    path, sql = json.loads(line)
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=60)) as database, database:
            rows = [[value.hex() if isinstance(value, bytes) else value for value in row] for row in database.execute(sql)]
    except sqlite3.Error as error:
        rows = str(error)
    print(json.dumps(rows), flush=True)
";

/// A Python that answers.
struct Python {
    /// It ends when its input does.
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

static PYTHON: LazyLock<Mutex<Python>> = LazyLock::new(|| {
    let mut command = Command::new("python3");
    let mut process =
        command.args(["-c", SERVE]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let (input, output) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
    Mutex::new(Python { _process: process, input, output: BufReader::new(output) })
});

/// Executes a statement; the answer has a JSON array for each row, in which bytes are hexadecimal.
///
/// # Panics
/// When it cannot be executed.
#[must_use]
pub fn rows(database: &Path, sql: &str) -> Vec<Value> {
    let mut answer = String::new();
    {
        let mut python = PYTHON.lock();
        writeln!(python.input, "{}", json!([database, sql])).expect("python3 reads");
        python.output.read_line(&mut answer).expect("python3 answers");
    }
    match serde_json::from_str(&answer) {
        Ok(Value::Array(rows)) => rows,
        other => panic!("{sql}: {other:?}"),
    }
}
