//! The table of faults, row by row.

use std::collections::BTreeSet;

use super::*;
use crate::fault::RepairKind::{BreaksLock, Writes};

#[test]
fn every_fault_has_a_name_of_its_own_and_sentences_that_end() {
    let labels: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.label()).collect();
    assert_eq!(labels.len(), Fault::ALL.len());
    for (index, fault) in Fault::ALL.into_iter().enumerate() {
        assert_eq!(fault as usize, index);
        assert_eq!(Fault::from_label(fault.label()), Some(fault));
        for words in [fault.effect(), fault.fix()] {
            assert!(words.ends_with('.') && !words.contains("  "), "{fault}: {words}");
        }
    }
    assert_eq!(Fault::from_label("no_such_fault"), None);
    let titles: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.title()).collect();
    assert_eq!(titles.len(), Fault::ALL.len());
}

#[test]
fn a_fault_of_the_table_is_shown_with_its_own_row() {
    let fault = Fault::UnfinishedCreation;
    assert_eq!([fault.label(), fault.title()], ["unfinished_creation", "Unfinished creation"]);
    assert!(fault.effect().starts_with("A daemon that acquires it") && fault.fix().starts_with("Purge it"));
    assert_eq!(format!("{fault:>20}"), " unfinished_creation");
    assert_eq!([fault, Fault::StrayEntry].map(|fault| fault.severity().label()), ["error", "warning"]);
}

#[test]
fn a_fault_stops_the_items_that_it_blocks_but_not_by_what_is_behind_them() {
    for (fault, blocks, stops_item) in [
        (Fault::OrphanEntry, &[Blocks::Head][..], false),
        (Fault::StrayEntry, &[], false),
        (Fault::MalformedName, &[Blocks::Job, Blocks::Batch], true),
        (Fault::StuckState, &[Blocks::State], true),
        (Fault::UnloadableRequest, &[Blocks::Request, Blocks::Head], true),
    ] {
        let all = [Blocks::Job, Blocks::Batch, Blocks::Request, Blocks::State, Blocks::Head];
        let found: Vec<_> = all.into_iter().filter(|what| fault.blocks(*what)).collect();
        assert_eq!((&found[..], fault.stops_item()), (blocks, stops_item), "{fault}");
    }
}

#[test]
fn some_faults_are_repaired_for_some_items_only() {
    let rows = [
        (Fault::UnfinishedCreation, "/batches/bid0000000007", true),
        (Fault::UnfinishedCreation, "/jobs/jid0000000042", false),
        (Fault::UnfinishedCreation, "/access/small/qid0000000003", false),
        (Fault::MalformedName, "/jobs/states/pending/05-", true),
        (Fault::MalformedName, "/jobs/jid77777", false),
        (Fault::MalformedName, "/batches/bid99999", false),
        (Fault::UnloadableJob, "/jobs/jid0000000042", true),
    ];
    for (fault, item, is_written) in rows {
        let item = Path::parse(item);
        let kind = fault.repair_kind_of(&item);
        assert_eq!(kind == Writes, is_written, "{fault} of {item}: {kind:?}");
        // A fix is the same sentence wherever it is shown.
        let fix = fault.fix_of(&item);
        assert_eq!(fault.help(&item), (!is_written).then_some(fix), "{fault} of {item}");
        assert_eq!(fix == fault.fix(), is_written, "{fault} of {item}: {fix}");
        assert!(fix.starts_with(char::is_uppercase) && fix.ends_with('.'), "{fault} of {item}: {fix}");
    }
    let lock = Path::parse("/jobs/jid0000000042/lock");
    assert_eq!(Fault::LeakedLock.repair_kind_of(&lock), BreaksLock);
}

#[test]
fn only_a_repair_that_writes_is_made_unattended() {
    for fault in Fault::ALL.into_iter().filter(|fault| fault.may_be_repaired_unattended()) {
        assert_eq!(fault.repair_kind(), Writes, "{fault}");
    }
    let found = [Fault::OrphanEntry, Fault::UnloadableJob, Fault::LeakedLock, Fault::OverdueBatch]
        .map(Fault::may_be_repaired_unattended);
    assert_eq!(found, [true, false, false, false]);
}
