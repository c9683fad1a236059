//! Finds an installed ZooKeeper and the Java to run it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ServerError;
use super::files::Layout;
use super::options::Options;

/// The heap of a server for a few thousand znodes, in MiB.
const SMALL_HEAP_MIB: u32 = 512;

/// Where Debian's package `libzookeeper-java` has its jars, and those it depends on theirs.
const DEBIAN_JARS: &str = "/usr/share/java";

/// What Debian's `zookeeper.jar` does not name in its manifest: a binding that writes the log, and what Netty needs to
/// serve TLS. With 3.8.0-11 that is `netty-codec.jar` (tried one by one; without it handshakes are dropped), while
/// `netty-all.jar` is an empty shell there; where it holds everything it serves as well.
const DEBIAN_MORE: [&str; 3] = ["slf4j-simple.jar", "netty-codec.jar", "netty-all.jar"];

/// A ZooKeeper server that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    java: PathBuf,
    /// Jars, or directories of jars followed by `/*`.
    class_path: Vec<PathBuf>,
}

impl Installation {
    /// Finds the one to use: that of the environment variable `ZOOKEEPER_HOME`, or else Debian's package.
    ///
    /// # Errors
    /// [`ServerError::NotInstalled`] says what to install.
    pub fn find() -> Result<Self, ServerError> {
        match env::var_os("ZOOKEEPER_HOME").filter(|home| !home.is_empty()) {
            Some(home) => Self::in_home(Path::new(&home)),
            None => Self::of_debian(),
        }
    }

    /// The one in `home`, an unpacked release: its jars are in `lib`, or in `home` itself as in releases up to 3.4.
    ///
    /// # Errors
    /// [`ServerError::NotInstalled`] when no ZooKeeper or no Java is there.
    pub fn in_home(home: &Path) -> Result<Self, ServerError> {
        let lib = home.join("lib");
        if !has_zookeeper_jar(&lib) && !has_zookeeper_jar(home) {
            return Err(ServerError::NotInstalled(format!(
                "no ZooKeeper release is unpacked in {} (ZOOKEEPER_HOME): lib has no zookeeper-*.jar; \
                 unset it and install Debian's package with `apt-get install zookeeper`, or correct it",
                home.display()
            )));
        }
        Ok(Self { java: find_java()?, class_path: vec![lib.join("*"), home.join("*")] })
    }

    fn of_debian() -> Result<Self, ServerError> {
        let jars = Path::new(DEBIAN_JARS);
        let zookeeper = jars.join("zookeeper.jar");
        if !zookeeper.is_file() {
            return Err(ServerError::NotInstalled(
                "no ZooKeeper server is installed: install Debian's package with `apt-get install zookeeper`, or set \
                 ZOOKEEPER_HOME to an unpacked release"
                    .to_owned(),
            ));
        }
        let more = DEBIAN_MORE.iter().map(|name| jars.join(name)).filter(|jar| jar.is_file());
        Ok(Self { java: find_java()?, class_path: std::iter::once(zookeeper).chain(more).collect() })
    }

    /// The command that runs the server, but for its last argument, the configuration file.
    pub(super) fn command(&self, options: &Options, layout: &Layout) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.java.clone().into()];
        command.push(format!("-Xmx{}m", options.heap_mib).into());
        if !options.durable && options.heap_mib <= SMALL_HEAP_MIB {
            // A small server that is gone soon does not live to profit from its second compiler and more than one
            // collector, which took a sixth of the processors in tests.
            command.extend(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"].map(OsString::from));
        }
        // Performance data would be a file in the system's temporary directory that a killed Java leaves behind.
        command.push("-XX:-UsePerfData".into());
        command.push(property("java.io.tmpdir", layout.scratch()));
        command.push(property("java.net.preferIPv4Stack", "true"));
        command.push(property("log4j.configuration", OsString::from(file_url(&layout.log4j()))));
        command.push(property("logback.configurationFile", layout.logback()));
        command.push(property("org.slf4j.simpleLogger.defaultLogLevel", "warn"));
        command.push(property("zookeeper.admin.enableServer", "false"));
        command.push(property("zookeeper.jmx.log4j.disable", "true"));
        if !options.durable {
            command.push(property("zookeeper.forceSync", "no"));
            // The log file grows in steps of 1 MiB, not 64.
            command.push(property("zookeeper.preAllocSize", "1024"));
        }
        if options.tls.is_some() {
            let netty = "org.apache.zookeeper.server.NettyServerCnxnFactory";
            command.push(property("zookeeper.serverCnxnFactory", netty));
        }
        let class_path = self.class_path.iter().map(|jar| jar.as_os_str()).collect::<Vec<_>>();
        command.extend(["-cp".into(), class_path.join(std::ffi::OsStr::new(":"))]);
        command.push(match options.member {
            Some(_) => "org.apache.zookeeper.server.quorum.QuorumPeerMain".into(),
            // It would take the list of members as nothing to do with it, and be a server alone.
            None => "org.apache.zookeeper.server.ZooKeeperServerMain".into(),
        });
        command
    }
}

fn property(name: &str, value: impl Into<OsString>) -> OsString {
    let mut property = OsString::from(format!("-D{name}="));
    property.push(value.into());
    property
}

fn file_url(path: &Path) -> String {
    format!("file:{}", path.display())
}

fn has_zookeeper_jar(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // `zookeeper-jute-3.8.0.jar` and the like do not hold the server.
        let version = name.strip_prefix("zookeeper-").and_then(|rest| rest.strip_suffix(".jar"));
        name == "zookeeper.jar" || version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Java by `JAVA_HOME`, or else by `PATH`.
fn find_java() -> Result<PathBuf, ServerError> {
    let home = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter().chain(env::split_paths(&path)).map(|bin| bin.join("java")).find(|java| java.is_file()).ok_or_else(|| {
        ServerError::NotInstalled(
            "ZooKeeper needs Java and none is installed: install one with `apt-get install default-jre-headless`, or set \
             JAVA_HOME"
                .to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_the_server_is_not_installed_and_says_what_to_install() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("lib")).unwrap();
        std::fs::write(home.path().join("lib/zookeeper-jute-3.9.2.jar"), "").unwrap();
        let error = Installation::in_home(home.path()).unwrap_err();
        assert!(matches!(error, ServerError::NotInstalled(_)));
        let said = error.to_string();
        assert!(said.contains("apt-get install zookeeper") && !said.contains('\n'), "{said}");

        std::fs::write(home.path().join("lib/zookeeper-3.9.2.jar"), "").unwrap();
        let found = Installation::in_home(home.path()).unwrap();
        assert!(found.class_path.contains(&home.path().join("lib/*")));
    }
}
