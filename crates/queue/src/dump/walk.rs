//! Reading the whole tree in the order of a dump, with few requests in flight and little of it in memory.
//!
//! What is still to be read is a queue of entries in the order of their lines. Queries are taken from its front, as
//! many as fill a request; an answer replaces its query, and further queries take the position that their lines will
//! have. Lines leave at the front. So enough requests are in flight although each znode's children are known only after
//! it, and no more is held than lies in a window before the front.
//!
//! Half of the queries of a request are chosen from the window at random, and the others in order, so that the front
//! moves. All in order, the first large values after many small ones would be under way before one of them is answered.
//! Two of three queries have been chosen at random before the front reaches them: what is large among those answered
//! shows how many may be read in order.

use std::collections::{HashMap, VecDeque};
use std::vec::IntoIter;

use futures::stream::{FuturesUnordered, StreamExt as _};
use zookeeper_client::MultiReadResult;

use super::line::Trailer;
use super::query::{DumpPath, Query, QueryResult, Reading};
use super::redact::Redaction;
use crate::error::{Error, RequestFailure};
use crate::handle::Queue;
use crate::pace::{ANSWER_BYTES, Estimate, LARGEST_DATA, REQUESTS_IN_FLIGHT};
use crate::path::Path;

/// How far before the front queries are sent, in reads.
const WINDOW: usize = 2048;

/// How many reads a request has at most.
const READS_A_REQUEST: usize = 128;

/// How many answers the size of the next ones is estimated from. The window moves on: what comes into it need not be
/// like what was in it some windows ago, and a large value among so many makes the next requests small.
const REMEMBERED: f64 = 256.0;

/// Which part of the queries that wait in the window a request may have; with more they would not be a sample of the
/// rest.
const PART: usize = 8;

/// How large a request may become: far below the 1 MiB at which the server resets the connection.
const REQUEST_BYTES: usize = 256 << 10;

/// How often a request is made whose connection is lost.
const ATTEMPTS: usize = 5;

enum Entry {
    Lines(Vec<u8>),
    Waiting(Query),
    Reading(u64, usize),
    Children(DumpPath, IntoIter<String>),
}

impl Entry {
    fn reads(&self) -> usize {
        match self {
            Self::Waiting(query) => query.reads(),
            Self::Reading(_, reads) => *reads,
            // Lines that wait behind a query count by their size.
            Self::Lines(lines) => 1 + lines.len() / 256,
            Self::Children(..) => 0,
        }
    }
}

impl From<QueryResult> for Entry {
    fn from(next: QueryResult) -> Self {
        match next {
            QueryResult::Lines(lines) => Self::Lines(lines),
            QueryResult::Query(query) => Self::Waiting(query),
            QueryResult::Children(of, names) => Self::Children(of, names.into_iter()),
        }
    }
}

/// How large the largest value was among the answers of the last window: of those so far, and of as many before.
struct Largest {
    before: u64,
    now: u64,
    answers: usize,
}

impl Default for Largest {
    fn default() -> Self {
        Self { before: LARGEST_DATA, now: 0, answers: 0 }
    }
}

impl Largest {
    fn saw(&mut self, bytes: u64) {
        self.now = self.now.max(bytes);
        self.answers += 1;
        if self.answers == WINDOW {
            *self = Self { before: self.now, now: 0, answers: 0 };
        }
    }

    /// How many reads bring no more than so many bytes, if each is as large; at least one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of reads, cut")]
    fn reads_within(&self, bytes: f64) -> usize {
        ((bytes / self.before.max(self.now).max(1) as f64) as usize).max(1)
    }
}

pub(super) struct Walk<'a> {
    queue: &'a Queue,
    redaction: Option<&'a Redaction>,
    entries: VecDeque<Entry>,
    /// The queries of each request in flight, and how often it was made.
    in_flight: HashMap<u64, (Vec<Query>, usize)>,
    last_request: u64,
    estimate: Estimate,
    largest: Largest,
    pub(super) counts: Trailer,
}

impl<'a> Walk<'a> {
    pub(super) fn new(queue: &'a Queue, redaction: Option<&'a Redaction>) -> Self {
        let root = Query { of: DumpPath::root(), reading: Reading::Node };
        Self {
            queue,
            redaction,
            entries: VecDeque::from([Entry::Waiting(root)]),
            in_flight: HashMap::new(),
            last_request: 0,
            estimate: Estimate::at_most(LARGEST_DATA),
            largest: Largest::default(),
            counts: Trailer::default(),
        }
    }

