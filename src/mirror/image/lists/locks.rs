//! The list of locks, by when they were created.
//!
//! There may be as many as jobs. So a page by age is read off the ordered sets, and only what is as old as its first
//! and last lock is looked at besides; for one by anything else all are looked at.

use std::ops::RangeInclusive;

use hashbrown::HashMap;
use jiff::Timestamp;

use super::{PathKey, began};
use crate::mirror::bands::Bands;
use crate::mirror::clock::Offset;
use crate::mirror::image::Image;
use crate::mirror::image::row::{LockStat, UNKNOWN_MS};
use crate::mirror::image::view::own;
use crate::mirror::lists::{ListedLock, LockOrder, LockQuery, SessionLocks};
use crate::mirror::page::{InvalidCursor, Page, PageRequest, Picker};
use crate::mirror::summary::LockKind;
use queuekeeper_queue::path::{AccessQueue, BatchNode, JobNode, Path, RequestNode};

/// What locks are ordered by: a rank, their kind, and their path.
type Key = (i64, usize, PathKey);

/// The rank of an instant where locks are ordered by age. The unknown one is the last in both orders; turning a rank
/// round twice gives the instant.
fn age_rank(created_ms: i64, order: LockOrder) -> i64 {
    if order == LockOrder::Newest && created_ms != UNKNOWN_MS { created_ms.saturating_neg() } else { created_ms }
}

/// The rank of a session where locks are ordered by it. Those of none come behind, and last those of which it is not
/// known.
fn session_rank(session: Option<i64>) -> i64 {
    match session {
        None => i64::MAX,
        Some(0) => i64::MAX - 1,
        Some(session) => session,
    }
}

/// The name of an order in cursors.
fn name(order: LockOrder) -> String {
    format!("locks {}", order.label())
}

/// A page under way.
struct Picking {
    picker: Picker<Key>,
    created: RangeInclusive<i64>,
    order: LockOrder,
    /// From which rank on locks may be on the page; `None` for any.
    from: Option<i64>,
    total: usize,
    skipped: usize,
}

impl Picking {
    /// Offers what is in an ordered set, as far as it may be on the page.
    fn ordered(&mut self, set: &Bands<5>, kind: LockKind, path: impl Fn(u32) -> Option<Path>) {
        let (first, last) = self.created.clone().into_inner();
        let many = |from: i64, to: i64| if from > to { 0 } else { set.range(from..=to).count() };
        self.total += many(first, last);
        let from = self.from.unwrap_or(i64::MIN);
        if self.order == LockOrder::Oldest {
            self.skipped += many(first, last.min(from.saturating_sub(1)));
            self.offer(set.range(from.max(first)..=last), kind, path);
            return;
        }
        let known = last.min(UNKNOWN_MS - 1);
        let until = if self.from.is_some() { known.min(age_rank(from, self.order)) } else { known };
        let until = if from == UNKNOWN_MS { i64::MIN } else { until };
        self.skipped += many(first.max(until.saturating_add(1)), known);
        let latest = set.items().before(|(at, _)| *at <= until).take_while(|(at, _)| *at >= first);
        self.offer(latest, kind, &path);
        if last == UNKNOWN_MS {
            self.offer(set.range(UNKNOWN_MS..=UNKNOWN_MS), kind, &path);
        }
    }

    /// Offers what comes in order, as far as it may be on the page.
    fn offer(&mut self, items: impl Iterator<Item = (i64, u32)>, kind: LockKind, path: impl Fn(u32) -> Option<Path>) {
        for (at, number) in items {
            let rank = age_rank(at, self.order);
            if self.picker.limit().is_some_and(|(limit, ..)| rank > *limit) {
                break;
            }
            if let Some(path) = path(number) {
                self.picker.offer((rank, kind as usize, PathKey(path)));
            }
        }
    }

    /// Offers one lock.
    fn one(&mut self, kind: LockKind, (path, stat): (Path, Option<LockStat>)) {
        let created_ms = stat.map_or(UNKNOWN_MS, |stat| stat.created_ms);
        if self.created.contains(&created_ms) {
            let rank = match self.order {
                LockOrder::Oldest | LockOrder::Newest => age_rank(created_ms, self.order),
                LockOrder::Guards => 0,
                LockOrder::Session => session_rank(stat.map(|stat| stat.session)),
            };
            self.total += 1;
            self.picker.offer((rank, kind as usize, PathKey(path)));
        }
    }
}

impl Image {
    /// A page of the locks that fit a filter.
    pub(in crate::mirror) fn lock_page(
        &self,
        query: LockQuery,
        part: &PageRequest,
        now: Timestamp,
        offset: Offset,
    ) -> Result<Page<ListedLock>, InvalidCursor> {
        let order = query.order;
        let after: Option<Key> = part.key(&name(order))?;
        let from = after.as_ref().map(|(rank, ..)| *rank);
        let created = began(query.age, now, offset);
        let mut picking = Picking { picker: Picker::new(after, part.size), created, order, from, total: 0, skipped: 0 };
        let is_in_order = matches!(order, LockOrder::Oldest | LockOrder::Newest) && query.session.is_none();
        for kind in LockKind::ALL.into_iter().filter(|kind| query.kind.is_none_or(|wanted| wanted == *kind)) {
            match kind {
                kind if !is_in_order || matches!(kind, LockKind::Batch | LockKind::Access) => {
                    self.locks_of(kind, query.session).for_each(|lock| picking.one(kind, lock));
                }
                LockKind::Job => {
                    let path = |row| Some(Path::JobNode(self.jobs.at(row).id(), JobNode::Lock));
                    picking.ordered(&self.jobs.figures.locks, kind, path);
                }
                _ => {
                    let path = |number| self.locks.at(number).map(|(_, path, _)| path.clone());
                    picking.ordered(&self.locks.kinds[kind as usize], kind, path);
                }
            }
        }
        let Picking { picker, total, skipped, .. } = picking;
        Ok(picker.of(total, skipped).page(&name(order), |(_, kind, PathKey(path))| {
            let (kind, path) = (LockKind::ALL[*kind], path.clone());
            let is_pause = matches!(kind, LockKind::Queue | LockKind::Collection);
            let pause = is_pause.then(|| self.pause(&path, offset)).flatten();
            let stat = self.lock_stat(&path);
            ListedLock { kind, created: stat.and_then(|stat| own(stat.created_ms, offset)), stat, path, pause }
        }))
    }

