//! A queue with daemons and, where wanted, the sidecar beside them, each a process of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::working::WorkingStorage;
use queuekeeper_queue::Queue;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::record::ItemStatus;
use queuekeeper_queue::state::BatchState;
use queuekeeper_testkit::origin::Origin;
use queuekeeper_testkit::wire::Wire;
use queuekeeper_zookeeper::server::Options;
use queuekeeper_zookeeper::{Config, PrivateServer};
use uuid::Uuid;
use zookeeper_client::Client;

/// The collection of all deposits.
pub(crate) const PROFILE: &str = "bench";

/// A program of ours, killed when dropped.
pub(crate) struct Program {
    child: Child,
    address: String,
    http: reqwest::Client,
}

impl Program {
    async fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        // In a session of its own, as a service manager starts it: the processors are shared out among these first.
        let child = Command::new("setsid")
            .arg(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(arguments)
            .args(["--web.listen-address", &address, "--log.level", "warn"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let program = Self { child, address, http: reqwest::Client::new() };
        let deadline = Instant::now() + Duration::from_mins(1);
        while program.get("/-/ready").await.is_none() {
            anyhow::ensure!(Instant::now() < deadline, "queuekeeper {} is not ready after a minute", arguments[0]);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(program)
    }

    /// What it answers, where that is a success.
    pub(crate) async fn get(&self, path: &str) -> Option<String> {
        let sent = self.http.get(format!("http://{}{path}", self.address)).send().await;
        sent.ok()?.error_for_status().ok()?.text().await.ok()
    }

    /// The value of a series of its metrics, which is named with its labels.
    pub(crate) async fn metric(&self, series: &str) -> anyhow::Result<f64> {
        let page = self.get("/metrics").await.context("no metrics")?;
        let value = page.lines().find_map(|line| line.strip_prefix(series)).with_context(|| format!("no {series}"))?;
        Ok(value.trim().parse()?)
    }

    /// The processor time that it has taken so far, in milliseconds.
    pub(crate) fn cpu_ms(&self) -> anyhow::Result<f64> {
        cpu_ms(self.child.id())
    }

    /// The most memory that it had so far, in MB.
    pub(crate) fn peak_mb(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024 / 1_000_000)
    }
}

/// The processor time that a process has taken so far, in milliseconds.
pub(crate) fn cpu_ms(process: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may have spaces.
    let fields = stat.rsplit_once(") ").context("no name")?.1;
    let ticks = |field: usize| -> anyhow::Result<f64> {
        Ok(fields.split_ascii_whitespace().nth(field).context("too short")?.parse()?)
    };
    // The user's and the system's, which are the 14th and 15th of all fields.
    Ok((ticks(11)? + ticks(12)?) * 1_000.0 / rustix::param::clock_ticks_per_second() as f64)
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that is needed for a deposit.
pub(crate) struct World {
    pub(crate) daemons: Program,
    pub(crate) client: Client,
    pub(crate) queue: Queue,
    pub(crate) storage: WorkingStorage,
    pub(crate) origin: Origin,
    pub(crate) server: PrivateServer,
    /// Before the daemons, where their requests are counted.
    pub(crate) wire: Option<Wire>,
    directory: tempfile::TempDir,
}

impl World {
    /// Starts the daemons that are named; content may come from the origin.
    pub(crate) async fn start(daemons: &str) -> anyhow::Result<Self> {
        Self::start_with(daemons, &[]).await
    }

    /// The same, with more arguments.
    pub(crate) async fn start_with(daemons: &str, more: &[&str]) -> anyhow::Result<Self> {
        Self::launch(daemons, more, false).await
    }

    /// The same, with a proxy that counts the requests of the daemons.
    pub(crate) async fn start_counted(daemons: &str) -> anyhow::Result<Self> {
        Self::launch(daemons, &[], true).await
    }

    async fn launch(daemons: &str, more: &[&str], is_counted: bool) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir_in(base())?;
        let at = |name: &str| directory.path().join(name).display().to_string();
        for name in ["working", "objects", "profiles"] {
            std::fs::create_dir(at(name))?;
        }
        let origin = Origin::start().await;
        let (config, catalogue) = (at("config.yml"), at("catalogue.db"));
        let stores = format!("stores: {{main: {{url: \"file://{}\"}}}}\n", at("objects"));
        std::fs::write(&config, format!("{stores}catalogue: {{url: \"sqlite:{catalogue}\"}}\n"))?;
        let profile = format!(
            "name: {PROFILE}\nowner: ark:/99999/o\nstore: main\nminter: {{kind: noid, shoulder: ark:/99999/fk4}}\n\
             internal_hosts: [\"{}\"]\n",
            origin.address()
        );
        std::fs::write(directory.path().join(format!("profiles/{PROFILE}.yaml")), profile)?;
        let server = PrivateServer::start(Options { heap_mib: 4096, durable: true, ..Options::default() }).await?;
        let wire = if is_counted { Some(Wire::start(server.port()).await) } else { None };
        let zookeeper = wire.as_ref().map_or_else(|| server.connect_string(), Wire::connect_string);
        let (profiles, working) = (at("profiles"), at("working"));
        let shared = ["--zookeeper", &zookeeper, "--config.file", &config];
        let own = ["ingest", "--profiles", &profiles, "--working", &working, "--daemons", daemons];
        let program = Program::start(&[own.as_slice(), shared.as_slice(), more].concat()).await?;
        let client = connect(&server).await?;
        let storage = WorkingStorage::open(Path::new(&working))?;
        let queue = Queue::new(client.clone());
        Ok(Self { daemons: program, client, queue, storage, origin, server, wire, directory })
    }

    /// The sidecar beside it.
    pub(crate) async fn sidecar(&self) -> anyhow::Result<Program> {
        Program::start(&["serve", "--zookeeper", &self.server.connect_string()]).await
    }

    /// The root of all objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.directory.path().join("objects").join(PROFILE)
    }

    /// A directory on the same file system.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Deposits a batch manifest of single files.
    pub(crate) async fn deposit(&self, manifest: Vec<u8>) -> anyhow::Result<BatchId> {
        let new = NewDeposit {
            profile: PROFILE.to_owned(),
            kind: Some(DepositType::SingleFileBatchManifest),
            file_name: "batch.checkm".to_owned(),
            ..NewDeposit::default()
        };
        let payload = std::io::Cursor::new(manifest);
        Ok(Box::pin(new.upload(&self.queue, &self.storage, Uuid::new_v4(), payload)).await?.batch)
    }

    /// Waits by watches until a batch is in a state.
    pub(crate) async fn wait_for(&self, batch: BatchId, state: BatchState) -> anyhow::Result<()> {
        let path = format!("/batches/{batch}/status");
        loop {
            let (data, _, watcher) = self.client.get_and_watch_data(&path).await?;
            let status = ItemStatus::<BatchState>::decode(&data).value;
            let found = status.status.state;
            anyhow::ensure!(found != Some(BatchState::Failed), "batch {batch} failed: {}", status.message);
            if found == Some(state) {
                return Ok(());
            }
            watcher.changed().await;
        }
    }
}

/// Where all directories are made.
pub(crate) fn base() -> PathBuf {
    std::env::var_os("BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// A session of its own.
pub(crate) async fn connect(server: &PrivateServer) -> anyhow::Result<Client> {
    Ok(Config::new(server.connect_string().parse()?).connect().await?)
}