    /// Reads everything, and hands lines out in order, some at a time.
    pub(super) async fn run(
        &mut self,
        mut write: impl FnMut(&[u8], &Trailer) -> std::io::Result<()>,
    ) -> Result<std::io::Result<()>, Error> {
        let mut in_flight = FuturesUnordered::new();
        loop {
            while in_flight.len() < REQUESTS_IN_FLIGHT {
                let Some(number) = self.next_request() else { break };
                in_flight.push(self.request(number));
            }
            let Some((number, outcome)) = in_flight.next().await else { break };
            match outcome {
                Ok(answers) => self.take(number, answers)?,
                Err(cause) => {
                    let (queries, attempts) = self.in_flight.get_mut(&number).expect("it was in flight");
                    *attempts += 1;
                    if *attempts == ATTEMPTS || !cause.is_connection() {
                        return Err(Error::Read { path: Path::parse_whole(&queries[0].of.real), cause });
                    }
                    in_flight.push(self.request(number));
                }
            }
            while let Some(lines) = self.next_lines() {
                if let Err(error) = write(&lines, &self.counts) {
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(()))
    }

    /// The lines at the front. Afterwards a query is at the front, or nothing.
    fn next_lines(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.entries.pop_front()? {
                Entry::Lines(lines) => return Some(lines),
                Entry::Children(_, names) if names.len() == 0 => {}
                entry => {
                    self.entries.push_front(entry);
                    return None;
                }
            }
        }
    }

    /// Takes as many questions from the window as make a request.
    fn next_request(&mut self) -> Option<u64> {
        let number = self.last_request + 1;
        let chosen = self.choose();
        if chosen.is_empty() {
            return None;
        }
        let mut queries = Vec::with_capacity(chosen.len());
        for at in chosen {
            let in_flight = Entry::Reading(number, self.entries[at].reads());
            if let Entry::Waiting(query) = std::mem::replace(&mut self.entries[at], in_flight) {
                queries.push(query);
            }
        }
        self.last_request = number;
        self.in_flight.insert(number, (queries, 0));
        Some(number)
    }

    /// Opens lists of children as far as the window reaches, and returns the positions of the queries that wait in it,
    /// and how many reads these are.
    fn waiting(&mut self) -> (Vec<usize>, usize) {
        let (mut at, mut seen, mut waiting, mut reads) = (0, 0, Vec::new(), 0);
        while seen < WINDOW
            && let Some(entry) = self.entries.get_mut(at)
        {
            if let Entry::Children(of, names) = entry {
                match names.next().map(|name| Query::first(of.child(&name, self.redaction))) {
                    Some(first) => self.entries.insert(at, Entry::Waiting(first)),
                    None => drop(self.entries.remove(at)),
                }
                continue;
            }
            let more = entry.reads();
            if let Entry::Waiting(_) = entry {
                waiting.push(at);
                reads += more;
            }
            seen += more;
            at += 1;
        }
        (waiting, reads)
    }

    /// Chooses the queries of a request: the first ones that wait, and others at random. Returns their positions, in
    /// order.
    fn choose(&mut self) -> Vec<usize> {
        let (mut first, all) = self.waiting();
        let chroot = self.queue.client().path().len();
        let most = self.estimate.reads_within(ANSWER_BYTES).min(READS_A_REQUEST).min(all / PART);
        let in_order = self.largest.reads_within(ANSWER_BYTES).min((most / 2).max(1));
        let within = first.iter().scan(0, |reads, at| {
            *reads += self.entries[*at].reads();
            (*reads <= in_order).then_some(())
        });
        let mut others = first.split_off(within.count().max(1).min(first.len()));
        let at_random = std::iter::from_fn(|| {
            let last = others.len().checked_sub(1)?;
            Some(others.swap_remove(rand::random_range(0..=last)))
        });
        let mut chosen: Vec<_> = first.into_iter().chain(at_random).take(most.max(1)).collect();
        let sizes = chosen.iter().map(|at| match &self.entries[*at] {
            Entry::Waiting(query) => (query.reads(), query.bytes(chroot)),
            Entry::Lines(_) | Entry::Reading(..) | Entry::Children(..) => (0, 0),
        });
        let fitting = fitting(sizes, most);
        chosen.truncate(fitting);
        chosen.sort_unstable();
        chosen
    }

    /// Sends the request at once; awaiting it gives its answers.
    fn request(
        &self,
        number: u64,
    ) -> impl Future<Output = (u64, Result<Vec<MultiReadResult>, RequestFailure>)> + use<'a> {
        let (queries, _) = &self.in_flight[&number];
        let mut reader = self.queue.client().new_multi_reader();
        let added = queries.iter().try_for_each(|query| query.add(&mut reader));
        let (queue, request) = (self.queue, reader.commit());
        async move {
            let answers = match added {
                Ok(()) => queue.within(request).await,
                Err(error) => Err(RequestFailure::Client(error)),
            };
            (number, answers)
        }
    }

