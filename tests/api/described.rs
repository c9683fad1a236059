use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use queuekeeper_testkit::wait::eventually;
use serde_json::Value;

/// The codes of what ZooKeeper did not answer in time.
const LATE: [u16; 2] = [503, 504];

/// A demo in a process of its own, ended by its id when dropped.
struct Demo {
    child: Child,
    web: String,
}

impl Demo {
    fn start(temporary: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(["demo", "--web.listen-address", "127.0.0.1:0", "--log.level", "warn"])
            .args(["--jobs", "300", "--rate", "20"])
            .env("TMPDIR", temporary)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut web = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["Status", "page", address] = words[..] {
                web = Some(address.trim_end_matches('/').to_owned());
            }
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        Self { child, web: web.expect("the demo says where its page is") }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that `.ci/install` has installed.
fn tool(name: &str) -> PathBuf {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/python/bin").join(name);
    assert!(tool.exists(), "{} is not installed: run .ci/install", tool.display());
    tool
}

#[track_caller]
fn succeed(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{complained}", output.status);
}

/// How many requests are made up for each operation, besides those that cover its parameters:
/// `QUEUEKEEPER_TEST_API_EXAMPLES`.
fn examples() -> String {
    std::env::var("QUEUEKEEPER_TEST_API_EXAMPLES").unwrap_or_else(|_| "10".to_owned())
}

#[tokio::test]
async fn the_description_is_valid_and_a_fuzzer_driven_by_it_finds_no_undocumented_answer() {
    let temporary = tempfile::tempdir().unwrap();
    let demo = Demo::start(temporary.path());
    let document = reqwest::get(format!("{}/api/v1/openapi.json", demo.web)).await.unwrap().text().await.unwrap();
    let file = temporary.path().join("openapi.json");
    std::fs::write(&file, &document).unwrap();
    succeed(Command::new(tool("openapi-spec-validator")).arg(&file));
    // Whether a text is a cursor only the server knows, so what the description allows may still be refused; but each
    // answer has to be one of those described, in its media type and shape, and none a failure.
    // That the working storage is full is no failure: the demo's is small, and uploads and waiting jobs fill it. Nor is
    // it that ZooKeeper does not answer in time, where the machine is busy.
    let expected = "[checks.not_a_server_error]\nexpected-statuses = [\"2xx\", \"3xx\", \"4xx\", 503, 504, 507]\n";
    std::fs::write(temporary.path().join("schemathesis.toml"), expected).unwrap();
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                  unsupported_method";
    succeed(
        Command::new(tool("schemathesis"))
            .arg("run")
            .arg(&file)
            // No foreign page, and a body as it should be: what is refused before it reaches a route is no matter of
            // it.
            .args(["-H", "Sec-Fetch-Site: none", "-H", "Content-Type: application/json"])
            .args(["--url", &demo.web, "--checks", checks, "--phases", "examples,coverage,fuzzing"])
            .args(["--max-examples", &examples(), "--seed", "1", "--generation-database", "none"])
            // Longer than the server takes to say so.
            .args(["--request-timeout", "60"])
            .current_dir(temporary.path()),
    );
    // What is only read answers as a rule.
    let document: Value = serde_json::from_str(&document).unwrap();
    let paths = document["paths"].as_object().unwrap();
    for path in paths.iter().filter_map(|(path, operations)| operations.get("get").map(|_| path)) {
        let without_names = path.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
        let url = format!("{}{}", demo.web, without_names.collect::<Vec<_>>().join("1"));
        let is_answered =
            async || reqwest::get(&url).await.is_ok_and(|answer| !LATE.contains(&answer.status().as_u16()));
        eventually(Duration::from_mins(2), &format!("{url} is answered in time"), is_answered).await;
    }
    // So does the rest, at least once where there were many requests.
    let metrics = reqwest::get(format!("{}/metrics", demo.web)).await.unwrap().text().await.unwrap();
    let mut routes = BTreeMap::<_, [f64; 2]>::new();
    for line in metrics.lines().filter(|line| line.starts_with("queuekeeper_http_requests_total{")) {
        let label = |name: &str| line.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap();
        let [well, late] = routes.entry((label("method"), label("route"))).or_default();
        let count = line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        match label("code").parse().unwrap() {
            code if LATE.contains(&code) => *late += count,
            // What is refused for its form alone says nothing of the rest.
            400 | 405 | 406 | 413 | 415 | 422 => {}
            _ => *well += count,
        }
    }
    assert!(routes.len() > 40, "{metrics}");
    routes.retain(|_, [well, late]| *late > 10.0 && *well < 1.0);
    assert!(routes.is_empty(), "these were never answered in time (answered, late): {routes:?}");
}
