//! The query string of a list of jobs: which, in which order, and which page.

use std::fmt::Write as _;

use crate::config::PrometheusDuration;
use crate::mirror::find::{Direction, JobQuery, JobSort, PAGE_LIMIT, SearchText};
use crate::mirror::state_label;
use queuekeeper_queue::fault::Fault;
use queuekeeper_queue::id::BatchId;
use queuekeeper_queue::state::{JobState, State};

use super::problem::Problem;
use crate::views::show::visible;

/// The names of all parameters.
const NAMES: [&str; 13] = [
    "state",
    "collection",
    "batch",
    "min_age",
    "min_retries",
    "locked",
    "fault",
    "group",
    "text",
    "sort",
    "direction",
    "limit",
    "cursor",
];

/// How many jobs a page has, where nobody says.
pub(in crate::web) const LIMIT: usize = 50;

/// Parameters of a query string, in its order.
pub(in crate::web) type Pairs = Vec<(String, String)>;

/// The labels of all states that a filter takes.
pub(in crate::web) fn states() -> impl Iterator<Item = Option<JobState>> {
    JobState::ALL.iter().copied().map(Some).chain([None])
}

/// What a query string asks for. A parameter without a value is as good as none: forms send what is left empty.
///
/// # Errors
/// When a parameter is unknown, given twice (but `state`), or has a value that it does not take.
pub(in crate::web) fn parse(pairs: &Pairs) -> Result<JobQuery, Problem> {
    let mut query = JobQuery { limit: LIMIT, ..JobQuery::default() };
    let mut seen = Vec::new();
    let mut cursor = None;
    for (name, value) in pairs {
        let Some(name) = NAMES.into_iter().find(|known| known == name) else {
            let problem = Problem::bad(format!("There is no parameter “{}” here.", shown(name)));
            return Err(problem.allowing(NAMES));
        };
        if value.is_empty() {
            continue;
        }
        if name != "state" && seen.contains(&name) {
            return Err(Problem::bad(format!("The parameter “{name}” is given twice.")));
        }
        seen.push(name);
        match name {
            "state" => {
                for label in value.split(',') {
                    let state = states().find(|state| state_label(*state) == label);
                    let state = state.ok_or_else(|| refuse(name, label).allowing(states().map(state_label)))?;
                    if !query.states.contains(&state) {
                        query.states.push(state);
                    }
                }
            }
            "collection" => query.collection = Some(if value == NONE { String::new() } else { value.clone() }),
            "batch" => query.batch = Some(batch(value)?),
            "min_age" => query.min_age = Some(duration(value)?),
            "min_retries" => query.min_retries = Some(number(name, value, 0, u32::MAX)?),
            "locked" => query.locked = Some(choose(name, value, [true, false], yes_or_no)?),
            "fault" => query.fault = Some(choose(name, value, Fault::ALL, Fault::label)?),
            "group" => {
                let why = |error| Problem::bad(format!("The parameter “group” cannot be “{}”: {error}.", shown(value)));
                query.group = Some(value.parse().map_err(why)?);
            }
            "text" => {
                query.text = SearchText::new(value)
                    .map_err(|error| Problem::bad(format!("The parameter “text” is too long: {error}.")))?;
            }
            "sort" => query.sort = choose(name, value, JobSort::ALL, JobSort::label)?,
            "direction" => query.direction = choose(name, value, Direction::ALL, Direction::label)?,
            "limit" => query.limit = limit(value)?,
            _ => cursor = Some(value),
        }
    }
    if let Some(cursor) = cursor {
        query.cursor = Some(cursor.parse().map_err(bad_cursor)?);
        if query.cursor.is_some_and(|cursor| !cursor.is_of(query.sort, query.direction)) {
            return Err(bad_cursor(crate::mirror::find::InvalidCursor));
        }
    }
    Ok(query)
}

/// What stands for jobs that name no collection.
pub(in crate::web) const NONE: &str = "(none)";

pub(in crate::web) fn bad_cursor(error: crate::mirror::find::InvalidCursor) -> Problem {
    Problem::bad(format!("The parameter “cursor” cannot be taken: {error}. Leave it out to see the first page."))
}

/// The number of items on a page.
pub(in crate::web) fn limit(value: &str) -> Result<usize, Problem> {
    let most = u32::try_from(PAGE_LIMIT).unwrap_or(u32::MAX);
    Ok(number("limit", value, 1, most)? as usize)
}

pub(in crate::web) fn yes_or_no(is: bool) -> &'static str {
    if is { "true" } else { "false" }
}

fn choose<T: Copy, const N: usize>(
    name: &str,
    value: &str,
    all: [T; N],
    label: fn(T) -> &'static str,
) -> Result<T, Problem> {
    let chosen = all.into_iter().find(|choice| label(*choice) == value);
    chosen.ok_or_else(|| refuse(name, value).allowing(all.map(label)))
}

/// A whole number within bounds, written in digits alone.
pub(in crate::web) fn number(name: &str, value: &str, least: u32, most: u32) -> Result<u32, Problem> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| is_plain && (least..=most).contains(number));
    number.ok_or_else(|| refuse(name, value).allowing([format!("{least} to {most}")]))
}

fn batch(value: &str) -> Result<BatchId, Problem> {
    let number = || value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit())).map(BatchId::new);
    value.parse().ok().or_else(number).ok_or_else(|| {
        refuse("batch", value).allowing(["bid and ten digits, such as bid0000000042", "its number, such as 42"])
    })
}

