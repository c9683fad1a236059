//! Processes of the mill, each killed without warning and started again.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use queuekeeper_testkit::process::Program;
use tokio_util::sync::CancellationToken;

use super::world::{self, Deployment};

/// How many workers a process has, and what it is called.
const WORKERS: &str = "QUEUEKEEPER_TEST_CHAOS_WORKERS";
const NAME: &str = "QUEUEKEEPER_TEST_CHAOS_NAME";

/// How many tasks the processes of workers process at once. The last one only leads loops, when it does.
const OF_PROCESSES: [usize; 3] = [4, 4, 0];

/// The one that only leads loops.
pub(super) const PRODUCER: usize = OF_PROCESSES.len() - 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by another test, in a process of its own"]
async fn child() {
    let (Some(place), Ok(name), Ok(workers)) = (Deployment::of_process(), std::env::var(NAME), std::env::var(WORKERS))
    else {
        return;
    };
    let workers = workers.parse().unwrap();
    // A service manager would start it again where the database is away.
    let mill = loop {
        match world::mill(&place, &name, workers).await {
            Ok(mill) => break mill,
            Err(_away) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    let stop = CancellationToken::new();
    let run = tokio::spawn(mill.run(stop.clone()));
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await.unwrap().unwrap();
    stop.cancel();
    run.await.unwrap();
}

/// The processes that run.
pub(super) struct Processes {
    place: Deployment,
    running: Vec<(String, Program)>,
    started: usize,
}

impl Processes {
    pub(super) fn start(place: &Deployment) -> Self {
        let mut processes = Self { place: place.clone(), running: Vec::new(), started: 0 };
        for workers in OF_PROCESSES {
            let started = processes.launch(workers);
            processes.running.push(started);
        }
        processes
    }

    /// Kills one without warning, and starts another one in its place.
    pub(super) fn kill(&mut self, at: usize) {
        self.none_has_ended();
        drop(self.running.remove(at));
        let started = self.launch(OF_PROCESSES[at]);
        self.running.insert(at, started);
    }

    /// Kills all of them, and starts others in their place.
    pub(super) fn kill_all(&mut self) {
        self.none_has_ended();
        self.running.clear();
        for workers in OF_PROCESSES {
            let started = self.launch(workers);
            self.running.push(started);
        }
    }

    /// The names of those that run.
    pub(super) fn names(&self) -> Vec<&str> {
        self.running.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// None ends by itself, whatever else does.
    pub(super) fn none_has_ended(&mut self) {
        for (name, Program(child)) in &mut self.running {
            let ended = child.try_wait().unwrap();
            let log = || std::fs::read_to_string(self.place.directory.join(format!("{name}.log"))).unwrap_or_default();
            assert!(ended.is_none(), "{name} ended by itself, {ended:?}: {}", log());
        }
    }

    fn launch(&mut self, workers: usize) -> (String, Program) {
        self.started += 1;
        let name = format!("process-{}", self.started);
        let log = File::create(self.place.directory.join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "chaos::processes::child", "--ignored", "--nocapture", "--test-threads", "1"])
            .envs(self.place.variables())
            .env(WORKERS, workers.to_string())
            .env(NAME, &name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log);
        (name, Program(command.spawn().unwrap()))
    }
}
