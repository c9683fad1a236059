//! A policy in words, and what forms change in one.

use std::collections::BTreeMap;

use super::Fields;
use crate::views::mill::{NewPolicyView, PairView, PolicyDetail, PolicyText, SpacePairs, WaitingView};
use crate::views::show::visible;
use crate::web::http::problem::Problem;

/// A policy in words.
#[derive(Clone, Debug)]
pub(super) struct PolicyWords {
    /// The pairs of all spaces that are not named.
    pub(super) defaults: String,
    /// Each space with pairs of its own.
    pub(super) spaces: Vec<(String, String)>,
    pub(super) ignored: Vec<String>,
    /// The pairs that are chosen, as forms name them.
    default_values: Vec<String>,
}

/// A change that a form asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The account is added to the list, or taken from it.
    List(bool),
    /// These pairs are those of all spaces that are not named.
    Defaults(Vec<PairView>),
    /// A space has these pairs.
    Space(String, Vec<PairView>),
    /// A space is copied as those that are not named.
    Default(String),
    /// A space is not copied.
    Ignore(String),
    /// What the file says is brought into force.
    Apply,
    /// A policy that was in force is to be so again, by its number.
    Again(u64),
}

impl Change {
    pub(super) fn read(fields: &Fields) -> Result<Self, Problem> {
        let space = || Ok::<_, Problem>(fields.one("space")?.trim().to_owned());
        let pairs = || fields.all("pair").map(pair).collect::<Result<Vec<_>, _>>();
        Ok(match fields.one("change")? {
            "add" => Self::List(true),
            "remove" => Self::List(false),
            "defaults" => Self::Defaults(pairs()?),
            "space" => Self::Space(space()?, pairs()?),
            "default" => Self::Default(space()?),
            "ignore" => Self::Ignore(space()?),
            "apply" => Self::Apply,
            "again" => Self::Again(fields.one("number")?.parse().map_err(|_| Problem::bad("Which policy?"))?),
            _ => return Err(Problem::bad("There is no such change of a policy.")),
        })
    }
}

/// A pair as forms name it.
fn pair(value: &str) -> Result<PairView, Problem> {
    let (source, destination) =
        value.split_once('>').ok_or_else(|| Problem::bad("A pair is the numbers of two stores, such as 1>2."))?;
    Ok(PairView { source: source.to_owned(), destination: destination.to_owned() })
}

/// What the policy is to be by a change: of what the file says, or else of what is in force.
pub(super) fn changed(detail: &PolicyDetail, change: &Change) -> Result<NewPolicyView, Problem> {
    let policy = detail.file.as_ref().or(detail.in_force.as_ref()).cloned().unwrap_or_default();
    let mut new = NewPolicyView { is_listed: detail.is_listed, policy };
    let forget = |policy: &mut PolicyText, space: &str| {
        policy.spaces.retain(|own| own.space != space);
        policy.ignored.retain(|ignored| ignored != space);
    };
    match change {
        Change::List(is_listed) => new.is_listed = *is_listed,
        Change::Defaults(pairs) => new.policy.defaults.clone_from(pairs),
        Change::Space(space, pairs) => {
            forget(&mut new.policy, space);
            new.policy.spaces.push(SpacePairs { space: space.clone(), pairs: pairs.clone() });
        }
        Change::Default(space) => forget(&mut new.policy, space),
        Change::Ignore(space) => {
            forget(&mut new.policy, space);
            new.policy.ignored.push(space.clone());
        }
        Change::Apply if detail.file.is_none() && detail.is_listed => {
            return Err(Problem::bad("The policy file cannot be used; there is nothing to bring into force."));
        }
        Change::Apply => {}
        Change::Again(number) => {
            let found = detail.history.iter().find(|item| item.number == *number);
            let found = found.and_then(|item| item.policy.clone());
            new.policy = found.ok_or_else(|| Problem::missing("There is no such policy in the history."))?;
            // What was in force of an account that the list did not have was empty.
            new.is_listed = true;
        }
    }
    Ok(new)
}

