//! The audit log of a space as a table, with the columns and actions of the audit log of `DuraCloud`'s Mill (its
//! `SpaceLog`).
//!
//! The log has media type and properties only of events that set them, and the digests that were known.
//! Fields are written as in the tables of reports: Mill leaves tabs and line breaks out, or writes them as they are.
//! Keys are percent-encoded (RFC 3986).

use queuekeeper_catalogue::audit::{Event, EventKind};
use queuekeeper_store::audit::Change;
use queuekeeper_store::store::UserProperties;
use queuekeeper_store::{Algorithm, Digest, Key, SpaceName, StoreName};

use crate::account::Account;
use crate::bit::report::line;

/// The columns.
const COLUMNS: [&str; 14] = [
    "ACCOUNT",
    "STORE_ID",
    "SPACE_ID",
    "CONTENT_ID",
    "CONTENT_MD5",
    "CONTENT_SIZE",
    "CONTENT_MIMETYPE",
    "CONTENT_PROPERTIES",
    "SPACE_ACLS",
    "SOURCE_SPACE_ID",
    "SOURCE_CONTENT_ID",
    "TIMESTAMP",
    "ACTION",
    "USERNAME",
];

/// The table of a space.
#[derive(Clone, Debug)]
pub struct AuditTable {
    account: Account,
    store_id: String,
    space: SpaceName,
    in_store: SpaceName,
}

impl AuditTable {
    /// The table of a space of an account in one of its stores; `None` where it has no such store, or no such name
    /// there.
    #[must_use]
    pub fn new(account: &Account, store: &StoreName, space: &SpaceName) -> Option<Self> {
        let id = account.stores.iter().find(|(_, known)| *known == store).map(|(id, _)| id.0.clone());
        let in_store = account.in_stores(space)?;
        Some(Self { account: account.clone(), store_id: id?, space: space.clone(), in_store })
    }

    /// The space as the store names it.
    #[must_use]
    pub fn in_store(&self) -> &SpaceName {
        &self.in_store
    }

    /// The first line.
    #[must_use]
    pub fn header() -> String {
        line(COLUMNS)
    }

    /// The line of an event.
    #[must_use]
    pub fn line(&self, event: &Event) -> String {
        let key = |key: Option<&Key>| key.map(Key::encoded).unwrap_or_default();
        let properties = event.properties.as_deref().unwrap_or_default();
        let user = serde_json::from_str::<UserProperties>(properties).unwrap_or_default();
        let source = event.source.as_ref();
        // A space of another account keeps the name that it has in the store.
        let source_space = source.map(|(space, _)| self.account.of_store(space).unwrap_or_else(|| space.clone()));
        line([
            self.account.name.as_str(),
            &self.store_id,
            self.space.as_str(),
            &key(event.subject.key.as_ref()),
            &event.digests.get(Algorithm::Md5).map(Digest::hex).unwrap_or_default(),
            &event.size.map(|size| size.to_string()).unwrap_or_default(),
            user.content_type.as_deref().unwrap_or_default(),
            properties,
            "",
            source_space.as_ref().map(SpaceName::as_str).unwrap_or_default(),
            &key(source.map(|(_, key)| key)),
            &event.time.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string(),
            action(event.kind),
            &event.user,
        ])
    }
}

/// The action as Mill names it. It has none for what no change explains.
fn action(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Made(Change::Add | Change::Update) => "ADD_CONTENT",
        EventKind::Made(Change::Copy) => "COPY_CONTENT",
        EventKind::Made(Change::Delete) => "DELETE_CONTENT",
        EventKind::Made(Change::Properties) => "SET_CONTENT_PROPERTIES",
        EventKind::Made(Change::CreateSpace) => "CREATE_SPACE",
        EventKind::Made(Change::DeleteSpace) => "DELETE_SPACE",
        EventKind::Observed => "OBSERVED",
    }
}

#[cfg(test)]
mod tests {
    use queuekeeper_store::audit::Subject;
    use uuid::Uuid;

    use super::*;
    use crate::policy::StoreId;

    fn account() -> Account {
        let stores = [("1", "main"), ("2", "replica")];
        Account {
            name: "one".to_owned(),
            stores: stores.map(|(id, name)| (StoreId(id.to_owned()), name.parse().unwrap())).into(),
            prefix: Some("p".to_owned()),
            ..Account::default()
        }
    }

    fn event(kind: EventKind, key: Option<&[u8]>) -> Event {
        Event {
            seq: 7,
            time: "2026-11-27T06:17:22.045Z".parse().unwrap(),
            intent: Uuid::nil(),
            user: "ada".to_owned(),
            kind,
            subject: Subject {
                store: "replica".parse().unwrap(),
                space: "p.theses".parse().unwrap(),
                key: key.map(|key| Key::new(key).unwrap()),
            },
            size: None,
            digests: [].into_iter().collect(),
            etag: None,
            source: None,
            properties: None,
            why: None,
            previous_hash: [0; 32],
        }
    }

    #[test]
    fn each_event_is_a_line_with_the_columns_of_mill() {
        let space: SpaceName = "theses".parse().unwrap();
        let table = AuditTable::new(&account(), &"replica".parse().unwrap(), &space).unwrap();
        assert_eq!(table.in_store().as_str(), "p.theses");
        let copy = Event {
            size: Some(4),
            digests: [Digest::new(Algorithm::Md5, &[0xab; 16]).unwrap()].into_iter().collect(),
            source: Some(("p.old".parse().unwrap(), Key::new(*b"a b").unwrap())),
            properties: Some("{\"content_type\":\"text/plain\",\"metadata\":{\"a\":\"\\t\"}}".to_owned()),
            ..event(EventKind::Made(Change::Copy), Some(b"\xff\t\n"))
        };
        let md5 = "ab".repeat(16);
        let expected = format!(
            "one\t2\ttheses\t%FF%09%0A\t{md5}\t4\ttext/plain\t\
             {{\"content_type\":\"text/plain\",\"metadata\":{{\"a\":\"\\\\t\"}}}}\t\told\ta%20b\t\
             2026-11-27T06:17:22.045\tCOPY_CONTENT\tada\n"
        );
        assert_eq!(table.line(&copy), expected);
        let made = table.line(&event(EventKind::Made(Change::CreateSpace), None));
        assert_eq!(made, "one\t2\ttheses\t\t\t\t\t\t\t\t\t2026-11-27T06:17:22.045\tCREATE_SPACE\tada\n");
        assert_eq!(AuditTable::header().split('\t').count(), expected.split('\t').count());
        for (kind, name) in [
            (EventKind::Made(Change::Update), "\tADD_CONTENT\t"),
            (EventKind::Made(Change::Properties), "\tSET_CONTENT_PROPERTIES\t"),
            (EventKind::Made(Change::Delete), "\tDELETE_CONTENT\t"),
            (EventKind::Made(Change::DeleteSpace), "\tDELETE_SPACE\t"),
            (EventKind::Observed, "\tOBSERVED\t"),
        ] {
            assert!(table.line(&event(kind, Some(b"a"))).contains(name), "{name}");
        }
        assert!(AuditTable::new(&account(), &"cold".parse().unwrap(), &space).is_none());
    }
}
