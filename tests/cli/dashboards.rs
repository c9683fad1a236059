//! The files for Grafana, Prometheus and Alertmanager, checked by these programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use queuekeeper_testkit::documentation::block;

use super::program::run;
use super::reader::Reader;

/// Runs a program that reads a file; it must find no errors.
fn is_right(program: &str, arguments: &[&str], file: &Path) {
    let output = Command::new(program).args(arguments).arg(file).output();
    let output = output.unwrap_or_else(|error| panic!("{program} cannot be run (.ci/install): {error}"));
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{program} of {}: {printed}", file.display());
}

#[tokio::test]
async fn the_files_are_valid_for_the_programs_that_read_them() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("made/by it");
    let (at, written) = (directory.to_str().unwrap(), |name: &str| directory.join(name));
    let ran = run(home.path(), &["dashboards", at]).await;
    ran.is(0, &["wrote", "grafana/overview.json", "prometheus/alerts.yml", "alertmanager/alertmanager.yml"]);
    is_right("promtool", &["check", "config"], &written("prometheus/prometheus.yml"));
    is_right("amtool", &["check-config"], &written("alertmanager/alertmanager.yml"));
    for name in ["datasources/datasource.yml", "dashboards/provider.yml"] {
        let text = std::fs::read_to_string(written("grafana/provisioning").join(name)).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read["apiVersion"], 1, "{name}");
    }
    assert!(!written("grafana/generate").exists() && !written("prometheus/tests").exists());
    // Grafana runs as another user.
    let mode = written("grafana/overview.json").metadata().unwrap().permissions().mode();
    assert_ne!(mode & 0o044, 0, "{mode:o}");

    // A second run changes nothing.
    let again = run(home.path(), &["dashboards", at]).await;
    assert!(!again.is(0, &["is unchanged"]).out.contains("wrote"), "{again:?}");
}

#[tokio::test]
async fn a_file_with_other_contents_is_kept_unless_forced() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("files");
    let (at, limits) = (directory.to_str().unwrap(), directory.join("prometheus/recording.yml"));
    std::fs::create_dir_all(limits.parent().unwrap()).unwrap();
    std::fs::write(&limits, "ours").unwrap();
    let ran = run(home.path(), &["dashboards", at]).await;
    ran.is(6, &["kept", "recording.yml: it has other contents; --force replaces it", "1 were kept and 0 could not"]);
    assert_eq!(std::fs::read_to_string(&limits).unwrap(), "ours");
    assert!(directory.join("prometheus/alerts.yml").exists(), "all others are written");

    run(home.path(), &["dashboards", at, "--force"]).await.is(0, &["wrote", "recording.yml"]);
    assert!(std::fs::read_to_string(&limits).unwrap().contains("merritt:state_drain:limit_seconds"));

    // A directory in the place of a file cannot be replaced.
    std::fs::remove_file(&limits).unwrap();
    std::fs::create_dir(&limits).unwrap();
    run(home.path(), &["dashboards", at, "--force"]).await.is(6, &["cannot write", "recording.yml"]);

    // A file cannot be created below a file.
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let ran = run(home.path(), &["dashboards", file.to_str().unwrap()]).await;
    ran.is(1, &["cannot write", "no file could be written"]);
}

#[tokio::test]
async fn links_have_the_public_address() {
    let home = tempfile::tempdir().unwrap();
    let (at, url) = (home.path().join("files"), "https://queue.example/merritt");
    run(home.path(), &["dashboards", at.to_str().unwrap(), "--url", &format!("{url}/")]).await.is(0, &["wrote"]);
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    assert!(read("prometheus/alerts.yml").contains(&format!("runbook_url: {url}/runbook#failed-jobs\n")));
    assert!(read("alertmanager/alertmanager.yml").contains(&format!("url: {url}/api/v1/alerts\n")));
    assert!(read("grafana/overview.json").contains(&format!("\"query\": \"{url}\"")));
    assert!(read("prometheus/prometheus.yml").contains("    metrics_path: /merritt/metrics\n"));
    run(home.path(), &["dashboards", at.to_str().unwrap(), "--url", "queue"]).await.is(2, &["--url"]);

    // A proxy removes the prefix; Prometheus connects to the server directly.
    let arguments = ["dashboards", at.to_str().unwrap(), "--force", "--url", url, "--route-prefix", "/"];
    run(home.path(), &arguments).await.is(0, &["wrote"]);
    assert!(read("prometheus/prometheus.yml").contains("    metrics_path: /metrics\n"));
    assert!(read("prometheus/alerts.yml").contains(&format!("runbook_url: {url}/runbook#failed-jobs\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_are_put_in_place_by_the_commands_of_the_documentation_and_added_to_other_configurations() {
    let mut reader = Reader::new();
    for (name, own) in [(" /etc/", "etc/"), (" /var/", "var/")] {
        reader.replace(name, format!(" {}", reader.at(own)));
    }
    // The group of Prometheus, which only its package makes.
    reader.replace("-g prometheus", format!("-g {}", rustix::process::getegid().as_raw()));
    // What the packages of Prometheus and Grafana make.
    for name in ["etc/prometheus", "etc/grafana/provisioning"] {
        std::fs::create_dir_all(reader.at(name)).unwrap();
    }
    reader.terminal().follow_all(block("docs/alerts.md", "queuekeeper dashboards files "));
    let token = std::fs::read_to_string(reader.at("etc/prometheus/alertmanager.token")).unwrap();
    assert!(token.starts_with("qk_") && token.lines().count() == 1, "{token}");
    for name in
        ["var/lib/grafana/dashboards/queuekeeper/overview.json", "etc/grafana/provisioning/dashboards/provider.yml"]
    {
        assert!(Path::new(&reader.at(name)).exists(), "{name}");
    }

    let add = |name: &str, before: &str, block: &str| {
        let file = reader.home().join("etc/prometheus").join(name);
        std::fs::write(&file, format!("{before}{block}")).unwrap();
        file
    };
    let scraped = block("docs/alerts.md", "rule_files: ");
    is_right("promtool", &["check", "config"], &add("prometheus.yml", "", scraped));
    // The line that is not for everybody.
    std::fs::write(reader.at("etc/prometheus/prometheus.token"), "qk_").unwrap();
    let with_token = scraped.replace("# authorization:", "authorization:");
    assert_ne!(with_token, scraped);
    is_right("promtool", &["check", "config"], &add("prometheus.yml", "", &with_token));
    let receivers = block("docs/alerts.md", "receivers: ");
    is_right("amtool", &["check-config"], &add("alertmanager.yml", "route: {receiver: queuekeeper}\n", receivers));
}
