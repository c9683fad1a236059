//! Which job has which ARK, and which object a local id belongs to.

use uuid::Uuid;

use crate::catalogue::Catalogue;
use crate::database::Session;
use crate::database::value::values;
use crate::error::{Error, ErrorKind};
use crate::object_intents;

/// An ARK that a job requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The job.
    pub job: Uuid,
    /// Whose local ids they are.
    pub owner: String,
    /// The ids that the owner knows the object by.
    pub local_ids: Vec<String>,
    /// The ARK that the job takes where none of its local ids has one, `ark:/NAAN/NAME` in normal form.
    pub candidate: String,
    /// Whether the candidate counts as registered from the beginning, since it is registered nowhere else.
    pub is_registered: bool,
    /// The store and space in which the job will write the object's version.
    pub place: (String, String),
}

/// What a job got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// This ARK: its own, or that of the object that its local ids belong to.
    Ark {
        /// The ARK.
        ark: String,
        /// Whether it is registered where identifiers are looked up.
        is_registered: bool,
    },
    /// The candidate belongs to another job or object: derive another one.
    Collision {
        /// Whose job has reserved it and still intends a version of its object; `None` where none does.
        owner: Option<String>,
    },
}

/// What a job has.
const OWN: &str = "SELECT ark, registered FROM identifiers WHERE job = $1";

/// How often a job that loses a race for a local id looks again; it can lose each id once.
const ATTEMPTS: u32 = 16;

impl Catalogue {
    /// Reserves an ARK and local ids for a job, and writes that it intends a version of that object; of the candidate,
    /// where that belongs to another. Two jobs with one local id get one ARK, and a job that repeats its request gets
    /// what it has.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the local ids belong to different objects. Others when the database cannot be
    /// written.
    pub async fn reserve(&self, request: &Request) -> Result<Reserved, Error> {
        for _attempt in 0..ATTEMPTS {
            let mut session = self.database.begin().await?;
            match reserve_in(&mut session, request).await {
                // What was written before the race was lost is taken back.
                Ok(None) => session.roll_back().await,
                Ok(Some(reserved)) => {
                    let ark = if let Reserved::Ark { ark, .. } = &reserved { ark } else { &request.candidate };
                    let noted = object_intents::begin(&mut session, request.job, ark, &request.place).await;
                    return session.end(noted.map(|()| reserved)).await;
                }
                Err(error) => return session.end(Err(error)).await,
            }
        }
        Err(self.database.error(ErrorKind::Conflict("other jobs are reserving the same local ids".to_owned())))
    }

    /// The ARK that a job has, by itself or by its owner's local ids, and that [`Self::reserve`] would give it; `None`
    /// where it has none yet.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the local ids belong to different objects. Others when the database cannot be read.
    pub async fn reserved(&self, job: Uuid, owner: &str, local_ids: &[String]) -> Result<Option<String>, Error> {
        let mut session = self.database.begin().await?;
        let found = async {
            match session.row(OWN, values![job]).await? {
                Some(row) => session.decode(row.get(0)).map(Some),
                None => known_ark(&mut session, owner, local_ids).await,
            }
        };
        let found = found.await;
        session.end(found).await
    }

    /// Writes down that an ARK is registered; the answer is whether it is reserved at all.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn registered(&self, ark: &str) -> Result<bool, Error> {
        let mut session = self.database.begin().await?;
        let sql = "UPDATE identifiers SET registered = COALESCE(registered, {now}) WHERE ark = $1";
        let outcome = session.run(sql, values![ark]).await;
        Ok(session.end(outcome).await? > 0)
    }
}

/// `None` where another job was faster.
async fn reserve_in(session: &mut Session, request: &Request) -> Result<Option<Reserved>, Error> {
    if let Some(row) = session.row(OWN, values![request.job]).await? {
        let (ark, registered) = (session.decode(row.get(0))?, session.decode(row.get::<Option<i64>>(1))?);
        return Ok(Some(Reserved::Ark { ark, is_registered: registered.is_some() }));
    }
    // In their order, so that two jobs with the same ids wait for each other and do not block each other.
    let mut ids = request.local_ids.clone();
    ids.sort();
    ids.dedup();
    let reserved = match known_ark(session, &request.owner, &ids).await? {
        Some(ark) => {
            let sql = "SELECT 1 FROM identifiers WHERE ark = $1 AND registered IS NULL";
            let is_registered = session.row(sql, values![&ark]).await?.is_none();
            Reserved::Ark { ark, is_registered }
        }
        None if take(session, request).await? => {
            Reserved::Ark { ark: request.candidate.clone(), is_registered: request.is_registered }
        }
        None => {
            let sql = "SELECT i.owner FROM identifiers i JOIN object_intents o ON o.job = i.job AND o.ark = i.ark
                WHERE i.ark = $1";
            let row = session.row(sql, values![&request.candidate]).await?;
            let owner = row.map(|row| session.decode(row.get(0))).transpose()?;
            return Ok(Some(Reserved::Collision { owner }));
        }
    };
    if let Reserved::Ark { ark, .. } = &reserved {
        for id in &ids {
            let sql = "INSERT INTO local_ids (owner, local_id, ark, job) VALUES ($1, $2, $3, $4)
                ON CONFLICT DO NOTHING";
            let written = session.run(sql, values![&request.owner, id, ark, request.job]).await?;
            if written == 0 && ark_of(session, &request.owner, id).await?.is_some_and(|other| other != *ark) {
                return Ok(None);
            }
        }
    }
    Ok(Some(reserved))
}

/// Takes the candidate; the answer is whether it was free.
async fn take(session: &mut Session, request: &Request) -> Result<bool, Error> {
    let sql = "INSERT INTO identifiers (ark, job, owner, reserved, registered)
        SELECT $1, $2, $3, {now}, CASE WHEN $4 THEN {now} END
        WHERE NOT EXISTS (SELECT 1 FROM objects WHERE ark = $1) ON CONFLICT DO NOTHING";
    let values = values![&request.candidate, request.job, &request.owner, request.is_registered];
    Ok(session.run(sql, values).await? > 0)
}

/// The ARK of a local id, if it has one.
async fn ark_of(session: &mut Session, owner: &str, id: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT ark FROM local_ids WHERE owner = $1 AND local_id = $2";
    let row = session.row(sql, values![owner, id]).await?;
    row.map(|row| session.decode(row.get(0))).transpose()
}

/// The ARK that those of the local ids have that are known.
async fn known_ark(session: &mut Session, owner: &str, ids: &[String]) -> Result<Option<String>, Error> {
    let mut known: Option<(&String, String)> = None;
    for id in ids {
        let Some(ark) = ark_of(session, owner, id).await? else { continue };
        match &known {
            Some((first, other)) if *other != ark => {
                let text = format!("local id {first:?} belongs to {other}, and local id {id:?} to {ark}");
                return Err(session.error(ErrorKind::Refused(text)));
            }
            _ => known = Some((id, ark)),
        }
    }
    Ok(known.map(|(_, ark)| ark))
}
