//! `queuekeeper dashboards`: files for the programs around queuekeeper.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{CommandError, FAILED, IN_PART, REFUSED};
use super::output;
use crate::config::{ExternalUrl, RoutePrefix, Web};
use crate::web::dashboards::{Addresses, FILES};

/// Why writing the text cannot fail.
const INFALLIBLE: &str = "writing to a String does not fail";

/// The mode of the files, before the umask.
const MODE: u32 = 0o666;

/// Write the dashboards for Grafana, the rules for Prometheus with their runbook, and example configurations
///
/// An existing file with other contents is kept unless --force is set, because limits may have been edited in it.
#[derive(Clone, Debug, Args)]
pub(super) struct DashboardsArgs {
    /// The directory for the files, which is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The public address of the status page [default: the local one; in links of alerts, the address that was scraped]
    #[arg(long = "url", value_name = "URL")]
    url: Option<ExternalUrl>,

    /// The prefix of every path, as in --web.route-prefix of serve, / for none [default: the path of --url]
    #[arg(long = "route-prefix", value_name = "PATH")]
    route_prefix: Option<RoutePrefix>,

    /// Replace existing files with other contents
    #[arg(long = "force")]
    force: bool,
}

/// The result for a file.
enum Outcome {
    Written,
    /// It existed with the same contents.
    Same,
    /// It existed with other contents.
    Kept,
}

impl DashboardsArgs {
    /// Writes the files, and reports the result for each.
    ///
    /// # Errors
    /// When a file could not be written, or existed and was kept.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (mut report, mut done, mut kept, mut failed) = (String::new(), 0_usize, 0_usize, 0_usize);
        let addresses = Addresses::of(&self.web());
        for file in &*FILES {
            let path = self.directory.join(file.path);
            let shown = path.display();
            match self.put(&path, &addresses.put_into(file.text)) {
                Ok(Outcome::Written) => {
                    done += 1;
                    writeln!(report, "wrote {shown}").expect(INFALLIBLE);
                }
                Ok(Outcome::Same) => {
                    done += 1;
                    writeln!(report, "{shown} is unchanged").expect(INFALLIBLE);
                }
                Ok(Outcome::Kept) => {
                    kept += 1;
                    output::note(&format!("kept {shown}: it has other contents; --force replaces it"));
                }
                Err(error) => {
                    failed += 1;
                    output::note(&format!("cannot write {shown}: {error}"));
                }
            }
        }
        output::write(&report)?;
        let all = FILES.len();
        match (done, kept, failed) {
            (_, 0, 0) => Ok(()),
            (0, 0, _) => Err(CommandError::new(FAILED, "no file could be written").into()),
            (0, _, 0) => Err(CommandError::new(REFUSED, "all files were kept").into()),
            (_, _, _) => {
                let text = format!("of {all} files, {kept} were kept and {failed} could not be written");
                Err(CommandError::new(IN_PART, text).into())
            }
        }
    }

    /// The address of the server that the files are for.
    fn web(&self) -> Web {
        Web::reached_by(self.url.clone(), self.route_prefix.clone())
    }

    /// Writes a file that gets its name when it is complete.
    fn put(&self, path: &Path, text: &str) -> std::io::Result<Outcome> {
        match std::fs::read(path) {
            Ok(there) if there == text.as_bytes() => return Ok(Outcome::Same),
            Ok(_) if !self.force => return Ok(Outcome::Kept),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(Outcome::Written)
    }
}
