//! `--config.file`, with its users, its rules and the file of tokens that it names.

use queuekeeper::actions::Role;
use queuekeeper::config::ConfigFile;

use super::{board, shown};

/// What stands between the configuration and the file `tokens.yml`.
const BETWEEN: &[u8] = b"\n---8<---\n";

/// Reads the bytes as such a file; what follows a line `---8<---` is the file of tokens.
///
/// # Panics
/// When an error shows what it should not, or what is accepted is none of what may be.
pub fn check(data: &[u8]) {
    let between = data.windows(BETWEEN.len()).position(|found| found == BETWEEN);
    let (config, tokens) = between.map_or((data, &b""[..]), |at| (&data[..at], &data[at + BETWEEN.len()..]));
    let _ = board::file("tokens.yml", tokens);
    let path = board::file("config.yml", config);
    let file = match ConfigFile::read(&path) {
        Ok(file) => file,
        Err(error) => {
            shown::error(&error, 4_000);
            let text = error.to_string();
            let is_concealed = !text.contains("tokens.yml") || !text.contains("qk_") || text.contains("looks like");
            assert!(is_concealed, "an error shows a token: {text}");
            return;
        }
    };
    assert!(matches!(file.read_again(), Ok(None)), "nothing has changed");
    assert!(file.users() == 0 || file.check_users(None).is_err(), "no user has a role who cannot log in");
    assert!(file.tokens().len() <= 1_000, "tokens are bounded");
    assert_eq!(file.role("a user who is not in it"), Role::Viewer, "a user who is not named may read");
    let rules = file.rules();
    assert!(rules.rules.len() <= 100, "rules are bounded");
    for rule in &rules.rules {
        assert!((1..=500).contains(&rule.select.limit), "{rule:?} is bounded");
        assert!((1..=10_000).contains(&rule.budget.items), "{rule:?} is bounded");
        assert!(rule.max_share.is_none_or(|share| share > 0.0 && share <= 1.0), "{rule:?} has a share");
        assert!(!(rule.select.states.is_empty() && rule.select.faults.is_empty()), "{rule:?} chooses something");
        let is_name =
            rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
        assert!(is_name && (1..=64).contains(&rule.name.len()), "{rule:?} names a znode");
        assert_eq!(rules.get(&rule.name).map(|found| &found.alert), Some(&rule.alert), "a rule is found by its name");
    }
}
