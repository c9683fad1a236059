//! The programs that are started for the demo, as installed by Debian or from upstream.

use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Error;
use super::files::Files;

/// A program that is started for the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MonitoringProgram {
    Prometheus,
    Alertmanager,
}

impl MonitoringProgram {
    pub(super) const ALL: [Self; 2] = [Self::Prometheus, Self::Alertmanager];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Prometheus => "Prometheus",
            Self::Alertmanager => "Alertmanager",
        }
    }

    /// The base name of its files.
    pub(super) fn stem(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::Alertmanager => "alertmanager",
        }
    }

    /// The Debian package.
    fn package(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::Alertmanager => "prometheus-alertmanager",
        }
    }

    /// The names of its binary: in Debian and upstream.
    fn binaries(self) -> &'static [&'static str] {
        match self {
            Self::Prometheus => &["prometheus"],
            Self::Alertmanager => &["prometheus-alertmanager", "alertmanager"],
        }
    }

    /// Its default port.
    pub(super) fn port(self) -> u16 {
        match self {
            Self::Prometheus => 9090,
            Self::Alertmanager => 9093,
        }
    }

    /// A page that contains its file paths, by which it is recognized.
    fn revealing(self) -> &'static str {
        match self {
            Self::Prometheus => "/api/v1/status/flags",
            Self::Alertmanager => "/api/v2/status",
        }
    }

    pub(super) fn arguments(self, files: Files<'_>, port: u16) -> Vec<OsString> {
        let listen = format!("--web.listen-address={}:{port}", Ipv4Addr::LOCALHOST).into();
        let config = option("--config.file=", &files.config(self.stem()));
        let data = files.data(self.stem());
        match self {
            Self::Prometheus => {
                let data = option("--storage.tsdb.path=", &data);
                vec![config, data, "--storage.tsdb.retention.time=6h".into(), listen]
            }
            // Without a listen address for the cluster it looks for no peers.
            Self::Alertmanager => {
                vec![config, option("--storage.path=", &data), "--cluster.listen-address=".into(), listen]
            }
        }
    }

    /// Whether the program answers on `port` and is the one that was started: another might answer too.
    pub(super) async fn answers(self, port: u16, files: Files<'_>) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            let request = format!("GET {} HTTP/1.0\r\nHost: {}:{port}\r\n\r\n", self.revealing(), Ipv4Addr::LOCALHOST);
            stream.write_all(request.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            io::Result::Ok(answer)
        };
        match timeout(Duration::from_secs(2), ask).await {
            Ok(Ok(answer)) => {
                let is_ok = answer.lines().next().is_some_and(|line| line.contains(" 200 "));
                is_ok && answer.contains(&files.0.display().to_string())
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// The paths of the programs.
#[derive(Clone, Debug)]
pub(in crate::demo) struct Installation {
    pub(super) prometheus: PathBuf,
    pub(super) alertmanager: PathBuf,
}

impl Installation {
    /// Finds them in `PATH`.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] with what to install.
    pub(in crate::demo) fn find() -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match MonitoringProgram::ALL.map(|kind| find(kind, &path)) {
            [Some(prometheus), Some(alertmanager)] => Ok(Self { prometheus, alertmanager }),
            found => {
                let missing = || MonitoringProgram::ALL.into_iter().zip(&found).filter(|(_, found)| found.is_none());
                let names: Vec<_> = missing().map(|(kind, _)| kind.name()).collect();
                let packages: Vec<_> = missing().map(|(kind, _)| kind.package()).collect();
                let (verb, noun) = if names.len() == 1 { ("is", "package") } else { ("are", "packages") };
                Err(Error::NotInstalled(format!(
                    "{} {verb} not installed, which --with-prometheus starts: install Debian's {noun} with \
                     `apt-get install {}`",
                    names.join(" and "),
                    packages.join(" ")
                )))
            }
        }
    }
}

fn find(kind: MonitoringProgram, path: &OsString) -> Option<PathBuf> {
    let named = |name: &&str| std::env::split_paths(path).map(|bin| bin.join(name)).find(|file| file.is_file());
    kind.binaries().iter().find_map(named)
}
