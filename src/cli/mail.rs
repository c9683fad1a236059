//! The flags that say how mail leaves.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use queuekeeper_mail::address;
use queuekeeper_mail::settings::{MailSettings, MailTls, Route, SmtpServer};

use super::UsageError;

/// How mail leaves.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Mail")]
#[expect(clippy::struct_field_names, reason = "a command has these names beside those of its other flags")]
pub(super) struct MailArgs {
    /// The mail server; without one, mails wait for a process that has one, and standalone writes them to DIR/reports
    #[arg(long = "mail.server", value_name = "HOST:PORT", value_parser = server)]
    mail_server: Option<(String, u16)>,

    /// The sender address of mails
    #[arg(long = "mail.from", value_name = "ADDRESS", value_parser = from)]
    mail_from: Option<String>,

    /// The Reply-To address of mails created by this process [default: --mail.from]
    #[arg(long = "mail.reply-to", value_name = "ADDRESS", value_parser = from)]
    mail_reply_to: Option<String>,

    /// Address of an admin who gets a copy of each report that this process creates; may be repeated
    #[arg(long = "mail.copy-to", value_name = "ADDRESS", value_parser = from)]
    mail_copy_to: Vec<String>,

    /// How the connection to the mail server is encrypted
    #[arg(long = "mail.tls", value_name = "MODE", default_value = "starttls")]
    mail_tls: TlsMode,

    /// YAML file with username and password for the mail server
    #[arg(long = "mail.credentials-file", value_name = "FILE")]
    mail_credentials_file: Option<PathBuf>,

    /// PEM file of the authorities to trust for the mail server [default: those that the system trusts]
    #[arg(long = "mail.ca-file", value_name = "FILE")]
    mail_ca_file: Option<PathBuf>,

    /// Directory to write mails to as .eml files, instead of a mail server
    #[arg(long = "mail.directory", value_name = "DIR", conflicts_with = "mail_server")]
    mail_directory: Option<PathBuf>,
}

/// [`MailTls`] as a flag has it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TlsMode {
    Starttls,
    Implicit,
    None,
}

fn server(text: &str) -> Result<(String, u16), String> {
    let wrong = || "expected HOST:PORT, such as mail.example.edu:587".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_name = host.parse::<IpAddr>().is_ok()
        || (!host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)));
    if is_name { Ok((host.to_owned(), port)) } else { Err(wrong()) }
}

fn from(text: &str) -> Result<String, String> {
    address::check(text).map(|address| address.to_string()).map_err(|error| error.to_string())
}

impl MailArgs {
    /// The first flag that says what is in a mail, where there is one.
    pub(super) fn flag_of_content(&self) -> Option<&'static str> {
        let copy_to = (!self.mail_copy_to.is_empty()).then_some("--mail.copy-to");
        self.mail_reply_to.is_some().then_some("--mail.reply-to").or(copy_to)
    }

    /// How mail leaves; by files in `directory` where nothing else is said.
    ///
    /// # Errors
    /// When flags do not fit together, or a file that is named cannot be used.
    pub(super) fn settings(&self, directory: Option<PathBuf>) -> Result<MailSettings, UsageError> {
        let mut settings = MailSettings::default();
        if let Some(from) = &self.mail_from {
            settings.from.clone_from(from);
        }
        settings.reply_to.clone_from(&self.mail_reply_to);
        settings.copies.clone_from(&self.mail_copy_to);
        let Some((host, port)) = self.mail_server.clone() else {
            for (flag, file) in
                [("--mail.credentials-file", &self.mail_credentials_file), ("--mail.ca-file", &self.mail_ca_file)]
            {
                if file.is_some() {
                    return Err(UsageError::flag(flag, "there is no --mail.server"));
                }
            }
            let directory = self.mail_directory.clone().or(directory);
            settings.route = directory.map_or(Route::None, Route::Directory);
            return Ok(settings);
        };
        if self.mail_from.is_none() {
            return Err(UsageError::flag("--mail.server", "set the sender with --mail.from"));
        }
        let tls = match self.mail_tls {
            TlsMode::Starttls => MailTls::StartTls,
            TlsMode::Implicit => MailTls::Implicit,
            TlsMode::None => MailTls::None,
        };
        let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if tls == MailTls::None && self.mail_credentials_file.is_some() && !is_loopback {
            return Err(UsageError::flag("--mail.tls", "a password is never sent over a network without encryption"));
        }
        let (credentials_file, ca_file) = (self.mail_credentials_file.clone(), self.mail_ca_file.clone());
        let server = SmtpServer { host, port, tls, credentials_file, ca_file };
        server.check().map_err(|why| UsageError::flag("--mail.server", why))?;
        settings.route = Route::Smtp(server);
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port() {
        assert_eq!(server("mail.example.edu:587"), Ok(("mail.example.edu".to_owned(), 587)));
        assert_eq!(server("[::1]:25"), Ok(("::1".to_owned(), 25)));
        for text in ["mail.example.edu", "mail:0", ":25", "a b:25", "mail:99999", "user@mail:25"] {
            assert!(server(text).is_err(), "{text}");
        }
        assert!(from("a@b\r\nBcc: x@y").is_err());
    }
}
