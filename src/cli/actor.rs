//! The actor of the command line, and the audit file.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{UsageError, headings};
use crate::actions::audit::{Destination, Rotation};
use crate::actions::{Actor, Role, Source};

/// Readable by its owner only.
const FOLDER_MODE: u32 = 0o700;

/// The options of the audit file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = headings::AUDIT)]
pub(super) struct AuditArgs {
    /// The file to record actions in, with user, reason and outcome [default:
    /// queuekeeper/audit.jsonl in `$XDG_STATE_HOME` or `~/.local/state`]
    // Not the variable of `serve`, whose file is rotated by one process only.
    #[arg(long = "audit.file", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl AuditArgs {
    /// The file, whose directory is created.
    ///
    /// # Errors
    /// When there is no home directory, or the directory cannot be created.
    pub(super) fn destination(&self) -> Result<Destination, anyhow::Error> {
        let file = match &self.file {
            Some(file) if file.as_os_str() == "-" => {
                let why = "standard output is used for the result: name a file";
                return Err(UsageError::flag("--audit.file", why).into());
            }
            Some(file) => file.clone(),
            None => {
                let file = usual(|name| std::env::var_os(name).map(PathBuf::from)).ok_or_else(|| {
                    UsageError::flag("--audit.file", "neither XDG_STATE_HOME nor HOME is set: name a file")
                })?;
                make_folder(&file).map_err(|why| {
                    UsageError::flag(
                        "--audit.file",
                        format!("cannot create the directory of {}: {why}", file.display()),
                    )
                })?;
                file
            }
        };
        Ok(Destination::File(file, Rotation::default()))
    }
}

/// The default path, by the XDG Base Directory Specification, 0.8, under which relative paths are to be ignored.
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

/// The user of this process, whose rights are those of the ZooKeeper credentials.
pub(super) fn actor() -> Actor {
    let user = whoami::username().unwrap_or_else(|_| format!("uid {}", rustix::process::getuid().as_raw()));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Actor { name: format!("{user}@{host}"), role: Role::Admin, source: Source::Cli, from: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_audit_file_is_in_the_state_directory_of_the_user() {
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
