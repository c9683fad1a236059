//! Profiles of collections, and the file of users and passwords that one names.

use queuekeeper_ingest::profile::Profiles;

use super::shown;

/// What stands between the profile and the file `hosts.credentials`.
const BETWEEN: &[u8] = b"\n---8<---\n";

/// Reads the bytes as a profile; what follows a line `---8<---` is its file of credentials.
///
/// # Panics
/// When an error shows a line of the credentials, or what is accepted is none of what may be.
pub fn check(data: &[u8]) {
    let between = data.windows(BETWEEN.len()).position(|found| found == BETWEEN);
    let (profile, credentials) = between.map_or((data, &b""[..]), |at| (&data[..at], &data[at + BETWEEN.len()..]));
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    std::fs::write(directory.path().join("hosts.credentials"), credentials).expect("a file can be written");
    std::fs::write(directory.path().join("one.yaml"), profile).expect("a file can be written");
    let mut profiles = Profiles::read(directory.path()).expect("its directory is there");
    assert!(profiles.read_again().expect("its directory is there").is_empty(), "nothing has changed");
    assert_eq!(profiles.errors().len() + profiles.iter().count(), 1, "a file is a profile, or it is invalid");
    for error in profiles.errors() {
        shown::error(error, 4_096);
        let text = error.to_string();
        let credentials = String::from_utf8_lossy(credentials);
        let secrets = credentials.lines().filter_map(|line| line.split_once("password:"));
        for secret in secrets.map(|(_, secret)| secret.trim()).filter(|secret| secret.len() >= 24) {
            assert!(!text.contains(secret), "a password is shown: {text}");
        }
    }
    for profile in profiles.iter() {
        assert!([0, 1, u64::MAX].into_iter().all(|jobs| profile.priority(jobs) <= 99), "a priority has two digits");
        assert!(profile.callback.as_ref().is_none_or(|url| !url.is_file()), "a callback goes over the network");
        assert!(profiles.get(profile.name.as_str()).is_some(), "a profile is found by its name");
    }
}
