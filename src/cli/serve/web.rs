//! What is served over HTTP, on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cli::UsageError;
use crate::config::{ExternalUrl, ListenAddress, RoutePrefix, TelemetryPath, Web, WebFile};

/// What is served over HTTP.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Web")]
pub(super) struct WebArgs {
    /// Address to listen on: host:port, or :port for every interface; may be repeated
    #[arg(
        long = "web.listen-address",
        value_name = "ADDRESS",
        value_delimiter = ',',
        default_value = ListenAddress::DEFAULT
    )]
    pub(super) listen_address: Vec<ListenAddress>,

    /// The URL under which users reach the server, for example behind a proxy; requests for hosts other than this one
    /// and the listen addresses are refused
    #[arg(long = "web.external-url", value_name = "URL")]
    external_url: Option<ExternalUrl>,

    /// The prefix of every path, / for none [default: the path of --web.external-url]
    #[arg(long = "web.route-prefix", value_name = "PATH")]
    route_prefix: Option<RoutePrefix>,

    /// Path of the metrics
    #[arg(long = "web.telemetry-path", value_name = "PATH", default_value = "/metrics")]
    telemetry_path: TelemetryPath,

    /// File that enables TLS and passwords, in the format of Prometheus' exporters; reloaded when it changes
    #[arg(long = "web.config.file", value_name = "FILE")]
    config_file: Option<PathBuf>,
}

impl WebArgs {
    /// Reads the file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn config(self) -> Result<Web, UsageError> {
        let file = self.config_file.as_deref().map(WebFile::read).transpose();
        Ok(Web {
            telemetry_path: self.telemetry_path,
            names: self.listen_address.iter().filter_map(ListenAddress::host).map(str::to_owned).collect(),
            file: file.map_err(|error| UsageError::flag("--web.config.file", error))?,
            ..Web::reached_by(self.external_url, self.route_prefix)
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        web: WebArgs,
    }

    #[test]
    fn the_prefix_is_the_path_of_the_url_where_no_other_is_set() {
        let url = "--web.external-url=https://ops.example.org/queue/";
        for (arguments, prefix) in [
            (&[][..], ""),
            (&[url], "/queue"),
            (&[url, "--web.route-prefix=/"], ""),
            (&[url, "--web.route-prefix=inner"], "/inner"),
            (&["--web.route-prefix=/a/b/"], "/a/b"),
            (&["--web.external-url=https://ops.example.org"], ""),
        ] {
            let program = Program::parse_from([&["queuekeeper"], arguments].concat());
            assert_eq!(program.web.config().unwrap().route_prefix.as_str(), prefix, "{arguments:?}");
        }
    }
}
