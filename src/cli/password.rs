//! `queuekeeper password`: the line that lets a user in by a password.

use std::io::{IsTerminal as _, Read as _};
use std::process::Command;

use anyhow::Context as _;
use clap::Args;

use super::{UsageError, output};

/// Of 2^12 rounds: a quarter of a second on a machine of today, and as `htpasswd -C 12` has it.
const COST: u32 = 12;

/// How much of a password bcrypt looks at, in bytes.
const LONGEST: usize = 72;

/// Make the line for --web.config.file that lets a user in by a password, which is read from standard input
///
/// At a terminal the password is asked for twice, and not shown.
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
    /// When the user or the password cannot be taken ([`UsageError`]), or the terminal does not hide what is typed.
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
        return Err(UsageError("a user's name has letters, digits and - _ . @".to_owned()));
    }
    if password.is_empty() || password.len() > LONGEST || password.chars().any(char::is_control) {
        return Err(UsageError(format!("a password is one line of 1 to {LONGEST} bytes without control characters")));
    }
    let hash = bcrypt::hash(password, COST).map_err(|error| UsageError(error.to_string()))?;
    // In quotes, since some names are numbers or truth values to YAML.
    Ok(format!("  \"{user}\": {hash}"))
}

/// What stands on standard input, without the end of its line.
fn piped() -> anyhow::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(LONGEST + 3)?;
    let read = std::io::stdin().lock().take(most).read_to_string(&mut text);
    read.map_err(|_| UsageError("standard input cannot be read as text".to_owned()))?;
    Ok(without_end(&text).to_owned())
}

fn without_end(text: &str) -> &str {
    let line = text.strip_suffix('\n').unwrap_or(text);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Asks for it twice at the terminal.
fn typed() -> anyhow::Result<String> {
    // Ctrl-C would end the process and leave the terminal as it is; Ctrl-D gives up.
    let set = |how: [&str; 2]| Command::new("stty").args(how).status().is_ok_and(|status| status.success());
    if !set(["-echo", "-isig"]) {
        anyhow::bail!("the terminal cannot be kept from showing the password: pipe it in instead");
    }
    let ask = |question: &str| {
        output::note(question);
        let mut text = String::new();
        std::io::stdin().read_line(&mut text).map(|_| without_end(&text).to_owned())
    };
    let asked = ask("The password:").and_then(|once| Ok((once, ask("The same again:")?)));
    set(["echo", "isig"]);
    let (once, again) = asked.context("the password cannot be read")?;
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
    fn the_line_lets_the_user_in_by_the_password_and_by_no_other() {
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
    fn what_could_not_be_sent_or_would_not_be_looked_at_is_refused() {
        let long = "x".repeat(LONGEST + 1);
        for (user, password) in [("", "x"), ("a:b", "x"), ("a\"b", "x"), ("a", ""), ("a", &*long), ("a", "x\ny")] {
            assert!(line(user, password).is_err(), "{user} {password}");
        }
    }
}
