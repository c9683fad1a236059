//! `queuekeeper token`: a bearer token, and the line that lets it in.

use std::io::IsTerminal as _;

use clap::Args;
use jiff::Timestamp;

use super::{UsageError, output};
use crate::actions::Role;
use crate::config::{Secret, TokenLine, expiry};

/// Make a bearer token for a program: the token goes to standard output, the line for the tokens file to standard error
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// What the token is called, in the audit too: letters, digits and - _ . @
    #[arg(value_name = "NAME")]
    name: String,

    /// What its holder may do: viewer, operator or admin; or alertmanager, to tell of alerts and nothing else
    #[arg(long = "role", env = "QUEUEKEEPER_ROLE", hide_env_values = true, value_name = "ROLE")]
    role: Role,

    /// When it ends: a date, or an instant as 2027-01-31T18:00:00Z [default: never]
    #[arg(
        long = "expires",
        env = "QUEUEKEEPER_EXPIRES",
        hide_env_values = true,
        value_name = "WHEN",
        value_parser = expiry
    )]
    expires: Option<Timestamp>,

    /// Make none: read one from standard input, and write its line to standard output
    #[arg(long = "hash", env = "QUEUEKEEPER_HASH", hide_env_values = true)]
    hash: bool,
}

impl TokenArgs {
    /// Writes what was asked for.
    ///
    /// What goes to standard output is what is wanted of the command: the token, which can be piped to where it is kept
    /// without being seen, or the line where the token is known already.
    ///
    /// # Errors
    /// When the name, the time or the token on standard input cannot be taken ([`UsageError`]), or nobody reads.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.expires.is_some_and(|expires| expires <= Timestamp::now()) {
            return Err(UsageError::flag("--expires", "that time is over").into());
        }
        let secret = if self.hash { read()? } else { Secret::make() };
        let line = TokenLine::new(&self.name, self.role, self.expires, &secret)
            .map_err(|error| UsageError(error.to_string()))?;
        if self.hash {
            return output::write(&format!("{line}\n"));
        }
        output::note("# The token is shown once and kept nowhere. This line for the tokens file lets it in:");
        output::note(&line.to_string());
        output::write(&format!("{}\n", secret.reveal()))
    }
}

fn read() -> anyhow::Result<Secret> {
    let input = std::io::stdin();
    if input.is_terminal() {
        output::note("The token, and Ctrl-D after its line:");
    }
    Secret::read(input.lock()).map_err(|error| UsageError(format!("standard input holds no token: {error}")).into())
}
