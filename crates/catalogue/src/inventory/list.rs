//! The inventory as lists.

use uuid::Uuid;

use super::{File, Object, Version};
use crate::catalogue::{Catalogue, page};
use crate::database::value::{DatabaseRow, Value, values};
use crate::error::Error;

/// The columns that [`object`] reads.
macro_rules! object_columns {
    () => {
        "objects.ark, objects.owner, objects.collection, title, creator, date_said, created, modified, current_version"
    };
}

const OBJECT: &str = concat!("SELECT ", object_columns!(), " FROM objects WHERE ark = $1");

const BY_LOCAL_ID: &str = concat!(
    "SELECT ",
    object_columns!(),
    " FROM local_ids JOIN objects ON objects.ark = local_ids.ark WHERE local_ids.owner = $1 AND local_id = $2"
);

pub(crate) const OBJECTS: &str =
    concat!("SELECT ", object_columns!(), " FROM objects WHERE ark > $1 ORDER BY ark LIMIT $2");

pub(crate) const OBJECTS_OF_COLLECTION: &str =
    concat!("SELECT ", object_columns!(), " FROM objects WHERE collection = $1 AND ark > $2 ORDER BY ark LIMIT $3");

/// A title as the indexes by title have it: its first 200 characters, without the case of ASCII letters.
macro_rules! title_key {
    () => {
        "lower(substr(title, 1, 200))"
    };
}

/// How many characters of a title the indexes have.
const TITLE_CHARS: usize = 200;

/// Objects by title: those of one, and those of others. Each goes by one range of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByTitle {
    /// Those with this title, of those above an ARK.
    pub(crate) same: &'static str,
    /// Those with titles behind one and before another.
    pub(crate) behind: &'static str,
}

/// The lists by title, of what a condition leaves.
macro_rules! by_title {
    ($condition:literal) => {
        ByTitle {
            same: concat!(
                "SELECT ",
                object_columns!(),
                " FROM objects WHERE ",
                $condition,
                title_key!(),
                " = $1 AND ark > $2 ORDER BY ark LIMIT $3"
            ),
            behind: concat!(
                "SELECT ",
                object_columns!(),
                " FROM objects WHERE ",
                $condition,
                title_key!(),
                " > $1 AND ",
                title_key!(),
                " < $2 ORDER BY ",
                title_key!(),
                ", ark LIMIT $3"
            ),
        }
    };
}

pub(crate) const BY_TITLE: ByTitle = by_title!("");

pub(crate) const BY_TITLE_OF_COLLECTION: ByTitle = by_title!("collection = $4 AND ");

pub(crate) const VERSIONS: &str = "SELECT number, job, batch, submitter, message, file_count, byte_count, ingested
    FROM versions WHERE object = (SELECT id FROM objects WHERE ark = $1) AND number < $2
    ORDER BY number DESC LIMIT $3";

pub(crate) const FILES: &str = "SELECT path, content_path, size, digests, media_type, is_billable
    FROM files WHERE version = (SELECT id FROM versions
        WHERE object = (SELECT id FROM objects WHERE ark = $1) AND number = $2) AND path > $3
    ORDER BY path LIMIT $4";

pub(crate) const FILE: &str = "SELECT path, content_path, size, digests, media_type, is_billable
    FROM files WHERE version = (SELECT id FROM versions
        WHERE object = (SELECT id FROM objects WHERE ark = $1) AND number = $2) AND path = $3";

pub(crate) const VERSION_OF_JOB: &str =
    "SELECT objects.ark, number FROM versions JOIN objects ON objects.id = versions.object WHERE job = $1";

pub(crate) const LOCAL_IDS: &str =
    "SELECT local_id FROM local_ids WHERE ark = $1 AND owner = $2 AND local_id > $3 ORDER BY local_id LIMIT $4";

