//! The shipped rules, for a queue whose hours last seconds.
//!
//! Expressions and names stay as they are. An hour becomes that of the demo, in `for`, in `keep_firing_for` and in the
//! windows and offsets of expressions. The limit of Provisioning is not in the rules: the demo's server has it from
//! [`TimeScale::hour`].

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::pace::Pace;
use crate::config::PrometheusDuration;

/// The shipped rules, with the names of their files.
const SHIPPED: [(&str, &str); 2] = [
    ("recording.yml", include_str!("../../../dashboards/prometheus/recording.yml")),
    ("alerts.yml", include_str!("../../../dashboards/prometheus/alerts.yml")),
];

/// The duration that stands for an hour at ten transitions a second: shorter than large objects keep the daemons busy,
/// so that no job leaves Provisioning for so long, and longer than the time between two jobs that leave.
const HOUR_SECONDS: f64 = 24.0;

/// The minimum of a window: an increase needs a few scrapes.
const SHORTEST_WINDOW: Duration = Duration::from_secs(4);

/// The minimum of `for`: a server that has just started is absent until the first scrape.
const SHORTEST_FOR: Duration = Duration::from_secs(2);

const HOUR: Duration = Duration::from_hours(1);

/// A part of a rules file that is not as expected.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {why}")]
pub struct RulesError {
    file: &'static str,
    why: String,
}

impl RulesError {
    /// The file lacks something that the demo changes.
    pub(super) fn missing(file: &'static str, what: &str) -> Self {
        Self { file, why: format!("“{what}” not found") }
    }
}

/// A rules file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    rules: Vec<Rule>,
}

/// A recording rule or an alert. Unknown keys are refused, since they may contain a duration.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alert: Option<String>,
    expr: String,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    lasting: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_firing_for: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The factor between the rules' time and the demo's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeScale {
    hour: Duration,
}

impl TimeScale {
    pub(super) fn new(pace: Pace) -> Self {
        Self { hour: pace.time(HOUR_SECONDS) }
    }

    /// The duration that stands for an hour.
    pub(super) fn hour(self) -> Duration {
        self.hour.max(SHORTEST_WINDOW)
    }

    /// The shipped rules scaled to the demo, each file as its name and text.
    pub(super) fn rules(self) -> Result<Vec<(&'static str, String)>, RulesError> {
        let mut files = Vec::new();
        for (file, text) in SHIPPED {
            let mut rules = read(file, text)?;
            for rule in rules.groups.iter_mut().flat_map(|group| &mut group.rules) {
                self.shorten(rule).map_err(|why| RulesError { file, why })?;
            }
            let text = serde_json::to_string_pretty(&rules);
            // Prometheus reads YAML, and JSON is YAML.
            files.push((file, text.map_err(|error| RulesError { file, why: error.to_string() })?));
        }
        Ok(files)
    }

    fn shorten(self, rule: &mut Rule) -> Result<(), String> {
        for lasting in [&mut rule.lasting, &mut rule.keep_firing_for].into_iter().flatten() {
            *lasting = self.shortened(lasting, SHORTEST_FOR)?;
        }
        rule.expr = windows(&rule.expr, |window| self.shortened(window, SHORTEST_WINDOW))?;
        Ok(())
    }

    fn shortened(self, text: &str, least: Duration) -> Result<String, String> {
        let duration: PrometheusDuration = text.parse().map_err(|error| format!("{text}: {error}"))?;
        let shorter = duration.get().mul_f64(self.hour.as_secs_f64() / HOUR.as_secs_f64());
        Ok(PrometheusDuration::from(shorter.max(least)).to_string())
    }
}

fn read(file: &'static str, text: &str) -> Result<Rules, RulesError> {
    serde_saphyr::from_str(text).map_err(|error| RulesError { file, why: error.to_string() })
}

/// The keyword before the offset of a series.
const OFFSET: &str = "offset ";

