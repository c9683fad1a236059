//! Files that earlier versions wrote. What is in them stays as it is: a record that gets another form needs a file of
//! its own beside them.

use std::collections::BTreeSet;

use super::*;

const FILES: [(&str, &str); 1] = [("0.1.0", include_str!("../../../../tests/golden/audit-0.1.0.jsonl"))];

#[tokio::test]
async fn the_records_of_earlier_versions_are_read_and_shown() {
    for (version, text) in FILES {
        let mut kinds = BTreeSet::new();
        for line in text.lines() {
            let record = Record::read(line).unwrap_or_else(|| panic!("{version}: {line}"));
            let written: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.insert(written["record"].as_str().unwrap().to_owned());
            // Nothing that was written is lost on the way.
            assert_eq!(serde_json::from_str::<serde_json::Value>(&record.line(None)).unwrap(), written, "{version}");
        }
        let all = ["alerts", "alerts_unchanged", "decision", "outcome", "requested", "settled", "started"];
        assert_eq!(kinds, all.map(str::to_owned).into(), "{version}");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let (audit, writer) = open(&path, 1 << 20, 2);
        with_writer(writer, async {}).await;
        let found = audit.find(&AuditQuery { limit: 10, ..AuditQuery::default() });
        let found: Vec<_> = found.entries.iter().map(|entry| (&*entry.actor, entry.outcome.as_deref())).collect();
        assert_eq!(
            found,
            [("bob@host", Some("unknown")), ("rule:again", Some("done")), ("alice", Some("in_part"))],
            "{version}"
        );
    }
}
