//! `queuekeeper dashboards`: what the programs around queuekeeper load.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::{Ending, FAILED, IN_PART, REFUSED};
use super::output;
use crate::config::{ExternalUrl, RoutePrefix, Web};
use crate::web::dashboards::{Addresses, FILES};

/// Why writing the text cannot fail.
const INFALLIBLE: &str = "writing to a String does not fail";

/// What the files may be to their owner and to those who load them, as far as the umask lets it.
const MODE: u32 = 0o666;

/// Write the dashboards for Grafana, the rules for Prometheus with their runbook, and example configurations
///
/// A file that is there and says something else is kept, unless --force is given: limits are yours to change.
#[derive(Clone, Debug, Args)]
pub(super) struct DashboardsArgs {
    /// The directory to write them to, which is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// The address that people reach the status page by [default: the local one; in the links of alerts, the one that was
    /// scraped]
    #[arg(long = "url", value_name = "URL")]
    url: Option<ExternalUrl>,

    /// The path before every route, as in --web.route-prefix of serve, / for none [default: the path of --url]
    #[arg(long = "route-prefix", value_name = "PATH")]
    route_prefix: Option<RoutePrefix>,

    /// Replace files that are there and say something else
    #[arg(long = "force")]
    force: bool,
}

/// What became of a file.
enum Outcome {
    Written,
    /// It was there and says the same.
    Same,
    /// It was there and says something else.
    Kept,
}

impl DashboardsArgs {
    /// Writes the files, and says of each what became of it.
    ///
    /// # Errors
    /// When a file could not be written, or is there and was kept.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (mut told, mut done, mut kept, mut failed) = (String::new(), 0_usize, 0_usize, 0_usize);
        let addresses = Addresses::of(&self.web());
        for file in &*FILES {
            let path = self.directory.join(file.path);
            let shown = path.display();
            match self.put(&path, &addresses.put_into(file.text)) {
                Ok(Outcome::Written) => {
                    done += 1;
                    writeln!(told, "wrote {shown}").expect(INFALLIBLE);
                }
                Ok(Outcome::Same) => {
                    done += 1;
                    writeln!(told, "{shown} is so already").expect(INFALLIBLE);
                }
                Ok(Outcome::Kept) => {
                    kept += 1;
                    output::note(&format!("kept {shown}: it was changed; --force replaces it"));
                }
                Err(error) => {
                    failed += 1;
                    output::note(&format!("cannot write {shown}: {error}"));
                }
            }
        }
        output::write(&told)?;
        let all = FILES.len();
        match (done, kept, failed) {
            (_, 0, 0) => Ok(()),
            (0, 0, _) => Err(Ending::new(FAILED, "none of the files could be written").into()),
            (0, _, 0) => Err(Ending::new(REFUSED, "all of the files were kept").into()),
            (_, _, _) => {
                let text = format!("of {all} files, {kept} were kept and {failed} could not be written");
                Err(Ending::new(IN_PART, text).into())
            }
        }
    }

    /// How the server that the files are for is reached.
    fn web(&self) -> Web {
        Web::reached_by(self.url.clone(), self.route_prefix.clone())
    }

    /// Writes a file that takes its name only once it is whole.
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