/// An expression with all its windows, which are in brackets outside of strings, and offsets changed.
fn windows(expression: &str, change: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut changed = String::with_capacity(expression.len());
    let mut string = None;
    let mut rest = expression;
    while let Some(next) = rest.chars().next() {
        let (mut taken, after) = rest.split_at(next.len_utf8());
        rest = after;
        match (string, next) {
            (None, '[') => {
                let (window, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
                changed.push('[');
                changed.push_str(&change(window)?);
                (taken, rest) = ("]", after);
            }
            (None, 'o') if changed.ends_with(char::is_whitespace) && rest.starts_with(&OFFSET[1..]) => {
                rest = &rest[OFFSET.len() - 1..];
                let end = rest.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
                changed.push_str(OFFSET);
                changed.push_str(&change(&rest[..end])?);
                (taken, rest) = ("", &rest[end..]);
            }
            (None, '"' | '\'' | '`') => string = Some(next),
            (Some('"' | '\''), '\\') => {
                changed.push_str(taken);
                (taken, rest) = rest.split_at(rest.chars().next().map_or(0, char::len_utf8));
            }
            (Some(quote), _) if quote == next => string = None,
            (None | Some(_), _) => {}
        }
        changed.push_str(taken);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(rate: f64) -> Vec<Rule> {
        let files = TimeScale::new(Pace::new(rate)).rules().unwrap();
        let all = files.iter().flat_map(|(file, text)| read(file, text).unwrap().groups);
        all.flat_map(|group| group.rules).collect()
    }

    fn shipped() -> Vec<Rule> {
        SHIPPED.iter().flat_map(|(file, text)| read(file, text).unwrap().groups).flat_map(|group| group.rules).collect()
    }

    #[test]
    fn rules_differ_from_the_shipped_ones_only_in_their_times() {
        let (ours, shipped) = (ours(10.0), shipped());
        assert_eq!(ours.len(), shipped.len());
        for (ours, shipped) in ours.iter().zip(&shipped) {
            let times =
                |rule: &Rule| Rule { expr: String::new(), lasting: None, keep_firing_for: None, ..rule.clone() };
            assert_eq!(times(ours), times(shipped));
            for pair in [(&ours.lasting, &shipped.lasting), (&ours.keep_firing_for, &shipped.keep_firing_for)] {
                match pair {
                    (Some(ours), Some(shipped)) => {
                        assert_eq!(duration(ours), (duration(shipped) / 150).max(Duration::from_secs(2)));
                    }
                    (ours, shipped) => assert_eq!(ours, shipped),
                }
            }
            let is_windowed = shipped.expr.contains('[');
            assert_eq!(is_windowed, ours.expr.contains('['), "{}", ours.expr);
            if is_windowed {
                let short =
                    [("[5m]", "[4s]"), ("[10m]", "[4s]"), ("[15m]", "[6s]"), ("[30m]", "[12s]"), ("[1h]", "[24s]")];
                let long = [("[6h]", "[2m24s]"), ("[1d]", "[9m36s]"), ("[3d]", "[28m48s]")];
                let expected = short
                    .into_iter()
                    .chain(long)
                    .chain([("offset 1h", "offset 24s"), ("offset 6h", "offset 2m24s")])
                    .fold(shipped.expr.clone(), |expr, (from, to)| expr.replace(from, to));
                assert_eq!(ours.expr, expected);
            } else {
                assert_eq!(ours.expr, shipped.expr);
            }
        }
    }

    fn duration(text: &str) -> Duration {
        text.parse::<PrometheusDuration>().unwrap().get()
    }

    #[test]
    fn times_are_never_too_short_for_scrapes() {
        for rule in ours(2_000.0) {
            assert!(rule.lasting.is_none_or(|lasting| lasting == "2s"), "{}", rule.expr);
            let long_enough = ["[4s]", "[24s]", "[1m36s]", "[8s640ms]"].iter().any(|window| rule.expr.contains(window));
            assert!(!rule.expr.contains('[') || long_enough, "{}", rule.expr);
        }
    }

    #[test]
    fn windows_are_found_outside_of_strings_only() {
        let mark = |window: &str| Ok(format!("<{window}>"));
        let expression = r#"increase(a{b=~"[1h]\"[2h]",c='[3h]'}[1h]) > b[5m] * 2"#;
        assert_eq!(
            windows(expression, mark).unwrap(),
            expression.replace("}[1h]", "}[<1h>]").replace("[5m]", "[<5m>]")
        );
        let offset = r#"a offset 1h > b[5m] offset 2h or (offset_x offset 3h) unless c{d=" offset 4h"}"#;
        let expected = r#"a offset <1h> > b[<5m>] offset <2h> or (offset_x offset <3h>) unless c{d=" offset 4h"}"#;
        assert_eq!(windows(offset, mark).unwrap(), expected);
        assert!(windows("a[1h", mark).is_err());
        let lapse = TimeScale::new(Pace::new(10.0));
        assert!(windows("a[1h:5m]", |window| lapse.shortened(window, HOUR)).is_err(), "a subquery is not known here");
    }
}
