//! The catalogue in the file of `--config.file`.

use std::fmt;
use std::path::Path;

use queuekeeper_catalogue::Catalogue;
use serde::Deserialize;
use serde_saphyr::Spanned;
use url::Url;

use super::super::source::{FileError, Files, refuse};

/// The keys of the catalogue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    url: Spanned<String>,
    password_file: Option<Spanned<String>>,
}

/// The URL of the catalogue, which may hold a password: shown without it.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogueUrl(String);

impl CatalogueUrl {
    /// That of a file of SQLite.
    pub(super) fn of_file(file: &Path) -> Self {
        Self(format!("sqlite:{}", file.display()))
    }

    /// The URL with the password.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The file of a catalogue in SQLite, if it does not exist. (One that may not be looked at is no missing one.)
    #[must_use]
    pub fn missing(&self) -> Option<&Path> {
        self.0.strip_prefix("sqlite:").map(Path::new).filter(|path| matches!(path.try_exists(), Ok(false)))
    }
}

impl fmt::Debug for CatalogueUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("CatalogueUrl(..)")
    }
}

/// The URL that they give, with the password from its file.
pub(super) fn check(path: &Path, keys: &Keys, files: &mut Files) -> Result<CatalogueUrl, FileError> {
    let line = keys.url.referenced.line();
    let at = |why: &str| refuse(path, line, format!("catalogue: {why}"));
    let url = &keys.url.value;
    if let Some(file) = url.strip_prefix("sqlite:") {
        if keys.password_file.is_some() {
            return Err(at("an SQLite file has no password"));
        }
        let file = file.strip_prefix("//").unwrap_or(file);
        if file.is_empty() {
            return Err(at("the url of a file is sqlite:PATH"));
        }
        if file.contains('?') || file == ":memory:" {
            return Err(at("the url of a file is sqlite:PATH, without parameters"));
        }
        // As every path in this file, it is relative to it.
        let file = path.parent().unwrap_or(Path::new("")).join(file);
        return Ok(CatalogueUrl::of_file(&file));
    }
    let usual = "url is sqlite:PATH or postgres://USER@HOST/DATABASE";
    let mut parsed = Url::parse(url).map_err(|_| at(usual))?;
    if !matches!(parsed.scheme(), "postgres" | "postgresql") {
        return Err(at(usual));
    }
    if parsed.password().is_some() || parsed.query_pairs().any(|(name, _)| name == "password") {
        return Err(at(
            "a password must not be in this file; write it to a separate file, and name that in password_file",
        ));
    }
    Catalogue::check_server_url(parsed.as_str()).map_err(|why| at(&why))?;
    if let Some(file) = &keys.password_file {
        let password = files.text(path, file)?;
        parsed.set_password(Some(password.trim_end_matches(['\n', '\r']))).map_err(|()| at(usual))?;
    }
    Ok(CatalogueUrl(parsed.into()))
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;

    #[test]
    fn what_is_wrong_with_the_catalogue_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.yml");
        for (text, expected) in [
            ("catalogue: {url: \"mysql://a/b\"}", "url is sqlite:PATH or postgres://USER@HOST/DATABASE"),
            ("catalogue: {url: \"postgres://a:b@c/d\"}", "name that in password_file"),
            ("catalogue: {url: \"postgres://a@c/d?password=p@ss\"}", "name that in password_file"),
            ("catalogue: {url: \"postgres://a@c/d?pass%77ord=p@ss\"}", "name that in password_file"),
            (
                "catalogue: {url: \"postgres://a@c/d?options=x\"}",
                "unknown parameter; expected one of sslmode, sslrootcert",
            ),
            ("catalogue: {url: \"postgres://a@c/d?sslmode=always\"}", "catalogue: the URL is invalid"),
            ("catalogue: {url: \"sqlite:\"}", "the url of a file is sqlite:PATH"),
            ("catalogue: {url: \"sqlite:q.db?mode=rwc\"}", "the url of a file is sqlite:PATH, without parameters"),
            ("catalogue: {url: \"sqlite::memory:\"}", "the url of a file is sqlite:PATH, without parameters"),
            ("catalogue: {url: \"sqlite:a\", password_file: password}", "an SQLite file has no password"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = ConfigFile::read(&path).map(drop).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("p@ss"), "{error}");
        }
    }
}
