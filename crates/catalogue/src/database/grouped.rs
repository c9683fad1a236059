//! Small pieces of work of the same instant, in one transaction: most of what a transaction takes is its commit.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Database, Session};
use crate::error::Error;

/// How many pieces are in one transaction at most, so that the first one does not wait for long.
const MOST: usize = 64;

/// A piece of work, which may be repeated in another transaction.
#[async_trait]
pub(crate) trait Work: Send + Sync + 'static {
    /// What comes of it.
    type Answer: Send + Sync + 'static;

    async fn work(&self, session: &mut Session) -> Result<Self::Answer, Error>;
}

/// The pieces of work that wait for the next transaction. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Grouped(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    waiting: Vec<Box<dyn Waiting>>,
    /// Whether a task empties it.
    is_emptied: bool,
}

impl Grouped {
    /// Does a piece of work, together with what others ask for. It is done even where its caller does not wait for the
    /// answer.
    ///
    /// # Errors
    /// Why the database could not be written, in one line.
    pub(crate) async fn run<W: Work>(&self, database: &Database, work: W) -> Result<W::Answer, String> {
        let (answer, answered) = oneshot::channel();
        self.push(database, Box::new(Piece { work, done: None, answer }));
        answered.await.unwrap_or_else(|_| Err("its transaction was rolled back".to_owned()))
    }

    fn push(&self, database: &Database, piece: Box<dyn Waiting>) {
        let mut queue = self.0.lock();
        queue.waiting.push(piece);
        if !mem::replace(&mut queue.is_emptied, true) {
            tokio::spawn(self.clone().empty(database.clone()));
        }
    }

    async fn empty(self, database: Database) {
        while let Some(group) = self.next() {
            let database = database.clone();
            // In a task of its own: if it panics, those that wait hear it, and the next group is run.
            let _panics = tokio::spawn(async move { run_all(&database, group).await }).await;
        }
    }

    fn next(&self) -> Option<Vec<Box<dyn Waiting>>> {
        let mut queue = self.0.lock();
        let number = queue.waiting.len().min(MOST);
        queue.is_emptied = number > 0;
        queue.is_emptied.then(|| queue.waiting.drain(..number).collect())
    }
}

/// A piece of work, and who waits for its answer.
struct Piece<W: Work> {
    work: W,
    done: Option<W::Answer>,
    answer: oneshot::Sender<Result<W::Answer, String>>,
}

#[async_trait]
trait Waiting: Send + Sync {
    async fn run(&mut self, session: &mut Session) -> Result<(), Error>;

    /// Answers with what was done, once it is committed, or with why it was not.
    fn answer(self: Box<Self>, committed: Result<(), String>);
}

#[async_trait]
impl<W: Work> Waiting for Piece<W> {
    async fn run(&mut self, session: &mut Session) -> Result<(), Error> {
        self.done = Some(self.work.work(session).await?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), String>) {
        let Self { done, answer, .. } = *self;
        let done = committed.and_then(|()| done.ok_or_else(|| "it was not begun".to_owned()));
        let _receiver_is_gone = answer.send(done);
    }
}

/// Why nothing of a transaction was done.
enum Failure {
    /// A piece of work failed: without it, the others may not.
    Work(Error),
    /// The database did not begin it, or did not commit it.
    Database(Error),
}

/// Does pieces of work in one transaction, or each in one of its own where one of them fails.
async fn run_all(database: &Database, group: Vec<Box<dyn Waiting>>) {
    let mut groups = VecDeque::from([group]);
    while let Some(mut group) = groups.pop_front() {
        let committed = match run_together(database, &mut group).await {
            Ok(()) => Ok(()),
            Err(Failure::Work(_)) if group.len() > 1 => {
                groups.extend(group.into_iter().map(|piece| vec![piece]));
                continue;
            }
            Err(Failure::Work(error)) => Err(error.to_string()),
            Err(Failure::Database(error)) => {
                group.extend(groups.drain(..).flatten());
                Err(error.to_string())
            }
        };
        for piece in group {
            piece.answer(committed.clone());
        }
    }
}

async fn run_together(database: &Database, group: &mut [Box<dyn Waiting>]) -> Result<(), Failure> {
    let mut session = database.begin().await.map_err(Failure::Database)?;
    for piece in group {
        if let Err(error) = piece.run(&mut session).await {
            session.roll_back().await;
            return Err(Failure::Work(error));
        }
    }
    session.end(Ok(())).await.map_err(Failure::Database)
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use uuid::Uuid;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::database::value::values;
    use crate::error::ErrorKind;

    /// What becomes of a piece of work behind the row that it writes.
    #[derive(Clone, Copy)]
    enum Then {
        Done,
        Fails,
        Panics,
    }

    /// Writes a row.
    struct Write {
        id: Uuid,
        then: Then,
    }

    #[async_trait]
    impl Work for Write {
        type Answer = Uuid;

        async fn work(&self, session: &mut Session) -> Result<Uuid, Error> {
            let sql = "INSERT INTO dropped_intents (id, dropped) VALUES ($1, {now})";
            session.run(sql, values![self.id]).await?;
            match self.then {
                Then::Done => Ok(self.id),
                Then::Fails => Err(session.error(ErrorKind::Conflict("as planned".to_owned()))),
                Then::Panics => panic!("as planned"),
            }
        }
    }

    async fn written(catalogue: &Catalogue) -> usize {
        let sql = "SELECT id FROM dropped_intents";
        catalogue.list(sql, values![], |row| row.get::<Uuid>(0)).await.unwrap().len()
    }

    #[tokio::test]
    async fn what_fails_takes_nothing_else_with_it_and_what_has_lost_its_receiver_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("catalogue.db").display());
        let catalogue = Catalogue::open(&url).await.unwrap();
        let run = |then| catalogue.grouped.run(&catalogue.database, Write { id: Uuid::now_v7(), then });
        let then = |number| if number == 10 { Then::Fails } else { Then::Done };
        let answers = join_all((0..100).map(|number| run(then(number)))).await;
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer.is_err(), number == 10, "{answer:?}");
        }
        assert!(answers[10].as_ref().unwrap_err().contains("as planned"));
        assert_eq!(written(&catalogue).await, 99);

        let mut abandoned = Box::pin(run(Then::Done));
        assert!(futures::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        // What comes later is done later.
        run(Then::Done).await.unwrap();
        assert_eq!(written(&catalogue).await, 101);

        assert!(run(Then::Panics).await.is_err_and(|why| why.contains("rolled back")));
        run(Then::Done).await.unwrap();
        assert_eq!(written(&catalogue).await, 102);

        catalogue.close().await;
        let answers = join_all((0..3).map(|_| run(Then::Done))).await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|why| why.contains("catalogue.db"))));
    }
}
