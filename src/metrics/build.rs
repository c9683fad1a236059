//! What this program was built from.

use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The crate's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the build script writes where it could not find a value, as outside a git checkout.
const PLACEHOLDER: &str = "VERGEN_IDEMPOTENT_OUTPUT";

/// The git revision, shortened; `unknown` where it was built outside a checkout.
#[must_use]
pub fn revision() -> &'static str {
    known(option_env!("VERGEN_GIT_SHA"))
}

/// The day of the revision's commit, as `2026-11-27`; `unknown` as above.
#[must_use]
pub fn date() -> &'static str {
    known(option_env!("VERGEN_GIT_COMMIT_DATE"))
}

/// The compiler's version.
#[must_use]
pub fn rustc() -> &'static str {
    known(option_env!("VERGEN_RUSTC_SEMVER"))
}

fn known(value: Option<&'static str>) -> &'static str {
    value.filter(|value| !value.is_empty() && *value != PLACEHOLDER).unwrap_or("unknown")
}

/// Registers `queuekeeper_build_info`.
pub fn register(registry: &mut Registry) {
    let labels = vec![("version", VERSION), ("revision", revision()), ("rustc", rustc())];
    registry.register("queuekeeper_build", "Version, revision and compiler of this build", Info::new(labels));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_git_says_unknown() {
        assert_eq!(known(Some(PLACEHOLDER)), "unknown");
        assert_eq!(known(None), "unknown");
        assert_eq!(known(Some("0766dc0")), "0766dc0");
        assert_ne!(rustc(), "unknown");
    }
}
