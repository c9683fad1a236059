//! How many jobs of each state pass all other filters: what a request of that state instead would find.

use super::{Filter, Image, TextMatches};
use crate::mirror::find::JobQuery;
use crate::mirror::image::columns::Columns;
use crate::mirror::image::faults::FaultQuery;
use crate::mirror::summary::ByState;
use queuekeeper_queue::state::JobState;

impl Image {
    /// The jobs that a query would find, whatever states it asks for, by state. It takes no longer than the query
    /// itself does without them: by state alone everything lies in order, else it is one look at the columns.
    pub(in crate::mirror) fn count_by_state(
        &self,
        query: &JobQuery,
        matches: Option<&TextMatches>,
        fault_query: FaultQuery<'_>,
        now_ms: i64,
    ) -> ByState<JobState, usize> {
        let mut counts = ByState::default();
        let query = JobQuery { states: Vec::new(), ..query.clone() };
        let Some(filter) = self.filter(&query, matches, fault_query, now_ms) else { return counts };
        let columns = &self.jobs.columns;
        if filter.is_by_state() {
            for (state, sets) in self.entered(&query) {
                let sets = sets.into_iter().flatten();
                *counts.get_mut(state) = sets.map(|set| filter.rank_in_order(set)).sum();
            }
        } else {
            filter.visit(columns, |row| *counts.get_mut(columns.kind[row].state()) += 1);
        }
        counts
    }
}

impl Filter<'_> {
    /// Calls for each row that passes, in no order.
    fn visit(&self, columns: &Columns, mut call: impl FnMut(usize)) {
        match &self.few {
            Some(few) => few.iter().map(|row| *row as usize).filter(|row| self.has(columns, *row)).for_each(call),
            None => self.visit_all(columns, &mut call),
        }
    }
}
