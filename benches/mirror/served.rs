//! The real program beside a server, as a child process.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// `queuekeeper serve`, killed when dropped.
pub(crate) struct Served {
    child: Child,
    reader: Reader,
}

/// A client that reads what it serves, with connections of its own.
pub(crate) struct Reader {
    base: String,
    http: reqwest::Client,
}

impl Reader {
    /// Status and body.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let response = self.http.get(format!("{}{path}", self.base)).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// Status and length of `/metrics` as it is sent to Prometheus 2.42, by the headers that this sends.
    pub(crate) async fn scrape(&self) -> anyhow::Result<(u16, usize)> {
        const ACCEPT: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                              text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let (code, sent, is_packed) = self.packed("/metrics", ACCEPT).await?;
        anyhow::ensure!(is_packed, "a scrape is packed");
        Ok((code, sent))
    }

    /// Status and length as it is sent to a client that accepts gzip, and whether it is packed: what is short is not.
    pub(crate) async fn packed(&self, path: &str, accept: &str) -> anyhow::Result<(u16, usize, bool)> {
        let request = self.http.get(format!("{}{path}", self.base)).header("accept", accept);
        let response = request.header("accept-encoding", "gzip").send().await?;
        let is_packed = response.headers().get("content-encoding").is_some_and(|coding| coding == "gzip");
        Ok((response.status().as_u16(), response.bytes().await?.len(), is_packed))
    }

    /// Status and body, for JSON sent by the holder of a token.
    pub(crate) async fn post(&self, path: &str, token: &str, json: String) -> anyhow::Result<(u16, String)> {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(token);
        let response = request.header("content-type", "application/json").body(json).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// The same from another address of this machine: each has a limited share of connections and streams.
    pub(crate) fn from(&self, address: std::net::IpAddr) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().local_address(address).build()?;
        Ok(Self { base: self.base.clone(), http })
    }

    /// A response whose body is read piece by piece.
    pub(crate) async fn open(&self, path: &str) -> anyhow::Result<reqwest::Response> {
        Ok(self.http.get(format!("{}{path}", self.base)).send().await?.error_for_status()?)
    }
}

impl Served {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(zookeeper: &str, flags: &[&str]) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(env!("CARGO_BIN_EXE_queuekeeper"))
            .args(["serve", "--zookeeper", zookeeper, "--web.listen-address", &address, "--log.level", "error"])
            .args(flags)
            .stdin(Stdio::null())
            .spawn()?;
        let reader = Reader { base: format!("http://{address}"), http: reqwest::Client::new() };
        let served = Self { child, reader };
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            match served.get("/-/ready").await {
                Ok((200, _)) => return Ok(served),
                _ if Instant::now() > deadline => anyhow::bail!("queuekeeper is not ready after two minutes"),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Status and body.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        self.reader.get(path).await
    }

    /// As [`Reader::scrape`].
    pub(crate) async fn scrape(&self) -> anyhow::Result<(u16, usize)> {
        self.reader.scrape().await
    }

    /// As [`Reader::packed`].
    pub(crate) async fn packed(&self, path: &str, accept: &str) -> anyhow::Result<(u16, usize, bool)> {
        self.reader.packed(path, accept).await
    }

    /// Another reader.
    pub(crate) fn reader(&self) -> Reader {
        Reader { base: self.reader.base.clone(), http: reqwest::Client::new() }
    }

    /// The sum over the samples of a metric whose labels contain a text.
    pub(crate) async fn metric(&self, name: &str, labels: &str) -> anyhow::Result<f64> {
        Ok(sum(&self.get("/metrics").await?.1, name, labels))
    }

    /// A figure of `/proc/PID/status`, in bytes.
    pub(crate) fn memory(&self, name: &str) -> anyhow::Result<u64> {
        memory(&self.child.id().to_string(), name)
    }

    /// Makes the kernel forget the highest use of memory so far.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }

    /// Processor time so far, of all threads.
    pub(crate) async fn cpu(&self) -> anyhow::Result<f64> {
        self.metric("process_cpu_seconds_total", "").await
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A figure of `/proc/PROCESS/status`, in bytes.
pub(crate) fn memory(process: &str, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such figure")?;
    let kib: u64 = line.trim_matches([':', '\t', ' ']).trim_end_matches(" kB").trim().parse()?;
    Ok(kib * 1024)
}

/// The sum over the samples of a metric whose labels contain a text.
pub(crate) fn sum(exposition: &str, name: &str, labels: &str) -> f64 {
    let samples = exposition.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
    });
    samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
