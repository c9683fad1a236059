//! What a policy cannot want.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use queuekeeper_store::SpaceName;

use super::{Pair, Policy, StoreId};

/// Something in a policy that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The space whose policy it is; `None` for the default one.
    pub space: Option<SpaceName>,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with pairs of stores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A store that the account does not have.
    NoStore(StoreId),
    /// A store would be copied to itself.
    Itself(StoreId),
    /// A store would be copied to from several ones.
    Sources(StoreId, Vec<StoreId>),
    /// The space is one of the program's own.
    Reserved,
    /// Stores would be copied to each other, each to the next and the last to the first.
    Circle(Vec<StoreId>),
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.space {
            Some(space) => write!(to, "space {space}: ")?,
            None => to.write_str("default policy: ")?,
        }
        match &self.fault {
            Fault::NoStore(store) => write!(to, "the account has no store {:?}", store.0),
            Fault::Itself(store) => write!(to, "store {store} is copied to itself"),
            Fault::Sources(store, sources) => {
                write!(to, "store {store} has more than one source: {}", joined(sources, " and "))
            }
            Fault::Reserved => to.write_str("names that begin with x- are reserved, and such spaces are not copied"),
            Fault::Circle(stores) => write!(to, "the stores {} are copied in a circle", joined(stores, " to ")),
        }
    }
}

fn joined(stores: &[StoreId], by: &str) -> String {
    stores.iter().map(|store| store.0.as_str()).collect::<Vec<_>>().join(by)
}

/// What is wrong with a policy for an account with these stores; nothing where it can be carried out.
#[must_use]
pub fn check(policy: &Policy, stores: &BTreeSet<StoreId>) -> Vec<Problem> {
    let default = (None, &policy.defaults);
    let spaces = policy.spaces.iter().map(|(space, pairs)| (Some(space.clone()), pairs));
    let problems = |(space, pairs): (Option<SpaceName>, &BTreeSet<Pair>)| {
        let is_reserved = space.as_ref().is_some_and(SpaceName::is_reserved) && !pairs.is_empty();
        let reserved = is_reserved.then_some(Fault::Reserved);
        faults(pairs, stores).into_iter().chain(reserved).map(move |fault| Problem { space: space.clone(), fault })
    };
    [default].into_iter().chain(spaces).flat_map(problems).collect()
}

/// What is wrong with the pairs of one space.
pub(super) fn faults(pairs: &BTreeSet<Pair>, stores: &BTreeSet<StoreId>) -> Vec<Fault> {
    let named: BTreeSet<_> = pairs.iter().flat_map(|pair| [&pair.source, &pair.destination]).collect();
    let mut faults: Vec<_> =
        named.iter().filter(|store| !stores.contains(**store)).map(|store| Fault::NoStore((*store).clone())).collect();
    faults.extend(
        pairs.iter().filter(|pair| pair.source == pair.destination).map(|pair| Fault::Itself(pair.source.clone())),
    );
    let mut sources = BTreeMap::<&StoreId, Vec<&StoreId>>::new();
    for pair in pairs {
        sources.entry(&pair.destination).or_default().push(&pair.source);
    }
    let several = sources.iter().filter(|(_, sources)| sources.len() > 1);
    faults.extend(several.map(|(store, sources)| {
        Fault::Sources((*store).clone(), sources.iter().map(|source| (*source).clone()).collect())
    }));
    faults.extend(circle(&sources));
    faults
}

/// The first circle of two stores or more, by its stores; going back from each copy to its source, of which the first
/// counts.
fn circle(sources: &BTreeMap<&StoreId, Vec<&StoreId>>) -> Option<Fault> {
    let mut done = BTreeSet::new();
    for start in sources.keys() {
        let (mut way, mut at) = (Vec::new(), *start);
        while done.insert(at) {
            way.push(at);
            let Some(source) = sources.get(at).and_then(|sources| sources.iter().find(|source| **source != at)) else {
                break;
            };
            at = source;
        }
        if let Some(first) = way.iter().position(|store| *store == at).filter(|first| way.len() - first > 1) {
            return Some(Fault::Circle(way[first..].iter().rev().map(|store| (*store).clone()).collect()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(pairs: &[(&str, &str)]) -> Policy {
        let store = |name: &str| StoreId(name.to_owned());
        let pair =
            |(source, destination): &(&str, &str)| Pair { source: store(source), destination: store(destination) };
        Policy { defaults: pairs.iter().map(pair).collect(), ..Policy::default() }
    }

    fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
        let stores = ["1", "2", "3", "4"].map(|store| StoreId(store.to_owned())).into();
        check(&policy(pairs), &stores).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_can_be_carried_out_has_no_problem() {
        for fine in [&[][..], &[("1", "2")], &[("1", "2"), ("1", "3"), ("2", "4")]] {
            assert_eq!(problems(fine), [""; 0]);
        }
    }

    #[test]
    fn each_thing_that_a_policy_cannot_want_is_named() {
        assert_eq!(problems(&[("1", "9")]), ["default policy: the account has no store \"9\""]);
        assert_eq!(problems(&[("2", "2")]), ["default policy: store 2 is copied to itself"]);
        assert_eq!(problems(&[("1", "3"), ("2", "3")]), ["default policy: store 3 has more than one source: 1 and 2"]);
        assert_eq!(problems(&[("1", "2"), ("2", "1")]), ["default policy: the stores 2 to 1 are copied in a circle"]);
        let long = problems(&[("1", "2"), ("2", "3"), ("3", "1"), ("3", "4")]);
        assert_eq!(long, ["default policy: the stores 2 to 3 to 1 are copied in a circle"]);
        let hidden = problems(&[("1", "1"), ("2", "1"), ("1", "2")]);
        assert!(hidden.iter().any(|problem| problem.ends_with("in a circle")), "{hidden:?}");
        let mut of_space = policy(&[]);
        of_space.spaces.insert("theses".parse().unwrap(), policy(&[("1", "1")]).defaults);
        let found = check(&of_space, &BTreeSet::from([StoreId("1".to_owned())]));
        assert_eq!(found[0].to_string(), "space theses: store 1 is copied to itself");
        let (stores, mut reserved) = (BTreeSet::from(["1", "2"].map(|id| StoreId(id.to_owned()))), policy(&[]));
        reserved.spaces.insert("x-own".parse().unwrap(), policy(&[("1", "2")]).defaults);
        assert_eq!(check(&reserved, &stores).len(), 1);
        reserved.spaces.insert("x-own".parse().unwrap(), BTreeSet::new());
        assert_eq!(check(&reserved, &stores), []);
    }
}
