use std::collections::BTreeSet;

use super::*;
use crate::actions::parameters::Argument;

#[test]
fn every_kind_of_action_is_supported_for_a_target_and_listed_once_for_each() {
    let rows = || TargetKind::ALL.into_iter().flat_map(|target| target.actions().iter().map(move |row| (target, row)));
    for kind in ActionKind::ALL {
        assert!(rows().any(|(_, row)| row.kind == kind), "{kind}");
    }
    for (target, row) in rows() {
        let same = rows().filter(|(other, found)| *other == target && found.kind == row.kind).count();
        assert_eq!(same, 1, "{target:?} {}", row.kind);
        assert!(row.effect.ends_with('.') && !row.summary.ends_with('.'), "{target:?} {}", row.kind);
        for takes in row.offers() {
            let has_words = !takes.label.is_empty() && !takes.help.is_empty();
            let is_flag = matches!(takes.parameter.spec().argument, Argument::Flag { .. });
            assert_eq!(has_words, is_flag, "{target:?} {} {takes:?}", row.kind);
        }
        // A depositor may withdraw a deposit, and so may an operator.
        let is_for_admins = row.kind.is_destructive() && row.kind != ActionKind::Withdraw;
        assert_eq!(is_for_admins, row.role == Admin, "{target:?} {}", row.kind);
    }
}

#[test]
fn the_documentation_lists_the_actions_of_each_target() {
    let documentation = include_str!("../../../docs/operate.md");
    for target in TargetKind::ALL {
        let name = match target {
            TargetKind::Job => "a job",
            TargetKind::Batch => "a batch",
            TargetKind::Request => "an access request",
            TargetKind::Queue => "a queue",
            TargetKind::Collection => "a collection",
            TargetKind::Store => "a store",
            TargetKind::Lock => "a lock, such as that of a job",
            TargetKind::Fault => "a fault",
            TargetKind::Batches => "all finished batches",
        };
        let row = documentation.lines().find_map(|line| line.strip_prefix(&format!("| {name} | "))).unwrap_or_default();
        // What stands in brackets is said of the action before it.
        let row: String = row.trim_end_matches(" |").split('(').map(|text| text.rsplit(')').next().unwrap()).collect();
        let listed: Vec<_> = row.split(',').map(str::trim).collect();
        let titles: Vec<_> = target.actions().iter().map(|spec| spec.kind.title().to_lowercase()).collect();
        assert_eq!(listed, titles, "{name}");
    }
}

#[test]
fn the_documentation_lists_the_actions_that_each_role_adds() {
    let documentation = include_str!("../../../docs/security.md");
    for role in [Operator, Admin] {
        let (_, row) = documentation.split_once(&format!("| `{role}` | ")).unwrap();
        let (listed, _) = row.split_once(": ").and_then(|(_, list)| list.split_once(';')).unwrap();
        let rows = TargetKind::ALL.into_iter().flat_map(TargetKind::actions).filter(|spec| spec.role == role);
        let titles: BTreeSet<_> = rows.map(|spec| spec.kind.title().to_lowercase()).collect();
        assert_eq!(listed.split(", ").map(str::to_owned).collect::<BTreeSet<_>>(), titles, "{role}");
    }
}
