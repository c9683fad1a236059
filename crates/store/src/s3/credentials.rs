//! The credentials of a store, as a file or the usual chain gives them.

use std::fmt;

use aws_sdk_s3::config::Credentials as Signer;

/// Whose requests they are.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Those that the environment gives: variables, the shared files of AWS, web identity, a container's or machine's
    /// role.
    #[default]
    Chain,
    /// A key and its secret.
    Key(AccessKey),
}

/// An access key with its secret, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    id: String,
    secret: String,
    token: Option<String>,
}

/// What is wrong with a credentials file. The text of the file is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// It has neither of the two forms.
    #[error(
        "not a credentials file: two lines, the access key and its secret, or AWS's form with aws_access_key_id and \
         aws_secret_access_key"
    )]
    Form,
    /// The profile is not in it.
    #[error("the credentials file has no such profile, or no key and secret in it")]
    Profile,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Chain => "Chain",
            Self::Key(_) => "Key(..)",
        })
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("AccessKey(..)")
    }
}

impl AccessKey {
    /// A key and its secret.
    #[must_use]
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { id: id.into(), secret: secret.into(), token: None }
    }

    /// Reads a credentials file: two lines, or AWS's form, of which one profile counts (`default` where none is named).
    ///
    /// # Errors
    /// When it has neither form, or not that profile.
    pub fn parse(text: &str, profile: Option<&str>) -> Result<Self, CredentialsError> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
        let is_setting = |line: &str| line.starts_with('[') || line.to_ascii_lowercase().starts_with("aws_");
        if !lines().any(is_setting) {
            return match lines().collect::<Vec<_>>()[..] {
                [id, secret] if profile.is_none() && !id.contains(char::is_whitespace) => Ok(Self::new(id, secret)),
                _ => Err(CredentialsError::Form),
            };
        }
        let profile = profile.unwrap_or("default");
        // Without any heading, the settings are those of the default profile.
        let mut is_in_it = profile == "default";
        let (mut id, mut secret, mut token) = (None, None, None);
        for line in lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let name = name.trim();
                is_in_it = name == profile || name.strip_prefix("profile ").map(str::trim) == Some(profile);
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_in_it) {
                let value = value.trim().to_owned();
                match name.trim().to_ascii_lowercase().as_str() {
                    "aws_access_key_id" => id = Some(value),
                    "aws_secret_access_key" => secret = Some(value),
                    "aws_session_token" => token = Some(value),
                    _ => {}
                }
            }
        }
        match (id, secret) {
            (Some(id), Some(secret)) if !id.is_empty() && !secret.is_empty() => Ok(Self { id, secret, token }),
            _ => Err(CredentialsError::Profile),
        }
    }

    pub(super) fn signer(&self) -> Signer {
        Signer::new(&self.id, &self.secret, self.token.clone(), None, "credentials file")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, profile: Option<&str>) -> Result<(String, String, Option<String>), CredentialsError> {
        AccessKey::parse(text, profile).map(|key| (key.id, key.secret, key.token))
    }

    #[test]
    fn both_forms_of_a_credentials_file_are_read() {
        let key = |id: &str, secret: &str| Ok((id.to_owned(), secret.to_owned(), None));
        assert_eq!(read("AKIA\nse=cret/+\n", None), key("AKIA", "se=cret/+"));
        assert_eq!(read("# old\n\n  AKIA \r\n secret\r\n", None), key("AKIA", "secret"));
        let aws = "[default]\naws_access_key_id = A\naws_secret_access_key=B==\n[cold]\nregion=x\n\
                   AWS_ACCESS_KEY_ID=C\naws_secret_access_key = D\naws_session_token=E\n";
        assert_eq!(read(aws, None), key("A", "B=="));
        assert_eq!(read(aws, Some("cold")), Ok(("C".to_owned(), "D".to_owned(), Some("E".to_owned()))));
        assert_eq!(read("aws_access_key_id=A\naws_secret_access_key=B", None), key("A", "B"));
    }

    #[test]
    fn anything_else_is_refused_and_a_secret_never_shown() {
        for text in ["", "AKIA", "a\nb\nc", "a b\nc"] {
            assert_eq!(read(text, None), Err(CredentialsError::Form), "{text:?}");
        }
        assert_eq!(read("[default]\naws_access_key_id=A\n", None), Err(CredentialsError::Profile));
        assert_eq!(read("[default]\naws_access_key_id=A\n", Some("b")), Err(CredentialsError::Profile));
        let key = AccessKey::new("AKIA", "hidden");
        assert!(!format!("{key:?} {:?}", Credentials::Key(key.clone())).contains("hidden"));
    }
}