fn duration(value: &str) -> Result<std::time::Duration, Problem> {
    let why = |error| Problem::bad(format!("The parameter “min_age” cannot be “{}”: {error}.", shown(value)));
    Ok(value.parse::<PrometheusDuration>().map_err(why)?.get())
}

pub(in crate::web) fn refuse(name: &str, value: &str) -> Problem {
    Problem::bad(format!("The parameter “{name}” cannot be “{}”.", shown(value)))
}

/// A value out of a request, cut to what is enough to recognise it.
pub(in crate::web) fn shown(value: &str) -> String {
    visible(&value.chars().take(64).collect::<String>())
}

/// The filters of a query, as parameters, one for each value.
pub(in crate::web) fn filters(query: &JobQuery) -> Pairs {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    pairs.extend(query.text.iter().map(|text| ("text", text.as_str().to_owned())));
    pairs.extend(query.states.iter().map(|state| ("state", state_label(*state).to_owned())));
    let collection = query.collection.as_ref().map(|name| if name.is_empty() { NONE.to_owned() } else { name.clone() });
    pairs.extend(collection.map(|name| ("collection", name)));
    pairs.extend(query.batch.map(|batch| ("batch", batch.to_string())));
    pairs.extend(query.min_age.map(|age| ("min_age", PrometheusDuration::from(age).to_string())));
    pairs.extend(query.min_retries.map(|retries| ("min_retries", retries.to_string())));
    pairs.extend(query.locked.map(|locked| ("locked", yes_or_no(locked).to_owned())));
    pairs.extend(query.fault.map(|fault| ("fault", fault.label().to_owned())));
    pairs.extend(query.group.map(|group| ("group", group.to_string())));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The order and the size of the page, as parameters, where they are not what they would be anyway.
pub(in crate::web) fn order(query: &JobQuery) -> Pairs {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    if query.sort != JobSort::default() {
        pairs.push(("sort", query.sort.label().to_owned()));
    }
    if query.direction != Direction::default() {
        pairs.push(("direction", query.direction.label().to_owned()));
    }
    if query.limit != LIMIT {
        pairs.push(("limit", query.limit.to_string()));
    }
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Parameters as a query string, without the question mark.
pub(in crate::web) fn query_of(pairs: &Pairs) -> String {
    address("", pairs).trim_start_matches('?').to_owned()
}

/// A path with parameters.
pub(in crate::web) fn address<'a>(path: &str, pairs: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let mut address = path.to_owned();
    for (at, (name, value)) in pairs.into_iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => address.push(byte.into()),
                b' ' => address.push('+'),
                other => {
                    // Writing to a string does not fail.
                    let _ = write!(address, "%{other:02X}");
                }
            }
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_asked_for_is_told_again() {
        let asked = pairs(&[
            ("text", "a&b=ü"),
            ("state", "failed"),
            ("state", "other"),
            ("collection", "(none)"),
            ("batch", "bid0000000042"),
            ("min_age", "1h30m"),
            ("min_retries", "2"),
            ("locked", "false"),
            ("fault", "orphan_entry"),
            ("group", "0123456789abcdef"),
            ("sort", "retries"),
            ("direction", "desc"),
            ("limit", "500"),
        ]);
        let query = parse(&asked).unwrap();
        assert_eq!([filters(&query), order(&query)].concat(), asked);
        assert_eq!(address("jobs", &asked[..2]), "jobs?text=a%26b%3D%C3%BC&state=failed");
        let query = parse(&pairs(&[("state", "failed,held"), ("batch", "42"), ("text", " "), ("limit", "")])).unwrap();
        assert_eq!(filters(&query), pairs(&[("state", "failed"), ("state", "held"), ("batch", "bid0000000042")]));
        assert!(query.text.is_none() && order(&query).is_empty());
    }

    #[test]
    fn a_value_that_is_not_taken_is_named_with_those_that_are() {
        for (name, value, told) in [
            ("state", "failing", "pending"),
            ("fault", "x", "orphan_entry"),
            ("sort", "size", "space_needed"),
            ("direction", "up", "desc"),
            ("locked", "yes", "true"),
            ("limit", "0", "1 to 500"),
            ("limit", "501", "1 to 500"),
            ("limit", "+5", "1 to 500"),
            ("min_retries", "-1", "0 to 4294967295"),
            ("batch", "jid0000000042", "its number, such as 42"),
            ("min_age", "soon", ""),
            ("group", "7", ""),
            ("cursor", "x", ""),
            ("colour", "red", "collection"),
        ] {
            let problem = parse(&pairs(&[(name, value)])).unwrap_err();
            assert_eq!(problem.status, 400, "{name}={value}");
            assert!(problem.detail.contains(name), "{problem:?}");
            assert!(told.is_empty() || problem.allowed.iter().any(|allowed| allowed == told), "{problem:?}");
        }
        let twice = parse(&pairs(&[("limit", "5"), ("limit", "6")])).unwrap_err();
        assert!(twice.detail.contains("twice"), "{twice:?}");
        // A cursor of another order is none of this list.
        let other = pairs(&[("sort", "id"), ("cursor", "eaf1")]);
        assert!(parse(&other).unwrap_err().detail.contains("cursor"));
        assert!(parse(&pairs(&[("sort", "id"), ("cursor", "iaf1")])).is_ok());
    }
}
