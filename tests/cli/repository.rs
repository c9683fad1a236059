//! A repository in one directory, running.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::program::queuekeeper;

/// A running repository.
pub(crate) struct Repository {
    child: Child,
    pub(crate) address: String,
}

impl Repository {
    /// Starts one, and waits until it has said where its pages are.
    pub(crate) fn start(data: &Path) -> Self {
        let data = data.display().to_string();
        let arguments = ["standalone", "--data", &data, "--web.listen-address", "127.0.0.1:0", "--log.level", "warn"];
        let mut child = queuekeeper(Path::new("/nonexistent"), &arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let pages = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.strip_prefix("Pages:").map(|rest| rest.trim().trim_end_matches('/').to_owned()));
        let address = pages.unwrap_or_else(|| panic!("it ended: {:?}", child.wait_with_output_of_error()));
        Self { child, address }
    }

    /// The same with a profile `internal`, by which it fetches from this machine.
    pub(crate) fn start_beside_origins(data: &Path) -> Self {
        let repository = Self::start(data);
        let profile = std::fs::read_to_string(data.join("profiles/default.yaml")).unwrap();
        let profile = profile.replace("name: default", "name: internal") + "\ninternal_hosts: [127.0.0.1]\n";
        std::fs::write(data.join("profiles/internal.yaml"), profile).unwrap();
        repository
    }

    /// Waits until it ends by itself: its exit code, and what it wrote to standard error.
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let err = self.child.wait_with_output_of_error();
        (self.child.wait().unwrap().code(), err)
    }

    /// The process of its ZooKeeper.
    pub(crate) fn zookeeper(&self) -> Pid {
        let children = |of: u32| {
            let listed = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
            listed.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()).collect::<Vec<_>>()
        };
        let mut left = vec![self.child.id()];
        while let Some(pid) = left.pop() {
            if std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "java") {
                return Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            }
            left.extend(children(pid));
        }
        panic!("no ZooKeeper runs");
    }

    /// Ends it as a signal does, and waits for its end.
    pub(crate) fn stop(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let ended = self.child.wait().unwrap();
        assert!(signal == Signal::KILL || ended.success(), "{ended}");
    }
}

impl Drop for Repository {
    /// A test that fails leaves no process behind: ZooKeeper ends with the program that started it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a child wrote to standard error until its end.
trait EndedChild {
    fn wait_with_output_of_error(&mut self) -> String;
}

impl EndedChild for Child {
    fn wait_with_output_of_error(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut err) = self.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut err, &mut text);
        }
        let _ = self.wait();
        text
    }
}
