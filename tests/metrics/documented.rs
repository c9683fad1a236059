//! The documentation's tables of metrics, against the families that are exported.

use std::collections::BTreeSet;

/// The families of a file of what is exported.
fn families(golden: &str) -> impl Iterator<Item = &str> {
    golden.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
}

#[test]
fn the_documentation_names_every_family_by_its_name_or_by_how_that_begins() {
    let pages = [
        include_str!("../../docs/metrics.md"),
        include_str!("../../docs/mill.md"),
        include_str!("../../docs/ingest.md"),
        include_str!("../../docs/alerts.md"),
    ];
    let spans = pages.into_iter().flat_map(|page| page.split('`').skip(1).step_by(2));
    let named: BTreeSet<&str> = spans.map(|span| span.split('{').next().unwrap_or(span)).collect();
    let is_named = |family: &str| {
        let begins = |name: &&str| name.strip_suffix('*').is_some_and(|start| family.starts_with(start));
        // `merritt_*` stands for what is about the queue, whatever it is.
        named.contains(family) || named.iter().filter(|name| name.matches('_').count() > 1).any(begins)
    };
    let golden = [
        include_str!("../golden/metrics.txt"),
        include_str!("../golden/daemons.txt"),
        include_str!("../golden/mill.txt"),
        include_str!("../golden/process.txt"),
    ];
    let missing: Vec<_> = golden.into_iter().flat_map(families).filter(|family| !is_named(family)).collect();
    assert_eq!(missing, [""; 0], "the documentation lacks these");
}
