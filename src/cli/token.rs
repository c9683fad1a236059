//! `queuekeeper token`: a bearer token, and its line for the tokens file.

use std::io::IsTerminal as _;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use jiff::Timestamp;

use super::{UsageError, output};
use crate::actions::Role;
use crate::config::{Secret, TokenLine, expiry};

/// Create a bearer token for a program: the token goes to standard output, its line for the tokens file to standard
/// error
#[derive(Clone, Debug, Args)]
pub struct TokenArgs {
    /// The name of the token, also in the audit file: letters, digits and - _ . @
    #[arg(value_name = "NAME")]
    name: String,

    /// The role of the token
    #[arg(
        long = "role",
        value_name = "ROLE",
        value_parser = PossibleValuesParser::new(Role::ALL.map(|role| {
            PossibleValue::new(role.label()).help(role.summary())
        }))
        .try_map(|text| text.parse::<Role>())
    )]
    role: Role,

    /// The expiry: a date, or an instant such as 2027-01-31T18:00:00Z [default: never]
    #[arg(
        long = "expires",
        value_name = "WHEN",
        value_parser = expiry
    )]
    expires: Option<Timestamp>,

    /// Do not create a token: read one from standard input, and write its line to standard output
    #[arg(long = "hash")]
    hash: bool,
}

impl TokenArgs {
    /// Writes the token or its line.
    ///
    /// Standard output has what the command is run for: the token, which can be piped to where it is stored without
    /// being shown, or the line of a known token.
    ///
    /// # Errors
    /// When the name, the time or the token on standard input is not valid ([`UsageError`]), or the output is closed.
    pub fn run(&self) -> anyhow::Result<()> {
        if self.expires.is_some_and(|expires| expires <= Timestamp::now()) {
            return Err(UsageError::flag("--expires", "the time is in the past").into());
        }
        let secret = if self.hash { read()? } else { Secret::make() };
        let line = TokenLine::new(&self.name, self.role, self.expires, &secret)
            .map_err(|error| UsageError(error.to_string()))?;
        if self.hash {
            return output::write(&format!("{line}\n"));
        }
        output::note("# The token is shown once and not stored. Its line for the tokens file:");
        output::note(&line.to_string());
        output::write(&format!("{}\n", secret.reveal()))
    }
}

fn read() -> anyhow::Result<Secret> {
    let input = std::io::stdin();
    if input.is_terminal() {
        output::note("Token (end with Ctrl-D):");
    }
    Secret::read(input.lock()).map_err(|error| UsageError(format!("standard input is not a token: {error}")).into())
}
