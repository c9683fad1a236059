//! Several expositions as one.

use std::collections::HashMap;

use super::line::TextLine;

/// The text of a family.
#[derive(Default)]
struct Family<'a> {
    /// The lines that describe it, from the first exposition that has it.
    head: Vec<&'a str>,
    samples: Vec<&'a str>,
}

/// Merges expositions in OpenMetrics, family by family: none stands twice, and its samples are those of all, in the
/// order of the expositions. That none of them stands twice is the caller's to ensure.
pub fn merge(expositions: &[String]) -> String {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for exposition in expositions {
        let known = families.len();
        let mut place = None;
        for line in exposition.lines() {
            match described(line) {
                Some(name) => {
                    let found = *places.entry(name).or_insert_with(|| {
                        families.push(Family::default());
                        families.len() - 1
                    });
                    place = Some(found);
                    if found >= known {
                        families[found].head.push(line);
                    }
                }
                None if matches!(TextLine::read(line), TextLine::Sample { .. }) => {
                    if let Some(place) = place {
                        families[place].samples.push(line);
                    }
                }
                None => {}
            }
        }
    }
    let mut merged = String::with_capacity(expositions.iter().map(String::len).sum());
    for line in families.iter().flat_map(|family| family.head.iter().chain(&family.samples)) {
        merged.push_str(line);
        merged.push('\n');
    }
    merged.push_str("# EOF\n");
    merged
}

/// The family that a line describes; `None` for another line.
fn described(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("# ")?.splitn(3, ' ');
    let is_head = matches!(words.next(), Some("HELP" | "TYPE" | "UNIT"));
    words.next().filter(|_| is_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_all_stand_once_with_the_samples_of_each() {
        let of = |name: &str, more: &str| {
            format!(
                "# HELP jobs Jobs.\n# TYPE jobs gauge\njobs{{deployment=\"{name}\",a=\"# TYPE x\"}} 1\n{more}# HELP ended Ended.\n\
                 # TYPE ended counter\n# UNIT ended seconds\nended_total{{deployment=\"{name}\"}} 2\n# EOF\n"
            )
        };
        let process = "# HELP up Up.\n# TYPE up gauge\nup 1\n# EOF\n".to_owned();
        let merged = merge(&[
            process,
            of("prod", ""),
            of("stage", "# HELP only Only.\n# TYPE only gauge\nonly{deployment=\"stage\"} 3\n"),
        ]);
        let expected = "# HELP up Up.\n# TYPE up gauge\nup 1\n\
            # HELP jobs Jobs.\n# TYPE jobs gauge\njobs{deployment=\"prod\",a=\"# TYPE x\"} 1\njobs{deployment=\"stage\",a=\"# TYPE x\"} 1\n\
            # HELP ended Ended.\n# TYPE ended counter\n# UNIT ended seconds\nended_total{deployment=\"prod\"} 2\nended_total{deployment=\"stage\"} 2\n\
            # HELP only Only.\n# TYPE only gauge\nonly{deployment=\"stage\"} 3\n# EOF\n";
        assert_eq!(merged, expected);
    }
}