impl Catalogue {
    /// An object by its ARK.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn object(&self, ark: &str) -> Result<Option<Object>, Error> {
        Ok(self.list(OBJECT, values![ark], object).await?.pop())
    }

    /// An object by an id that its owner gave it.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn object_by_local_id(&self, owner: &str, local_id: &str) -> Result<Option<Object>, Error> {
        Ok(self.list(BY_LOCAL_ID, values![owner, local_id], object).await?.pop())
    }

    /// Objects, of one collection or of all, in the byte order of their ARKs, of those above `after` (all, where it is
    /// empty); at most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn objects(&self, collection: Option<&str>, after: &str, limit: u32) -> Result<Vec<Object>, Error> {
        match collection {
            None => self.list(OBJECTS, values![after, page(limit)], object).await,
            Some(name) => self.list(OBJECTS_OF_COLLECTION, values![name, after, page(limit)], object).await,
        }
    }

    /// Objects whose titles begin with a text, whatever the case of ASCII letters, of one collection or of all, in the
    /// byte order of their titles and ARKs, of those behind the object with the ARK `after` (all, where it is empty);
    /// at most `limit`, and at most 1,000. The first 200 characters of a title count.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn objects_by_title(
        &self,
        collection: Option<&str>,
        beginning: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<Object>, Error> {
        let beginning = title_key(beginning);
        // No title that is recorded has one, and PostgreSQL takes none.
        if beginning.contains('\0') {
            return Ok(Vec::new());
        }
        let last = if after.is_empty() { None } else { self.object(after).await? };
        let last = last.and_then(|object| object.title).map(|title| title_key(&title));
        let key = last.filter(|key| key.starts_with(&beginning)).unwrap_or_else(|| beginning.clone());
        // Behind all that begin with it.
        let end = format!("{beginning}{}", char::MAX);
        let (by_title, limit) = (collection.map_or(BY_TITLE, |_| BY_TITLE_OF_COLLECTION), page(limit));
        let mut same = values![&*key, after, limit];
        same.extend(collection.map(Value::from));
        let mut found = self.list(by_title.same, same, object).await?;
        let rest = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if rest > 0 {
            let mut behind = values![&*key, &*end, rest];
            behind.extend(collection.map(Value::from));
            found.extend(self.list(by_title.behind, behind, object).await?);
        }
        Ok(found)
    }

    /// The versions of an object, the newest first, of those with a number below `before` (all, without it); at most
    /// `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn versions(&self, ark: &str, before: Option<u32>, limit: u32) -> Result<Vec<Version>, Error> {
        let before = before.map_or(i64::MAX, i64::from);
        self.list(VERSIONS, values![ark, before, page(limit)], version).await
    }

    /// The object of which a job made a version, by its ARK, and the number of that version.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn version_of_job(&self, job: Uuid) -> Result<Option<(String, u32)>, Error> {
        let made = |row: &DatabaseRow| Ok((row.get(0)?, row.need(1, |number: i64| u32::try_from(number))?));
        Ok(self.list(VERSION_OF_JOB, values![job], made).await?.pop())
    }

    /// The files of a version in the byte order of their paths, of those above `after` (all, where it is empty); at
    /// most `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn files(&self, ark: &str, version: u32, after: &str, limit: u32) -> Result<Vec<File>, Error> {
        self.list(FILES, values![ark, version, after, page(limit)], file).await
    }

    /// A file of a version, by its path.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn file(&self, ark: &str, version: u32, path: &str) -> Result<Option<File>, Error> {
        // No path that is recorded has one, and PostgreSQL takes none.
        if path.contains('\0') {
            return Ok(None);
        }
        Ok(self.list(FILE, values![ark, version, path], file).await?.pop())
    }

    /// The ids that an owner gave an object, in byte order, of those above `after` (all, where it is empty); at most
    /// `limit`, and at most 1,000.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn local_ids(&self, owner: &str, ark: &str, after: &str, limit: u32) -> Result<Vec<String>, Error> {
        self.list(LOCAL_IDS, values![ark, owner, after, page(limit)], |row| row.get(0)).await
    }
}

/// A title as the indexes have it.
fn title_key(title: &str) -> String {
    title.chars().take(TITLE_CHARS).collect::<String>().to_ascii_lowercase()
}

fn object(row: &DatabaseRow) -> Result<Object, sqlx::Error> {
    Ok(Object {
        ark: row.get(0)?,
        owner: row.get(1)?,
        collection: row.get(2)?,
        title: row.get(3)?,
        creator: row.get(4)?,
        date: row.get(5)?,
        created: row.time(6)?,
        modified: row.time(7)?,
        current_version: row.need(8, |number: i64| u32::try_from(number))?,
    })
}

fn version(row: &DatabaseRow) -> Result<Version, sqlx::Error> {
    Ok(Version {
        number: row.need(0, |number: i64| u32::try_from(number))?,
        job: row.get(1)?,
        batch: row.get(2)?,
        submitter: row.get(3)?,
        message: row.get(4)?,
        file_count: row.count(5)?,
        byte_count: row.count(6)?,
        ingested: row.time(7)?,
    })
}

pub(super) fn file(row: &DatabaseRow) -> Result<File, sqlx::Error> {
    Ok(File {
        path: row.get(0)?,
        content_path: row.get(1)?,
        size: row.count(2)?,
        digests: row.digests(3)?,
        media_type: row.get(4)?,
        is_billable: row.get(5)?,
    })
}
