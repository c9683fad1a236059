//! Any sequence of changes, each with a fault of the store below.

use std::sync::Arc;

use proptest::prelude::*;
use queuekeeper_store::audited::Audited;
use queuekeeper_store::error::Operation;
use queuekeeper_store::store::{Condition, Put, UserProperties};
use queuekeeper_store::{Error, ErrorKind, Store as _};
use queuekeeper_testkit::faulty::{Fault, Faulty, Rule};
use tokio::time::advance;

use super::setup::{TIMING, chunks, item, setup};
use crate::support::memory::StoreKind;

#[derive(Clone, Copy, Debug)]
enum Change {
    Put(&'static [u8]),
    Copy,
    Delete,
    SetProperties(&'static str),
}

fn changes() -> impl Strategy<Value = Change> {
    let contents = prop::sample::select(vec![&b"first"[..], b"other", b"longer content", b""]);
    prop_oneof![
        4 => contents.prop_map(Change::Put),
        1 => Just(Change::Copy),
        2 => Just(Change::Delete),
        1 => prop::sample::select(vec!["text/plain", "image/png"]).prop_map(Change::SetProperties),
    ]
}

fn rules() -> impl Strategy<Value = Option<Rule>> {
    let change = prop_oneof![
        Just(Fault::Temporary),
        Just(Fault::Permanent),
        Just(Fault::LostAnswer),
        Just(Fault::Late),
        (0..6_u64).prop_map(Fault::BreakAt),
    ];
    let on_change = change.prop_map(|fault| {
        let rule = Rule::new(fault).on(Operation::Put).on(Operation::Copy).on(Operation::Delete);
        rule.on(Operation::SetProperties).times(1)
    });
    let on_look = (1..4_u64).prop_map(|calls| Rule::new(Fault::Temporary).on(Operation::Head).one_in(calls).times(2));
    prop_oneof![2 => Just(None), 4 => on_change.prop_map(Some), 1 => on_look.prop_map(Some)]
}

async fn make(store: &Audited<Faulty>, change: Change, key: &str) -> Result<(), Error> {
    let at = item(key);
    match change {
        Change::Put(content) => store.put(&at, chunks(content), Put::default()).await.map(drop),
        Change::Copy => store.copy(&at, None, &item("copy"), &Condition::None).await.map(drop),
        Change::Delete => store.delete(&at, None).await.map(drop),
        Change::SetProperties(media) => {
            let user = UserProperties { content_type: Some(media.to_owned()), ..UserProperties::default() };
            store.set_properties(&at, &user, None).await.map(drop)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_audit_log_says_what_the_store_has(
        kept in any::<bool>(),
        tags_by_content in any::<bool>(),
        steps in prop::collection::vec((changes(), prop::sample::select(vec!["a", "b"]), rules()), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let checksums = if kept { StoreKind::default().checksums } else { vec![] };
            let setup = setup(StoreKind { checksums, tags_by_content, ..StoreKind::default() });
            setup.audited.create_space(&item("a").space).await.unwrap();
            let (faulty, faults) = Faulty::new(setup.store.clone());
            let capabilities = setup.store.capabilities();
            let store = Audited::new(Arc::new(faulty), &capabilities, setup.sink.clone(), "tester");
            let store = store.with_timing(TIMING);
            for (change, key, rule) in steps {
                if let Some(rule) = rule {
                    faults.add(rule);
                }
                let before = setup.store.contents();
                let made = make(&store, change, key).await;
                faults.clear();
                if let Err(error) = &made && !matches!(error.kind, ErrorKind::Unknown(_)) {
                    assert_eq!(setup.store.contents(), before, "{error}");
                }
                // What is late arrives before the lease ends.
                for landed in faults.land().await {
                    landed.unwrap();
                }
                advance(TIMING.lease).await;
                assert_eq!(store.resolve_left().await.unwrap().failed, 0);
                setup.assert_recorded(&format!("{change:?} of {key}: {made:?}"));
                assert_eq!(setup.sink.open_intents(), []);
            }
        });
    }
}
