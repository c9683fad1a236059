//! What stores are compared with: `cp` with `sha256sum`, and rclone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::TRANSFERS;
use super::child::Served;

/// What another tool took.
pub(super) struct Timed {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
}

/// The seconds that a shell takes for a script.
pub(super) fn sh(script: &str, variables: &[(String, String)]) -> f64 {
    let began = Instant::now();
    let mut command = Command::new("sh");
    command.args(["-ec", script]).envs(variables.iter().cloned()).stdout(Stdio::null()).stderr(Stdio::null());
    // rclone does not start where it is set.
    command.env_remove("AWS_CA_BUNDLE");
    assert!(command.status().unwrap().success(), "{script}");
    began.elapsed().as_secs_f64()
}

/// Lets no tool write what another one left.
pub(super) fn settle(place: &Path) {
    sh(&format!("sync -f {}", place.display()), &[]);
}

/// `cp` and `sha256sum`, without a sync, with one at the end, and with one of each file.
pub(super) fn cp(source: &Path, place: &Path) -> [Timed; 3] {
    settle(place);
    let to = place.join("cp");
    let (from, copy) = (source.display(), to.display());
    let digest = format!("find {copy} -type f -print0 | xargs -0 -n 1000 sha256sum");
    let copied = sh(&format!("cp -r {from} {copy}; {digest}"), &[]);
    let synced = copied + sh(&format!("sync -f {copy}"), &[]);
    fs::remove_dir_all(&to).unwrap();
    settle(place);
    let each = format!("find {copy} -type f -print0 | xargs -0 -n 250 -P {TRANSFERS} sync");
    let each = sh(&format!("cp -r {from} {copy}; {each}; {digest}"), &[]);
    fs::remove_dir_all(&to).unwrap();
    [
        Timed { name: "cp + sha256sum, not synced", seconds: copied },
        Timed { name: "cp + sha256sum, synced once at the end", seconds: synced },
        Timed { name: "cp + sha256sum, each file synced", seconds: each },
    ]
}

/// rclone, without a sync, and with one at the end where it writes to files here.
pub(super) fn rclone(server: Option<&Served>, from: &str, to: &str, place: &Path) -> Vec<Timed> {
    settle(place);
    let options = format!("--checksum --transfers {TRANSFERS} --checkers {TRANSFERS} --config /dev/null");
    let variables = server.map(Served::rclone).unwrap_or_default();
    let copied = sh(&format!("rclone copy {options} {from} {to}"), &variables);
    let mut timed = vec![Timed { name: "rclone copy --checksum", seconds: copied }];
    if server.is_none() {
        let seconds = copied + sh(&format!("sync -f {to}"), &[]);
        timed.push(Timed { name: "rclone copy --checksum, synced once at the end", seconds });
    }
    timed
}

/// What a put into a directory is compared with.
pub(super) fn of_put(source: &Path, place: &Path) -> Vec<Timed> {
    let mut timed = Vec::from(cp(source, place));
    let to = place.join("rclone");
    timed.extend(rclone(None, source.to_str().unwrap(), to.to_str().unwrap(), place));
    fs::remove_dir_all(to).unwrap();
    timed
}

/// What a get out of a directory is compared with: neither syncs.
pub(super) fn of_get(content: &Path, place: &Path) -> Vec<Timed> {
    let [copied, _, _] = cp(content, place);
    let to = place.join("rclone");
    let mut timed = rclone(None, content.to_str().unwrap(), to.to_str().unwrap(), place);
    fs::remove_dir_all(to).unwrap();
    timed.truncate(1);
    timed.insert(0, copied);
    timed
}
