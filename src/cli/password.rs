//! `queuekeeper password`: the line for a user with a password.

use std::io::{IsTerminal as _, Read as _};
use std::process::Command;

use anyhow::Context as _;
use clap::Args;

use super::{UsageError, output};

/// 2^12 rounds: a quarter of a second on a current machine, as `htpasswd -C 12`.
const COST: u32 = 12;

/// The maximum length of a password for bcrypt, in bytes.
const MAX_PASSWORD_BYTES: usize = 72;

/// Create the line for --web.config.file for a user whose password is read from standard input
///
/// On a terminal, the password is prompted for twice and not shown.
#[derive(Clone, Debug, Args)]
pub(super) struct PasswordArgs {
    /// The user
    #[arg(value_name = "USER")]
    user: String,
}

impl PasswordArgs {
    /// Writes the line to standard output.
    ///
    /// # Errors
    /// When the user or the password is not valid ([`UsageError`]), or the terminal cannot hide the input.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let is_terminal = std::io::stdin().is_terminal();
        let password = if is_terminal { typed()? } else { piped()? };
        output::write(&format!("{}\n", line(&self.user, &password)?))
    }
}

/// The line for a user with a password.
fn line(user: &str, password: &str) -> Result<String, UsageError> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.@".contains(character);
    if user.is_empty() || !user.chars().all(is_plain) {
        return Err(UsageError("the name of a user may have letters, digits and - _ . @".to_owned()));
    }
    if password.is_empty() || password.len() > MAX_PASSWORD_BYTES || password.chars().any(char::is_control) {
        return Err(UsageError(format!(
            "a password must be one line of 1 to {MAX_PASSWORD_BYTES} bytes without control characters"
        )));
    }
    let hash = bcrypt::hash(password, COST).map_err(|error| UsageError(error.to_string()))?;
    // Quoted, since YAML would read some names as numbers or booleans.
    Ok(format!("  \"{user}\": {hash}"))
}

/// Standard input, without its newline.
fn piped() -> anyhow::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(MAX_PASSWORD_BYTES + 3)?;
    let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
    read.map_err(|_| UsageError("standard input cannot be read as text".to_owned()))?;
    Ok(without_end(&text).to_owned())
}

fn without_end(text: &str) -> &str {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Prompts for it twice on the terminal.
fn typed() -> anyhow::Result<String> {
    // Ctrl-C would end the process with the terminal in this mode; Ctrl-D aborts.
    let set = |how: [&str; 2]| Command::new("stty").args(how).status().is_ok_and(|status| status.success());
    if !set(["-echo", "-isig"]) {
        anyhow::bail!("the terminal cannot hide the password: pipe it in instead");
    }
    let ask = |question: &str| {
        output::note(question);
        let mut text = String::new();
        std::io::stdin().read_line(&mut text).map(|_| without_end(&text).to_owned())
    };
    let entered = ask("Password:").and_then(|once| Ok((once, ask("Repeat the password:")?)));
    set(["echo", "isig"]);
    let (once, again) = entered.context("cannot read the password")?;
    if once != again {
        return Err(UsageError("the two passwords differ".to_owned()).into());
    }
    Ok(once)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WebFile;

    #[test]
    fn the_line_accepts_the_password_of_the_user_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("web.yml");
        for user in ["alice", "42", "true", "a.b-c_d@e"] {
            std::fs::write(&path, format!("basic_auth_users:\n{}\n", line(user, "hunter 2").unwrap())).unwrap();
            let file = WebFile::read(&path).unwrap();
            assert!(file.users().verify(user, b"hunter 2") && !file.users().verify(user, b"hunter"), "{user}");
        }
        assert_eq!(without_end("secret\r\n"), "secret");
    }

    #[test]
    fn a_user_or_password_that_could_not_be_sent_or_compared_is_refused() {
        let long = "x".repeat(MAX_PASSWORD_BYTES + 1);
        for (user, password) in [("", "x"), ("a:b", "x"), ("a\"b", "x"), ("a", ""), ("a", &*long), ("a", "x\ny")] {
            assert!(line(user, password).is_err(), "{user} {password}");
        }
    }
}