impl PolicyWords {
    pub(super) fn new(policy: &PolicyText, stores: &BTreeMap<String, String>) -> Self {
        let own = policy.spaces.iter().map(|own| (own.space.clone(), in_words(&own.pairs, stores)));
        Self {
            defaults: in_words(&policy.defaults, stores),
            spaces: own.collect(),
            ignored: policy.ignored.clone(),
            default_values: policy.defaults.iter().map(value).collect(),
        }
    }

    /// Whether a pair is one of the default ones.
    pub(super) fn has_default(&self, value: &str) -> bool {
        self.default_values.iter().any(|known| known == value)
    }

    /// What waits, in a sentence.
    pub(super) fn waiting(waiting: &WaitingView, stores: &BTreeMap<String, String>) -> String {
        let space = waiting
            .space
            .as_ref()
            .map_or("all spaces that are not named".to_owned(), |space| format!("the space {space}"));
        let begins = if waiting.begins.is_empty() {
            String::new()
        } else {
            format!(", and {} would begin in its place", in_words(&waiting.begins, stores))
        };
        format!("For {space}, {} would end{begins}.", in_words(&waiting.ends, stores))
    }
}

fn value(pair: &PairView) -> String {
    format!("{}>{}", pair.source, pair.destination)
}

fn in_words(pairs: &[PairView], stores: &BTreeMap<String, String>) -> String {
    let store = |id: &String| stores.get(id).cloned().unwrap_or_else(|| format!("store {}", visible(id)));
    let words: Vec<_> =
        pairs.iter().map(|pair| format!("{} to {}", store(&pair.source), store(&pair.destination))).collect();
    if words.is_empty() { "no copy".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail() -> PolicyDetail {
        let pair =
            |source: &str, destination: &str| PairView { source: source.into(), destination: destination.into() };
        let file = PolicyText {
            defaults: vec![pair("1", "2")],
            spaces: vec![SpacePairs { space: "theses".into(), pairs: vec![] }],
            ignored: vec!["tmp".into()],
        };
        PolicyDetail {
            account: "one".into(),
            stores: BTreeMap::from([("1".into(), "main".into()), ("2".into(), "replica".into())]),
            version: Some("1-a".into()),
            is_listed: true,
            file: Some(file),
            in_force: None,
            waiting: vec![],
            error: None,
            other_keys: vec![],
            history: vec![],
            spaces: vec![],
        }
    }

    fn words(fields: &[(&str, &str)]) -> Result<(bool, String), String> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let change = Change::read(&Fields(fields)).map_err(|problem| problem.detail.to_string())?;
        let new = changed(&detail(), &change).map_err(|problem| problem.detail.to_string())?;
        let PolicyWords { defaults, spaces, ignored, .. } = PolicyWords::new(&new.policy, &detail().stores);
        let spaces: Vec<_> = spaces.into_iter().map(|(space, pairs)| format!("{space}: {pairs}")).collect();
        Ok((new.is_listed, format!("{defaults}; {}; {}", spaces.join(" "), ignored.join(" "))))
    }

    #[test]
    fn each_form_changes_what_it_names_and_nothing_else() {
        let says = |text: &str| Ok((true, text.to_owned()));
        assert_eq!(words(&[("change", "defaults")]), says("no copy; theses: no copy; tmp"));
        let back = [("change", "defaults"), ("pair", "2>1"), ("pair", "1>2")];
        assert_eq!(words(&back), says("replica to main, main to replica; theses: no copy; tmp"));
        let own = [("change", "space"), ("space", "tmp"), ("pair", "1>2")];
        assert_eq!(words(&own), says("main to replica; theses: no copy tmp: main to replica; "));
        assert_eq!(words(&[("change", "ignore"), ("space", "theses")]), says("main to replica; ; tmp theses"));
        assert_eq!(words(&[("change", "default"), ("space", "tmp")]), says("main to replica; theses: no copy; "));
        assert_eq!(words(&[("change", "remove")]), Ok((false, "main to replica; theses: no copy; tmp".to_owned())));
        assert!(words(&[("change", "again"), ("number", "9")]).is_err());
        assert!(
            words(&[("change", "delete")]).is_err()
                && words(&[("change", "space"), ("space", "a"), ("pair", "1")]).is_err()
        );
    }
}
