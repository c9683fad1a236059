//! The state of an item in a list, as a tag.

use crate::views::show::brief;
use queuekeeper_queue::state::State;

/// How many characters of a status stand there that names no state.
const ODD_CHARS: usize = 30;

/// The name of the state with that label, and the class that colours it; `odd` is what the status says of an item whose
/// state has none.
pub(super) fn state_tag<S: State>(label: &str, odd: Option<&str>) -> (String, &'static str) {
    let Some(state) = S::ALL.iter().find(|state| state.label() == label) else {
        let name = odd.filter(|odd| !odd.is_empty()).map_or_else(|| "Other".to_owned(), |odd| brief(odd, ODD_CHARS));
        return (name, "bad");
    };
    // The two that wait for an operator have the same label in every state machine that has them.
    let class = match state.label() {
        "failed" => "bad",
        "held" => "warn",
        _ if state.is_final() => "done",
        _ => "",
    };
    (state.name().to_owned(), class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuekeeper_queue::state::{AccessState, BatchState, JobState};

    #[test]
    fn what_needs_somebody_stands_out_and_what_is_done_with_does_not() {
        let job = |label, odd| state_tag::<JobState>(label, odd);
        assert_eq!(job("failed", None), ("Failed".to_owned(), "bad"));
        assert_eq!(job("held", None), ("Held".to_owned(), "warn"));
        assert_eq!([job("pending", None).1, job("completed", None).1, job("deleted", None).1], ["", "done", "done"]);
        assert_eq!(job("other", None), ("Other".to_owned(), "bad"));
        assert_eq!(job("other", Some("")), ("Other".to_owned(), "bad"));
        assert_eq!(job("other", Some("Teleporting")), ("Teleporting".to_owned(), "bad"));
        assert_eq!(state_tag::<BatchState>("update-reporting", None), ("UpdateReporting".to_owned(), ""));
        assert_eq!(state_tag::<BatchState>("failed", None).1, "bad");
        assert_eq!(state_tag::<AccessState>("failed", None).1, "bad");
    }
}
