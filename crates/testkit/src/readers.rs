//! Other people's readers of an exposition: `promtool` and Python's `prometheus_client`.

use std::io::Write;
use std::process::{Command, Stdio};

/// Has `promtool check metrics` read a text exposition; it must report nothing.
pub fn promtool_is_content(text: &str) {
    let (status, output) = feed(
        Command::new("promtool").args(["check", "metrics"]),
        text,
        "promtool cannot be run; it comes with Debian's package prometheus",
    );
    assert!(status && output.is_empty(), "promtool: {output}");
}

/// Reads an exposition with Python's parser of its form and returns one line for each sample: the family's type, the
/// sample's name, its labels as sorted JSON, and its value.
pub fn python_reads(exposition: &str, is_openmetrics: bool) -> Vec<String> {
    const READ: &str = "
import io, json, sys
from prometheus_client.parser import text_fd_to_metric_families as text
from prometheus_client.openmetrics.parser import text_fd_to_metric_families as openmetrics
read = openmetrics if sys.argv[1] == 'openmetrics' else text
exposition = sys.stdin.buffer.read().decode()
for family in read(io.StringIO(exposition, newline='\\n')):
    for sample in family.samples:
        print(family.type, sample.name, json.dumps(sample.labels, sort_keys=True), repr(float(sample.value)))
";
    let form = if is_openmetrics { "openmetrics" } else { "text" };
    let missing = "no Python here has the package prometheus_client; install Debian's python3-prometheus-client, or \
                   name another Python in QUEUEKEEPER_PYTHON";
    // Debian's own Python has Debian's package, whichever comes first on the path.
    let pythons = std::env::var("QUEUEKEEPER_PYTHON")
        .map_or_else(|_| vec!["python3".to_owned(), "/usr/bin/python3".to_owned()], |python| vec![python]);
    let has_package = |python: &String| {
        let import = Command::new(python).args(["-c", "import prometheus_client"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    let python = pythons.into_iter().find(has_package).expect(missing);
    let (status, output) = feed(Command::new(&python).args(["-c", READ, form]), exposition, missing);
    assert!(status, "Python does not read it as {form}: {output}");
    output.lines().map(str::to_owned).collect()
}

/// Runs a command on an input; returns whether it succeeded and everything that it printed.
fn feed(command: &mut Command, input: &str, missing: &str) -> (bool, String) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{missing} ({error})"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let input = input.to_owned();
    // From a thread, or a child that prints while it reads would wait for us and we for it.
    let feeding = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("a child that was started can be waited for");
    let fed = feeding.join().expect("writing does not panic");
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success() && fed.is_ok(), printed.into_owned())
}