    /// Puts what the answers say in the places of their questions.
    fn take(&mut self, number: u64, answers: Vec<MultiReadResult>) -> Result<(), Error> {
        let (queries, _) = self.in_flight.remove(&number).expect("it was in flight");
        for answer in &answers {
            let bytes = size(answer);
            self.estimate.saw(bytes);
            self.largest.saw(bytes);
        }
        self.estimate.remember(REMEMBERED);
        let (mut queries, mut answers) = (queries.into_iter(), answers.into_iter());
        let mut entries = VecDeque::with_capacity(self.entries.len());
        while let Some(entry) = self.entries.pop_front() {
            let Entry::Reading(of, mut reads) = entry else {
                entries.push_back(entry);
                continue;
            };
            if of != number {
                entries.push_back(entry);
                continue;
            }
            while reads > 0 {
                let query = queries.next().expect("an entry stands for as many reads as its questions have");
                reads -= query.reads();
                let next = query.take(&mut answers, self.redaction, &mut self.counts);
                let next = next.map_err(|(path, error)| Error::Read {
                    path: Path::parse_whole(&path),
                    cause: RequestFailure::Client(error),
                })?;
                for next in next {
                    match (entries.back_mut(), Entry::from(next)) {
                        (Some(Entry::Lines(before)), Entry::Lines(lines)) => before.extend(lines),
                        (_, entry) => entries.push_back(entry),
                    }
                }
            }
        }
        self.entries = entries;
        Ok(())
    }
}

/// How many of the first queries make a request, by their reads and bytes: the first in any case, and more while they
/// have no more than so many reads, and [`REQUEST_BYTES`].
fn fitting(sizes: impl Iterator<Item = (usize, usize)>, most: usize) -> usize {
    let fit = sizes.scan((0, 0), |(reads, bytes), (more_reads, more_bytes)| {
        *reads += more_reads;
        *bytes += more_bytes;
        (*reads <= most && *bytes <= REQUEST_BYTES).then_some(())
    });
    fit.count().max(1)
}

fn size(answer: &MultiReadResult) -> u64 {
    match answer {
        MultiReadResult::Data { data, .. } => data.len() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_answer_of_the_last_two_windows_bounds_what_is_read_in_order() {
        let mut largest = Largest::default();
        let mut within = |answers: usize, bytes: u64, budget: f64| {
            (0..answers).for_each(|_| largest.saw(bytes));
            largest.reads_within(budget)
        };
        let four = LARGEST_DATA as f64 * 4.5;
        assert_eq!(within(0, 0, four), 4, "nothing is known yet");
        assert_eq!(within(WINDOW - 1, 100, four), 4, "not all of a window was seen");
        assert_eq!(within(1, 100, 1_050.0), 10);
        assert_eq!(within(1, 500, 1_050.0), 2, "one large answer counts at once");
        assert_eq!(within(WINDOW - 1, 100, 1_050.0), 2, "and during the whole next window");
        assert_eq!(within(WINDOW, 100, 1_050.0), 10);
        assert_eq!(within(0, 0, 50.0), 1, "one is read however large it may be");
        assert_eq!(within(2 * WINDOW, 0, 7.0), 7);
    }

    #[test]
    fn a_request_has_one_query_and_more_within_its_reads_and_bytes() {
        let fitting = |sizes: &[(usize, usize)], most| fitting(sizes.iter().copied(), most);
        assert_eq!(fitting(&[(1, 10); 5], 3), 3, "reads");
        assert_eq!(fitting(&[(2, 10), (1, 10), (1, 10)], 3), 2, "each query has its own");
        assert_eq!(fitting(&[(5, 10), (1, 10)], 3), 1, "one is made however many reads it has");
        assert_eq!(fitting(&[(1, 10); 5], 0), 1);
        let third = REQUEST_BYTES / 3;
        assert_eq!(fitting(&[(1, third); 5], 128), 3, "bytes");
        assert_eq!(fitting(&[(1, third), (1, 2 * third), (1, REQUEST_BYTES % 3), (1, 1)], 128), 3);
        assert_eq!(fitting(&[(1, REQUEST_BYTES + 1), (1, 1)], 128), 1, "one is made however long its path is");
    }

    #[test]
    fn an_entry_counts_in_the_window_by_what_it_reads_or_holds() {
        let query = Query::first(DumpPath::root().child("jobs", None));
        for (entry, reads) in [
            (Entry::Waiting(query), 1),
            (Entry::Reading(1, 12), 12),
            (Entry::Lines(Vec::new()), 1),
            (Entry::Lines(vec![b'x'; 600]), 3),
            (Entry::Children(DumpPath::root(), vec!["a".to_owned()].into_iter()), 0),
        ] {
            assert_eq!(entry.reads(), reads);
        }
        let data = MultiReadResult::Data { data: b"12345".to_vec(), stat: crate::testing::stat() };
        let names = MultiReadResult::Children { children: vec!["a".to_owned()] };
        assert_eq!([data, names].map(|answer| size(&answer)), [5, 0]);
    }
}
