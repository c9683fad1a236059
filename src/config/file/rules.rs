//! The section `alerts` of the file: the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::PrometheusDuration;
use super::super::source::{FileError, refuse};
use crate::alerts::{Budget, Mode, Narrow, Rule, RuleAction, Rules, Selector};
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::state::{JobState, State as _};

/// How many rules there may be.
const MAX_RULES: usize = 100;

/// The maximum number of items that a rule may touch for one alert, and within its budget's period.
const MAX_ITEMS: u64 = 500;
const MAX_BUDGET: u64 = 10_000;

/// The maximum length of a rule's name, which is a part of a znode's name.
const MAX_NAME_CHARS: usize = 64;

/// The minimum cooldown: the peers of an Alertmanager cluster send the same within seconds.
const MIN_COOLDOWN: Duration = Duration::from_secs(1);

/// The maximum of any duration.
const MAX_DURATION: Duration = Duration::from_hours(365 * 24);

/// The maximum period of a budget, whose use is stored for as long.
const MAX_BUDGET_SPAN: Duration = Duration::from_hours(7 * 24);

/// The keys below `alerts`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    #[serde(default)]
    allow_destructive: bool,
    budget: Option<Spanned<BudgetKeys>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleKeys>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetKeys {
    items: Spanned<u64>,
    per: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleKeys {
    name: Spanned<String>,
    alert: Spanned<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    mode: Option<Spanned<String>>,
    action: Spanned<String>,
    #[serde(default)]
    select: SelectKeys,
    #[serde(default)]
    narrow_by: Vec<Spanned<String>>,
    budget: Spanned<BudgetKeys>,
    max_share: Option<Spanned<f64>>,
    cooldown: Spanned<String>,
    attempts: Option<Spanned<u64>>,
    on_resolved: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectKeys {
    states: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    collections: Vec<String>,
    min_age: Option<Spanned<String>>,
    max_age: Option<Spanned<String>>,
    locked: Option<bool>,
    max_retries: Option<Spanned<u64>>,
    faults: Option<Vec<Spanned<String>>>,
    limit: Option<Spanned<u64>>,
}

/// Checks the rules.
pub(super) fn check(path: &Path, keys: Keys) -> Result<Rules, FileError> {
    let budget = keys.budget.map(|keys| budget(path, keys)).transpose()?.unwrap_or(Rules::BUDGET);
    let mut rules = Rules { rules: Vec::new(), are_destructive_allowed: keys.allow_destructive, budget };
    let mut names = BTreeSet::new();
    for keys in keys.rules {
        if rules.rules.len() >= MAX_RULES {
            return Err(refuse(path, keys.referenced.line(), format!("there are more than {MAX_RULES} rules")));
        }
        let (line, spent) = (keys.value.name.referenced.line(), keys.value.budget.value.items.referenced.line());
        let rule = rule(path, keys, rules.are_destructive_allowed)?;
        if rule.budget.items > rules.budget.items && rule.budget.per <= rules.budget.per {
            let why = format!(
                "rule {}: budget: items is above the {} of all rules together (alerts: budget)",
                rule.name, rules.budget.items
            );
            return Err(refuse(path, spent, why));
        }
        if !names.insert(rule.name.clone()) {
            return Err(refuse(path, line, format!("there are two rules {}; names must be unique", rule.name)));
        }
        rules.rules.push(rule);
    }
    Ok(rules)
}

fn rule(path: &Path, keys: Spanned<RuleKeys>, is_destructive_allowed: bool) -> Result<Rule, FileError> {
    let keys = keys.value;
    let name = keys.name.value;
    let at = |line: u64, why: String| refuse(path, line, format!("rule {name}: {why}"));
    let is_name =
        queuekeeper_zookeeper::coordination::is_name(&name) && name.len() <= MAX_NAME_CHARS && !name.contains('.');
    if !is_name {
        let why = format!("the name of a rule may have up to {MAX_NAME_CHARS} lower-case letters, digits, - and _");
        return Err(refuse(path, keys.name.referenced.line(), why));
    }
    if keys.alert.value.is_empty() {
        return Err(at(keys.alert.referenced.line(), "alert is empty; set the name of the alert".to_owned()));
    }
    let mode = match &keys.mode {
        None => Mode::default(),
        Some(mode) => Mode::from_label(&mode.value)
            .ok_or_else(|| at(mode.referenced.line(), one_of("mode", Mode::ALL.map(Mode::label))))?,
    };
    let line = keys.action.referenced.line();
    let action = RuleAction::from_label(&keys.action.value)
        .ok_or_else(|| at(line, one_of("action", RuleAction::ALL.map(RuleAction::label))))?;
    if action.kind().is_destructive() && mode == Mode::Enforce && !is_destructive_allowed {
        let why = format!("{} cannot be undone; it requires allow_destructive: true below alerts", action.label());
        return Err(at(line, why));
    }
    let select = selector(action, keys.select, line, &at)?;
    let narrow_by = keys.narrow_by.iter().map(|narrow| {
        let found = Narrow::from_label(&narrow.value);
        let found =
            found.ok_or_else(|| at(narrow.referenced.line(), one_of("narrow_by", Narrow::ALL.map(Narrow::label))))?;
        let is_right = match found {
            Narrow::State | Narrow::Collection => action.is_of_jobs() || action == RuleAction::HoldCollections,
            Narrow::Fault => !action.faults().is_empty(),
        };
        let wrong =
            || at(narrow.referenced.line(), format!("{} cannot be narrowed by {}", action.label(), found.label()));
        if is_right { Ok(found) } else { Err(wrong()) }
    });
    let max_share = keys.max_share.map(|share| {
        let wrong = |why: &str| at(share.referenced.line(), format!("max_share {why}"));
        if !action.is_of_jobs() {
            Err(wrong(&format!("is only valid for actions on jobs, which {} is not", action.label())))
        } else if share.value > 0.0 && share.value <= 1.0 {
            Ok(share.value)
        } else {
            Err(wrong("must be a fraction of the jobs, above 0 and at most 1"))
        }
    });
    let cooldown =
        duration(&keys.cooldown).map_err(|why| at(keys.cooldown.referenced.line(), format!("cooldown: {why}")))?;
    if cooldown < MIN_COOLDOWN {
        return Err(at(keys.cooldown.referenced.line(), "cooldown must be at least 1s".to_owned()));
    }
    let is_undone = match &keys.on_resolved {
        None => false,
        Some(undo) if undo.value == "release" && action == RuleAction::HoldCollections => true,
        Some(undo) => {
            let why = "on_resolved must be release, and is supported for hold_collections only";
            return Err(at(undo.referenced.line(), why.to_owned()));
        }
    };
    let attempts = keys.attempts.map(|attempts| {
        let wrong = || at(attempts.referenced.line(), "attempts must be a number from 1 to 100".to_owned());
        u32::try_from(attempts.value).ok().filter(|count| (1..=100).contains(count)).ok_or_else(wrong)
    });
    let (narrow_by, max_share, attempts) =
        (narrow_by.collect::<Result<Vec<_>, _>>()?, max_share.transpose()?, attempts.transpose()?.unwrap_or(3));
    let budget = budget(path, keys.budget)?;
    Ok(Rule {
        alert: keys.alert.value,
        labels: keys.labels,
        mode,
        action,
        select,
        narrow_by,
        budget,
        max_share,
        cooldown,
        attempts,
        is_undone,
        name,
    })
}

fn selector(
    action: RuleAction,
    keys: SelectKeys,
    line: u64,
    at: &impl Fn(u64, String) -> FileError,
) -> Result<Selector, FileError> {
    let mut select = Selector { collections: keys.collections, locked: keys.locked, ..Selector::default() };
    match keys.states {
        None if action == RuleAction::HoldCollections => select.states = vec![JobState::Provisioning],
        None => select.states = action.states().to_vec(),
        Some(states) => {
            for state in states {
                let found = action.states().iter().copied().find(|known| known.label() == state.value);
                let known = || one_of("states", action.states().iter().map(|state| state.label()));
                select.states.push(found.ok_or_else(|| at(state.referenced.line(), known()))?);
            }
        }
    }
    match keys.faults {
        None if action.faults().is_empty() => {}
        None if action == RuleAction::BreakLocks => select.faults = action.faults(),
        None => {
            return Err(at(
                line,
                format!(
                    "{}, in faults below select",
                    one_of("faults", action.faults().iter().map(|fault| fault.label()))
                ),
            ));
        }
        Some(faults) => {
            for fault in faults {
                let found = Fault::from_label(&fault.value).filter(|found| action.may_select(*found));
                let known = || one_of("faults", action.faults().iter().map(|fault| fault.label()));
                select.faults.push(found.ok_or_else(|| at(fault.referenced.line(), known()))?);
            }
        }
    }
    if select.states.is_empty() && select.faults.is_empty() {
        return Err(at(line, "select is empty".to_owned()));
    }
    let age = |name: &str, age: Option<Spanned<String>>| {
        age.map(|age| duration(&age).map_err(|why| at(age.referenced.line(), format!("{name}: {why}")))).transpose()
    };
    let looks_at_jobs = action.is_of_jobs() || action == RuleAction::HoldCollections;
    if !looks_at_jobs {
        for (name, is_given) in [
            ("collections", !select.collections.is_empty()),
            ("max_age", keys.max_age.is_some()),
            ("locked", select.locked.is_some()),
            ("max_retries", keys.max_retries.is_some()),
        ] {
            if is_given {
                return Err(at(line, format!("{} does not support {name} in select", action.label())));
            }
        }
    }
    let oldest = keys.max_age.as_ref().map(|age| age.referenced.line());
    select.min_age = age("min_age", keys.min_age)?;
    select.max_age = age("max_age", keys.max_age)?;
    if let (Some(min), Some(max), Some(line)) = (select.min_age, select.max_age, oldest)
        && min >= max
    {
        return Err(at(line, "max_age must be above min_age".to_owned()));
    }
    select.max_retries = keys
        .max_retries
        .map(|most| {
            u32::try_from(most.value).map_err(|_| at(most.referenced.line(), "max_retries is too large".to_owned()))
        })
        .transpose()?;
    select.limit = match keys.limit {
        None => {
            return Err(at(
                line,
                format!("limit is missing below select: the maximum number of items for one alert, 1 to {MAX_ITEMS}"),
            ));
        }
        Some(limit) if (1..=MAX_ITEMS).contains(&limit.value) => usize::try_from(limit.value).unwrap_or(1),
        Some(limit) => {
            return Err(at(limit.referenced.line(), format!("limit must be a number from 1 to {MAX_ITEMS}")));
        }
    };
    Ok(select)
}

fn budget(path: &Path, keys: Spanned<BudgetKeys>) -> Result<Budget, FileError> {
    let BudgetKeys { items, per } = keys.value;
    let at = |line, why: String| refuse(path, line, format!("budget: {why}"));
    let span = duration(&per).map_err(|why| at(per.referenced.line(), why))?;
    if span < Duration::from_secs(1) || span > MAX_BUDGET_SPAN {
        return Err(at(per.referenced.line(), "per must be 1s to 1w".to_owned()));
    }
    let count = u32::try_from(items.value).ok().filter(|_| (1..=MAX_BUDGET).contains(&items.value));
    let count =
        count.ok_or_else(|| at(items.referenced.line(), format!("items must be a number from 1 to {MAX_BUDGET}")))?;
    Ok(Budget { items: count, per: span })
}

fn duration(text: &Spanned<String>) -> Result<Duration, String> {
    let span = text.value.parse::<PrometheusDuration>().map_err(|error| error.to_string())?.get();
    if span > MAX_DURATION { Err("it must be at most 1y".to_owned()) } else { Ok(span) }
}

fn one_of(key: &str, values: impl IntoIterator<Item = &'static str>) -> String {
    format!("{key} must be one of {}", values.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::super::source::yaml;
    use super::*;

    #[derive(Default, Deserialize)]
    struct File {
        alerts: Keys,
    }

    fn read(text: &str) -> Result<Rules, String> {
        let path = Path::new("config.yml");
        let file: File = yaml(path, text.as_bytes()).map_err(|error| error.to_string())?;
        check(path, file.alerts).map_err(|error| error.to_string())
    }

    const RULE: &str = "alerts:
  rules:
    - name: again
      alert: MerrittJobsFailed
      action: resume_jobs
      select: {max_age: 1d, max_retries: 2, limit: 20}
      budget: {items: 20, per: 1h}
      max_share: 0.25
      cooldown: 30m
";

    #[test]
    fn a_rule_is_parsed_and_is_a_dry_run_by_default() {
        let rules = read(RULE).unwrap();
        let [rule] = &rules.rules[..] else { panic!("{rules:?}") };
        assert_eq!((rule.mode, rule.action), (Mode::DryRun, RuleAction::ResumeJobs));
        assert_eq!((rule.select.states.as_slice(), rule.attempts), (&[JobState::Failed][..], 3));
        assert_eq!(rule.budget, Budget { items: 20, per: Duration::from_hours(1) });
        assert!(!rules.are_destructive_allowed);
    }

    #[test]
    fn an_invalid_rule_is_refused_with_its_line() {
        for (from, to, why) in [
            ("name: again", "name: ../again", "line 3: the name of a rule may have"),
            ("name: again", "name: Again", "line 3: the name of a rule may have"),
            ("action: resume_jobs", "action: reboot", "line 5: rule again: action must be one of hold_collections, "),
            ("      budget: {items: 20, per: 1h}\n", "", "rules: the key budget is missing"),
            ("items: 20, per: 1h", "items: 0, per: 1h", "line 7: budget: items must be a number from 1 to"),
            ("items: 20, per: 1h", "items: 20, per: 1", "line 7: budget: a number lacks its unit"),
            ("items: 20, per: 1h", "items: 20, per: 2w", "line 7: budget: per must be 1s to 1w"),
            ("max_share: 0.25", "max_share: 25", "line 8: rule again: max_share must be a fraction"),
            ("max_share: 0.25", "max_share: 0", "line 8: rule again: max_share must be a fraction"),
            ("cooldown: 30m", "cooldown: 0", "line 9: rule again: cooldown must be at least 1s"),
            ("max_age: 1d", "max_age: 1 day", "line 6: rule again: max_age: "),
            ("max_age: 1d", "max_age: 8000y", "line 6: rule again: max_age: it must be at most 1y"),
            ("max_age: 1d", "min_age: 2d, max_age: 1d", "line 6: rule again: max_age must be above min_age"),
            ("items: 20", "items: 101", "line 7: rule again: budget: items is above the 100 of all rules"),
            ("cooldown: 30m", "cooldown: 8000y", "line 9: rule again: cooldown: it must be at most 1y"),
            ("max_age: 1d", "states: [storing]", "line 6: rule again: states must be one of failed"),
            ("max_age: 1d", "colour: red", "the key colour is unknown"),
            (", limit: 20", "", "line 5: rule again: limit is missing"),
            ("limit: 20", "limit: 501", "line 6: rule again: limit must be a number from 1 to 500"),
            (
                "action: resume_jobs",
                "action: delete_jobs\n      mode: enforce",
                "line 5: rule again: delete_jobs cannot be undone",
            ),
            ("action: resume_jobs", "action: repair_faults", "line 5: rule again: faults must be one of orphan_entry"),
            ("action: resume_jobs", "action: break_locks", "line 5: rule again: break_locks does not support max_age"),
        ] {
            let text = RULE.replacen(from, to, 1);
            assert_ne!(text, RULE);
            let error = read(&text).unwrap_err();
            assert!(error.contains(why), "{to}: {error}");
        }
        for (key, why) in [
            ("mode: on", "mode must be one of off, dry-run, enforce"),
            ("on_resolved: resume", "on_resolved must be release"),
            ("narrow_by: [fault]", "resume_jobs cannot be narrowed"),
            ("attempts: 0", "attempts must be a number from 1"),
        ] {
            let text = RULE.replacen("cooldown: 30m", &format!("cooldown: 30m\n      {key}"), 1);
            let error = read(&text).unwrap_err();
            assert!(error.contains(&format!("line 10: rule again: {why}")), "{key}: {error}");
        }
        let twice = format!("{RULE}{}", RULE.split_once("rules:\n").unwrap().1);
        assert!(read(&twice).unwrap_err().contains("line 10: there are two rules again"), "{:?}", read(&twice));
    }

    #[test]
    fn a_destructive_rule_requires_a_separate_switch() {
        let text = RULE.replace("resume_jobs", "delete_jobs\n      mode: enforce");
        assert!(read(&text).is_err());
        assert!(read(&text.replacen("alerts:\n", "alerts:\n  allow_destructive: true\n", 1)).is_ok());
        assert!(read(&RULE.replace("resume_jobs", "delete_jobs")).is_ok(), "a dry run does nothing");
    }
}
