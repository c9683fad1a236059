//! Demos that cannot start.

use std::process::Command;

use super::program::command;

/// Runs a demo that ends early, and returns its exit code and output.
fn refused(arguments: &[&str], change: impl FnOnce(&mut Command)) -> (Option<i32>, String) {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = command(temporary.path());
    change(command.args(arguments));
    let output = command.output().unwrap();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "it left files");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_prevents_a_demo_from_starting_is_reported_in_one_line_with_its_exit_code() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut occupied = Command::new(env!("CARGO_BIN_EXE_queuekeeper"));
    let output = occupied.args(["demo", "--web.listen-address", &address]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&address) && said.contains("--web.listen-address"), "{said}");

    let nowhere = tempfile::tempdir().unwrap();
    let (code, said) = refused(&[], |command| {
        command.env("ZOOKEEPER_HOME", nowhere.path());
    });
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");

    // Nothing is started if Prometheus is missing, not even a ZooKeeper, which is missing as well.
    let (code, said) = refused(&["--with-prometheus"], |command| {
        command.env("PATH", nowhere.path());
    });
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`apt-get install prometheus prometheus-alertmanager`"), "{said}");
    assert!(said.starts_with("error: Prometheus and Alertmanager") && said.lines().count() == 1, "{said}");
    let (code, said) = refused(&["--with-prometheus", "--rate", "41"], |_| {});
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("--rate") && said.contains("with --with-prometheus is 40") && said.lines().count() == 1,
        "{said}"
    );

    let unused = format!("127.0.0.1:{}", queuekeeper_testkit::process::free_port());
    let (code, said) = refused(&["--zookeeper", &unused], |_| {});
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("refused") && said.lines().count() == 1, "{said}");

    for (arguments, allowed) in
        [(["--rate", "0"], "0.1 to 2000"), (["--jobs", "5"], "10..=500000"), (["--zookeeper", "a b"], "host:port")]
    {
        let (code, said) = refused(&arguments, |_| {});
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(allowed), "{said}");
    }
}
