//! What lists are asked with: a part of the list, and choices among values that are known.

use crate::mirror::find::SearchText;
use crate::mirror::lists::{ListError, Part};
use crate::mirror::{AGE_LABELS, state_label};
use queuekeeper_queue::state::State;

use super::http::problem::Problem;
use super::http::query::{LIMIT, bad_cursor, limit, number, refuse, shown};

/// A parameter as forms send it: one without a value is as good as none.
pub(super) fn given(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

/// A number of things, at least one; `usual` where nobody says.
pub(super) fn size(name: &str, value: Option<&String>, most: u32, usual: usize) -> Result<usize, Problem> {
    let Some(value) = given(value) else { return Ok(usual) };
    Ok(number(name, value, 1, most)? as usize)
}

/// The part of a list that `limit` and `cursor` ask for.
pub(super) fn part(size: Option<&String>, cursor: Option<&String>) -> Result<Part, Problem> {
    let size = given(size).map_or(Ok(LIMIT), limit)?;
    let after = given(cursor).map(|cursor| cursor.parse().map_err(bad_cursor)).transpose()?;
    Ok(Part { after, size })
}

/// One of the values of a parameter.
pub(super) fn choose<T: Copy>(
    name: &str,
    value: Option<&String>,
    all: &[T],
    label: fn(T) -> &'static str,
) -> Result<Option<T>, Problem> {
    let Some(value) = given(value) else { return Ok(None) };
    let chosen = all.iter().copied().find(|choice| label(*choice) == value);
    chosen.map(Some).ok_or_else(|| refuse(name, value).allowing(all.iter().map(|choice| label(*choice))))
}

/// A state by its label, and `other`.
#[expect(clippy::option_option, reason = "no filter, or a state, and none that is known is one of these")]
pub(super) fn state<S: State>(value: Option<&String>) -> Result<Option<Option<S>>, Problem> {
    choose("state", value, &states::<S>(), state_label)
}

/// Every state, and `None` for `other`.
pub(super) fn states<S: State>() -> Vec<Option<S>> {
    S::ALL.iter().copied().map(Some).chain([None]).collect()
}

/// An age band by its label, as an index.
pub(super) fn age(value: Option<&String>) -> Result<Option<usize>, Problem> {
    let bands: Vec<_> = (0..AGE_LABELS.len()).collect();
    choose("age", value, &bands, |band| AGE_LABELS[band])
}

/// A text to look for.
pub(super) fn text(value: Option<&String>) -> Result<Option<String>, Problem> {
    let text = given(value).map(SearchText::new).transpose();
    let text = text.map_err(|error| Problem::bad(format!("The parameter “text” is too long: {error}.")))?;
    Ok(text.flatten().map(|text| text.as_str().to_owned()))
}

/// A session by its id, as ZooKeeper's own log writes it, and `none` for persistent locks.
pub(super) fn session(value: Option<&String>) -> Result<Option<i64>, Problem> {
    let Some(value) = given(value) else { return Ok(None) };
    if value == PERSISTENT {
        return Ok(Some(0));
    }
    let id = value.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let id = id.and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(u64::cast_signed);
    let id = id.filter(|id| *id != 0);
    id.map(Some).ok_or_else(|| {
        let problem = Problem::bad(format!("The parameter “session” cannot be “{}”.", shown(value)));
        problem.allowing(["a session's id, such as 0x100005a3c2e0001", PERSISTENT])
    })
}

/// What stands for the session of locks that no session holds.
pub(super) const PERSISTENT: &str = "none";

impl From<ListError> for Problem {
    fn from(error: ListError) -> Self {
        match error {
            ListError::NoImage => Self::no_image(),
            ListError::Cursor(error) => bad_cursor(error),
        }
    }
}
