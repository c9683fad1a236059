//! The searches that were made last, to go on from where they ended.

use super::image::TextMatches;

/// How many are kept. Each takes one bit a job, and one bit for each text that jobs share.
const KEPT: usize = 16;

/// What was looked for and where it was found, the latest last.
///
/// A list that is open on somebody's screen is asked for again with each change, and page by page: only the first of
/// these reads all the text.
#[derive(Debug, Default)]
pub(super) struct Searches {
    kept: Vec<(String, TextMatches)>,
}

impl Searches {
    /// What is known of a search; of a new one, nothing. Two at the same time are two new ones.
    pub(super) fn take(&mut self, text: &str) -> TextMatches {
        let at = self.kept.iter().position(|(kept, _)| kept == text);
        at.map(|at| self.kept.remove(at).1).unwrap_or_default()
    }

    /// Keeps what is known of a search.
    pub(super) fn keep(&mut self, text: &str, matches: TextMatches) {
        self.kept.retain(|(kept, _)| kept != text);
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push((text.to_owned(), matches));
    }
}