    /// The locks of a kind, those of a session or all, with what is known of them where they are readable.
    fn locks_of(
        &self,
        kind: LockKind,
        session: Option<i64>,
    ) -> Box<dyn Iterator<Item = (Path, Option<LockStat>)> + '_> {
        match (kind, session) {
            (LockKind::Batch | LockKind::Access, session) => {
                let locks = self.item_locks(kind).into_iter().map(|(path, stat)| (path, Some(stat)));
                Box::new(locks.filter(move |(_, stat)| session.is_none() || stat.map(|stat| stat.session) == session))
            }
            (LockKind::Job, session) => {
                let rows: Box<dyn Iterator<Item = u32>> = match session {
                    Some(session) => Box::new(self.jobs.beside.sessions.of(session)),
                    None => Box::new(self.jobs.figures.locks.iter().map(|(_, row)| row)),
                };
                Box::new(
                    rows.map(|row| self.jobs.at(row))
                        .map(|row| (Path::JobNode(row.id(), JobNode::Lock), row.lock.as_deref().copied())),
                )
            }
            (_, session) => {
                let numbers: Box<dyn Iterator<Item = u32>> = match session {
                    Some(session) => Box::new(self.locks.sessions.of(session)),
                    None => Box::new(self.locks.kinds[kind as usize].iter().map(|(_, number)| number)),
                };
                let locks = numbers.filter_map(|number| self.locks.at(number)).filter(move |(of, ..)| *of == kind);
                Box::new(locks.map(|(_, path, stat)| (path.clone(), stat)))
            }
        }
    }

    /// The locks on batches or on access requests. As many daemons as there are hold them.
    fn item_locks(&self, kind: LockKind) -> Vec<(Path, LockStat)> {
        if kind == LockKind::Batch {
            let locks = self.batches.locks.iter();
            return locks.map(|(batch, stat)| (Path::BatchNode(*batch, BatchNode::Lock), *stat)).collect();
        }
        let of = |queue: &AccessQueue| {
            let queue = *queue;
            let locks = self.access.queue(queue).locks.iter();
            locks.map(move |(request, stat)| (Path::RequestNode(queue, *request, RequestNode::Lock), *stat))
        };
        AccessQueue::ALL.iter().flat_map(of).collect()
    }

    /// Some of the locks that a session holds, those of jobs first, and how many it holds. A persistent lock
    /// belongs to no session.
    pub(in crate::mirror::image) fn held_by(&self, session: i64, most: usize) -> (Vec<Path>, u64) {
        if session == 0 {
            return (Vec::new(), 0);
        }
        let jobs = &self.jobs.beside.sessions;
        let items = [LockKind::Batch, LockKind::Access].into_iter().flat_map(|kind| self.item_locks(kind));
        let items: Vec<_> = items.filter(|(_, stat)| stat.session == session).map(|(path, _)| path).collect();
        let count = u64::from(jobs.count(session)) + u64::from(self.locks.sessions.count(session)) + items.len() as u64;
        let jobs = jobs.of(session).map(|row| Path::JobNode(self.jobs.at(row).id(), JobNode::Lock));
        let named = self.locks.sessions.of(session).filter_map(|number| self.locks.at(number));
        let locks = jobs.chain(items).chain(named.map(|(_, path, _)| path.clone()));
        (locks.take(most).collect(), count)
    }

    /// What is known of a lock; `None` for one that is not there, or not readable.
    pub(in crate::mirror) fn lock_stat(&self, path: &Path) -> Option<LockStat> {
        match path {
            Path::JobNode(job, JobNode::Lock) => self.jobs.get(*job)?.lock.as_deref().copied(),
            Path::BatchNode(batch, BatchNode::Lock) => self.batches.locks.get(batch).copied(),
            Path::RequestNode(queue, request, RequestNode::Lock) => {
                self.access.queue(*queue).locks.get(request).copied()
            }
            _ => self.locks.get(path),
        }
    }

    /// The sessions that hold the most locks, at most `limit` of them, and how many there are.
    pub(in crate::mirror) fn sessions(&self, limit: usize) -> (Vec<SessionLocks>, usize) {
        let mut sessions: HashMap<i64, (u64, u64)> = HashMap::new();
        for (session, jobs) in self.jobs.beside.sessions.counts() {
            sessions.insert(session, (jobs.into(), jobs.into()));
        }
        let items = [LockKind::Batch, LockKind::Access].into_iter().flat_map(|kind| self.item_locks(kind));
        let others = items.map(|(_, stat)| (stat.session, 1)).chain(self.locks.sessions.counts());
        for (session, locks) in others {
            sessions.entry(session).or_default().0 += u64::from(locks);
        }
        let mut sessions: Vec<_> =
            sessions.into_iter().map(|(session, (locks, jobs))| SessionLocks { session, locks, jobs }).collect();
        sessions.sort_unstable_by_key(|of| (std::cmp::Reverse(of.locks), of.session));
        let all = sessions.len();
        sessions.truncate(limit);
        (sessions, all)
    }
}
