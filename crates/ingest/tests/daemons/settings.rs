//! Settings of daemons for tests.

use std::time::Duration;

use queuekeeper_ingest::access::AccessSettings;
use queuekeeper_ingest::daemon::Daemon;
use queuekeeper_ingest::settings::Settings;
use queuekeeper_store::retry::RetryPolicy;

/// Within what time is done what nothing holds up, also on a busy machine.
pub(super) const SOON: Duration = Duration::from_mins(1);

/// Settings with short pauses.
pub(super) fn quick() -> Settings {
    let short = Duration::from_millis(100);
    let mut settings =
        Settings { retry_first: short, retry_most: short * 5, look_again: short * 5, ..Settings::default() };
    settings.fetch.retries = RetryPolicy { attempts: 1, within: short, first: short, most: short };
    settings
}

/// Settings under which daemons look by themselves so seldom that what is done within [`SOON`] was caused by a watch.
pub(super) fn watching() -> Settings {
    Settings { look_again: SOON * 5, ..Settings::default() }
}

/// These settings, with a store to deliver to.
pub(super) fn delivering(settings: Settings) -> Settings {
    let access = AccessSettings {
        store: "out".parse().unwrap(),
        space: "access".parse().unwrap(),
        node: 7001,
        url: "http://host/".to_owned(),
        is_presigned: false,
        lifetime: Duration::from_hours(1),
        small: 1 << 30,
    };
    Settings { access: Some(access), ..settings }
}

/// These settings, for these daemons only.
pub(super) fn only(daemons: &[Daemon], mut settings: Settings) -> Settings {
    settings.workers.retain(|daemon, _| daemons.contains(daemon));
    settings
}
