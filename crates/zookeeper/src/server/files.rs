//! The files of a private server.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::options::Options;

/// How many bytes at the end of a log are shown; enough for a Java exception with its cause.
const TAIL: usize = 4000;

const LOG4J: &str = "\
log4j.rootLogger=WARN, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{1}: %m%n
";

const LOGBACK: &str = "\
<configuration>
  <appender name=\"CONSOLE\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <encoder><pattern>%d{ISO8601} %-5p [%t] %logger{0}: %m%n</pattern></encoder>
  </appender>
  <root level=\"WARN\"><appender-ref ref=\"CONSOLE\"/></root>
</configuration>
";

/// Where everything is in the server's directory.
#[derive(Debug)]
pub(super) struct Layout {
    directory: PathBuf,
}

impl Layout {
    /// Makes the directories; `directory` itself may exist, with data from before.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        // The server is known by the path of its data, which it reports in full.
        let layout = Self { directory: directory.canonicalize()? };
        fs::create_dir_all(layout.data())?;
        fs::create_dir_all(layout.scratch())?;
        Ok(layout)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Removes the data, and keeps its folder.
    pub(super) fn clear(&self) -> io::Result<()> {
        fs::remove_dir_all(self.data())?;
        fs::create_dir(self.data())
    }

    /// For temporary files of Java and its native libraries.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join("tmp")
    }

    /// What the server prints, since its last start.
    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    pub(super) fn log4j(&self) -> PathBuf {
        self.directory.join("log4j.properties")
    }

    pub(super) fn logback(&self) -> PathBuf {
        self.directory.join("logback.xml")
    }

    /// Writes the configuration and returns its path.
    pub(super) fn write(&self, options: &Options, port: u16, secure_port: Option<u16>) -> io::Result<PathBuf> {
        fs::write(self.log4j(), LOG4J)?;
        fs::write(self.logback(), LOGBACK)?;
        if let Some(member) = &options.member {
            fs::write(self.data().join("myid"), member.index.to_string())?;
        }
        let path = self.directory.join("zoo.cfg");
        fs::write(&path, self.config(options, port, secure_port))?;
        Ok(path)
    }

    fn config(&self, options: &Options, port: u16, secure_port: Option<u16>) -> String {
        let host = Ipv4Addr::LOCALHOST;
        let mut lines = vec![
            format!("tickTime={}", options.tick.as_millis()),
            format!("maxSessionTimeout={}", options.max_session_timeout.as_millis()),
            format!("dataDir={}", self.data().display()),
            format!("clientPort={port}"),
            format!("clientPortAddress={host}"),
            "maxClientCnxns=0".to_owned(),
            "admin.enableServer=false".to_owned(),
            "4lw.commands.whitelist=*".to_owned(),
        ];
        let providers = options.auth_providers.iter().enumerate();
        lines.extend(providers.map(|(n, class)| format!("authProvider.{n}={class}")));
        if let Some(count) = options.snap_count {
            lines.push(format!("snapCount={count}"));
        }
        if let Some(member) = &options.member {
            lines.extend(["initLimit=20".to_owned(), "syncLimit=10".to_owned()]);
            let peers = member.peers.iter().enumerate();
            lines.extend(peers.map(|(id, [quorum, election])| format!("server.{id}={host}:{quorum}:{election}")));
        }
        if let (Some(tls), Some(port)) = (&options.tls, secure_port) {
            lines.extend([
                format!("secureClientPort={port}"),
                format!("secureClientPortAddress={host}"),
                format!("ssl.keyStore.location={}", tls.key_store.display()),
                "ssl.keyStore.type=PEM".to_owned(),
                format!("ssl.trustStore.location={}", tls.trust_store.display()),
                "ssl.trustStore.type=PEM".to_owned(),
                format!("ssl.clientAuth={}", tls.client_auth.as_str()),
            ]);
        }
        lines.into_iter().fold(String::new(), |mut config, line| {
            // Java reads this file with backslashes as escapes.
            let _ = writeln!(config, "{}", line.replace('\\', "\\\\"));
            config
        })
    }

    /// Whether the server at `port` is ours and serves: in the time between finding a free port and the server's start,
    /// another server may have come there, and that one would answer too.
    pub(super) async fn is_answered_at(&self, port: u16) -> bool {
        let query = async {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            stream.write_all(b"conf").await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            io::Result::Ok(answer)
        };
        match timeout(Duration::from_secs(2), query).await {
            Ok(Ok(answer)) => {
                let ours = format!("dataDir={}/", self.data().display());
                answer.lines().any(|line| line.starts_with(&ours))
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// The end of the log, whole lines.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let tail = String::from_utf8_lossy(&log[log.len().saturating_sub(TAIL)..]).into_owned();
        match tail.split_once('\n') {
            Some((_cut, whole)) if log.len() > TAIL => whole.trim_end().to_owned(),
            Some(_) | None => tail.trim_end().to_owned(),
        }
    }
}
