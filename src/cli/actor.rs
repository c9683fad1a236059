//! Who requests something on the command line, and where that is written down.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::UsageError;
use crate::actions::audit::{Destination, Rotation};
use crate::actions::{Actor, Role, Source};

/// Only its owner reads who did what.
const FOLDER_MODE: u32 = 0o700;

/// Where to write down who requested what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Audit")]
pub(super) struct AuditArgs {
    /// The file to write down who requested what, why, and what came of it [default:
    /// queuekeeper/audit.jsonl in `$XDG_STATE_HOME` or `~/.local/state`]
    // Its variable is not that of `serve`, whose file is rotated by one process alone.
    #[arg(long = "audit.file", env = "QUEUEKEEPER_CLI_AUDIT_FILE", hide_env_values = true, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl AuditArgs {
    /// The file, in a folder that is there.
    ///
    /// # Errors
    /// When there is no home to have it in, or its folder cannot be made.
    pub(super) fn destination(&self) -> Result<Destination, anyhow::Error> {
        let file = match &self.file {
            Some(file) if file.as_os_str() == "-" => {
                let why = "standard output is for the answer; name a file";
                return Err(UsageError::flag("--audit.file", why).into());
            }
            Some(file) => file.clone(),
            None => {
                let file = usual(|name| std::env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
                    UsageError::flag("--audit.file", "neither XDG_STATE_HOME nor HOME says where; name a file")
                })?;
                make_folder(&file).map_err(|why| {
                    UsageError::flag("--audit.file", format!("cannot make the folder of {}: {why}", file.display()))
                })?;
                file
            }
        };
        Ok(Destination::File(file, Rotation::default()))
    }
}

/// Where state of a user's programs is kept, by the XDG Base Directory Specification, 0.8: a relative path is to be
/// passed over.
fn usual(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let folder = variable("XDG_STATE_HOME").filter(|folder| folder.is_absolute());
    let folder = folder
        .or_else(|| variable("HOME").filter(|home| home.is_absolute()).map(|home| home.join(".local").join("state")));
    folder.map(|folder| folder.join("queuekeeper").join("audit.jsonl"))
}

fn make_folder(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Whoever runs this process: his rights are those of his ZooKeeper credentials.
pub(super) fn actor() -> Actor {
    let user = whoami::username().unwrap_or_else(|_| format!("uid {}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Actor { name: format!("{user}@{host}"), role: Role::Admin, source: Source::Cli, from: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_file_is_where_a_users_state_is() {
        let of = |state: Option<&str>, home: Option<&str>| {
            usual(|name| if name == "HOME" { home } else { state }.map(PathBuf::from))
        };
        let [own, usual] = ["/var/s/queuekeeper/audit.jsonl", "/home/a/.local/state/queuekeeper/audit.jsonl"];
        assert_eq!(of(Some("/var/s"), Some("/home/a")), Some(own.into()));
        assert_eq!(of(None, Some("/home/a")), Some(usual.into()));
        assert_eq!(of(Some("relative"), Some("/home/a")), Some(usual.into()));
        assert_eq!([of(None, None), of(Some(""), Some(""))], [None, None]);
    }
}
