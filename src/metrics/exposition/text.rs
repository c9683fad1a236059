//! From OpenMetrics to text 0.0.4.

use std::fmt::Write;

use super::line::TextLine;

/// A family's type in text, and what its samples' names have in text's family name and not in OpenMetrics'.
struct FamilyKind {
    text: &'static str,
    suffix: &'static str,
    /// Whether OpenMetrics may add a sample `_created` that text does not know.
    has_created: bool,
}

impl FamilyKind {
    /// What OpenMetrics calls info, stateset or unknown is a gauge to everyone who reads text, and of a gauge
    /// histogram text knows the samples but not the type.
    fn read(openmetrics: &str) -> Self {
        let (text, suffix, has_created) = match openmetrics {
            "counter" => ("counter", "_total", true),
            "histogram" => ("histogram", "", true),
            "summary" => ("summary", "", true),
            "info" => ("gauge", "_info", false),
            "gaugehistogram" => ("untyped", "", false),
            _ => ("gauge", "", false),
        };
        Self { text, suffix, has_created }
    }
}

/// Translates an exposition in OpenMetrics to Prometheus' text format 0.0.4.
///
/// Counters and infos take the suffix of their samples into the family's name, types that text does not know become
/// gauges, and what text does not have is left out: units, exemplars, times of creation and the mark at the end.
/// Timestamps become whole milliseconds.
///
/// # Errors
/// When the text cannot be written to; a string always can.
pub fn to_text(openmetrics: &str) -> Result<String, std::fmt::Error> {
    let mut text = String::with_capacity(openmetrics.len() + 1024);
    let mut help: Option<(&str, &str)> = None;
    let mut created: Option<&str> = None;
    for line in openmetrics.lines() {
        match TextLine::read(line) {
            // The name in it depends on the type, which comes after it.
            TextLine::Help { name, text } => {
                help = Some((name, text));
            }
            TextLine::Type { name, kind } => {
                let kind = FamilyKind::read(kind);
                created = kind.has_created.then_some(name);
                write_head(&mut text, name, &kind, help.take())?;
            }
            TextLine::Sample { name, .. }
                if name.strip_suffix("_created").is_some_and(|family| Some(family) == created) => {}
            TextLine::Sample { name, labels, value, timestamp } => {
                match timestamp.and_then(|timestamp| timestamp.parse::<f64>().ok()) {
                    Some(seconds) => writeln!(text, "{name}{labels} {value} {:.0}", seconds * 1000.0)?,
                    None => writeln!(text, "{name}{labels} {value}")?,
                }
            }
            TextLine::Other => {}
        }
    }
    Ok(text)
}

fn write_head(text: &mut String, name: &str, kind: &FamilyKind, help: Option<(&str, &str)>) -> std::fmt::Result {
    let suffix = kind.suffix;
    if let Some((_, help)) = help.filter(|(of, _)| *of == name) {
        // OpenMetrics escapes quotes in a help text too; text does not, and would show the backslash.
        writeln!(text, "# HELP {name}{suffix} {}", unescape_quotes(help))?;
    }
    writeln!(text, "# TYPE {name}{suffix} {}", kind.text)
}

fn unescape_quotes(help: &str) -> String {
    let mut unescaped = String::with_capacity(help.len());
    let mut characters = help.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('"')) => {}
            // An escaped backslash stays as it is, and the quote after it is not its.
            ('\\', Some('\\')) => {
                unescaped.push_str("\\\\");
                characters.next();
            }
            (other, _) => unescaped.push(other),
        }
    }
    unescaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_family_is_translated() {
        let openmetrics = r#"# HELP jobs Jobs "now" \"escaped\" \\"and not\n.
# TYPE jobs gauge
# UNIT jobs bytes
jobs{state="a # b",name="}\" 1"} 3
# HELP events Events.
# TYPE events counter
events_total 17 # {id="x"} 1 1.5
events_created 1520430000.123
# HELP build Build.
# TYPE build info
build_info{version="1"} 1
# TYPE odd unknown
odd 1.5 12.5
# TYPE set stateset
set{set="a"} 1
# TYPE took histogram
took_sum 0.5
took_count 2
took_bucket{le="0.1"} 1 # {id="x"} 0.05
took_bucket{le="+Inf"} 2
took_created 1520430000.123
# TYPE was_created gauge
was_created 5
# EOF
"#;
        let text = r#"# HELP jobs Jobs "now" "escaped" \\"and not\n.
# TYPE jobs gauge
jobs{state="a # b",name="}\" 1"} 3
# HELP events_total Events.
# TYPE events_total counter
events_total 17
# HELP build_info Build.
# TYPE build_info gauge
build_info{version="1"} 1
# TYPE odd gauge
odd 1.5 12500
# TYPE set gauge
set{set="a"} 1
# TYPE took histogram
took_sum 0.5
took_count 2
took_bucket{le="0.1"} 1
took_bucket{le="+Inf"} 2
# TYPE was_created gauge
was_created 5
"#;
        assert_eq!(to_text(openmetrics).unwrap(), text);
    }
}
