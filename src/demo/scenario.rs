//! What depositors submit, one submission after the other, all following from the seed.

use std::collections::HashMap;
use std::net::SocketAddr;

use queuekeeper_ingest::deposit::NewDeposit;
use queuekeeper_ingest::kind::DepositType;
use queuekeeper_ingest::manifest::{ManifestProfile, ManifestRow, WriteError, Writer};
use queuekeeper_ingest::url::ContentUrl;
use uuid::Uuid;

use super::collections::{COLLECTIONS, Collection, FILMS, Form, HELD_IN_TURN, find};
use super::content::DemoObject;
use super::dice::Dice;

/// A submission as its depositor makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Submission {
    /// The UUID of its batch.
    pub(super) uuid: Uuid,
    /// Its name at the depositor's server.
    pub(super) name: String,
    /// Its collection's mnemonic.
    pub(super) collection: &'static str,
    pub(super) title: String,
    pub(super) submitter: &'static str,
    pub(super) creator: &'static str,
    /// Whether its objects are newer versions of earlier ones.
    pub(super) is_update: bool,
    /// The objects of its manifest.
    pub(super) objects: Vec<Object>,
}

/// An object of a submission, which becomes a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) file_name: String,
    pub(super) title: String,
    /// The depositor's name for it.
    pub(super) local_id: String,
}

/// The kind of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubmissionKind {
    /// From any depositor.
    Ordinary {
        /// The maximum number of objects.
        most: usize,
    },
    /// For one of the collections that an operator holds in turn.
    OfHeld {
        /// Its index, from 0.
        turn: usize,
        /// The maximum number of objects.
        most: usize,
    },
    /// A few urgent objects, which are so large that they fill working storage.
    Large {
        /// How many.
        objects: usize,
    },
}

/// How many objects fill it: two waves of them.
pub(super) const LARGE_OBJECTS: usize = 10;

/// The submissions of a demo, one after the other.
#[derive(Debug)]
pub(super) struct Scenario {
    dice: Dice,
    /// The local ids of the last submission of each collection, by its mnemonic.
    last: HashMap<&'static str, Vec<String>>,
}

impl Scenario {
    /// The submissions for a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed, "submissions"), last: HashMap::new() }
    }

    /// The next submission.
    pub(super) fn next(&mut self, kind: SubmissionKind) -> Submission {
        let dice = &mut self.dice;
        let weights: Vec<(u32, &Collection)> = COLLECTIONS.iter().map(|each| (each.weight, each)).collect();
        let (collection, count) = match kind {
            SubmissionKind::Ordinary { most } => (dice.weighted(&weights), batch_size(dice, most)),
            SubmissionKind::OfHeld { turn, most } => {
                let held = find(HELD_IN_TURN[turn % HELD_IN_TURN.len()]);
                (held.expect("the collections held in turn are collections"), batch_size(dice, most.min(12)))
            }
            SubmissionKind::Large { objects } => (&FILMS, objects),
        };
        let number = dice.between(1_000, 999_000);
        let title = dice.pick(collection.titles);
        let mut objects: Vec<Object> = (0..count).map(|index| object(dice, collection, number, index)).collect();
        let known = self.last.get(collection.mnemonic).filter(|_| dice.happens(0.15));
        let is_update = known.is_some();
        if let Some(known) = known {
            objects.truncate(known.len());
            for (object, local_id) in objects.iter_mut().zip(known) {
                object.local_id.clone_from(local_id);
            }
        }
        self.last.insert(collection.mnemonic, objects.iter().map(|object| object.local_id.clone()).collect());
        let batch_title = if objects.len() == 1 {
            objects[0].title.clone()
        } else {
            format!("{title} {number} and {} more", objects.len() - 1)
        };
        Submission {
            uuid: dice.uuid(),
            name: format!("{}_{number}", collection.prefix),
            collection: collection.mnemonic,
            title: batch_title,
            submitter: dice.pick::<&'static str>(collection.submitters),
            creator: dice.pick::<&'static str>(collection.creators),
            is_update,
            objects,
        }
    }
}

/// The number of objects of a batch: most have few, and few have very many.
fn batch_size(dice: &mut Dice, most: usize) -> usize {
    let (from, to) = dice.weighted(&[(40, (1, 3)), (38, (4, 30)), (18, (31, 120)), (4, (121, 400))]);
    usize::try_from(dice.between(from, to)).unwrap_or(most).clamp(1, most.max(1))
}

fn object(dice: &mut Dice, collection: &Collection, batch: u64, index: usize) -> Object {
    let name = format!("{}_{batch}_{:04}", collection.prefix, index + 1);
    Object {
        file_name: format!("{name}.{}", collection.ending),
        title: format!("{} {batch}-{}", dice.pick(collection.titles), index + 1),
        local_id: name.replace('_', "-"),
    }
}

impl Submission {
    /// Its collection.
    pub(super) fn of(&self) -> &'static Collection {
        find(self.collection).expect("a submission is made for a collection")
    }

    fn place<'a>(&'a self, seed: u64, object: &'a Object) -> DemoObject<'a> {
        DemoObject { seed, collection: self.of(), submission: &self.name, object: &object.file_name }
    }

    /// The URL of one of its objects, or of the manifest of it, at the depositor's server.
    pub(super) fn url(&self, origin: SocketAddr, object: &Object) -> ContentUrl {
        // The path does not depend on the seed.
        url(origin, &self.place(0, object).path())
    }

    /// What its manifest is.
    pub(super) fn kind(&self) -> DepositType {
        match self.of().form {
            Form::File => DepositType::SingleFileBatchManifest,
            Form::Container => DepositType::ContainerBatchManifest,
            Form::Manifest => DepositType::BatchManifest,
        }
    }

    /// The deposit, and where its manifest is.
    pub(super) fn deposit(&self, origin: SocketAddr) -> (NewDeposit, ContentUrl) {
        let file_name = self.manifest_name();
        let address = url(origin, &format!("/{file_name}"));
        let deposit = NewDeposit {
            profile: self.collection.to_owned(),
            kind: Some(self.kind()),
            file_name,
            submitter: self.submitter.to_owned(),
            title: Some(self.title.clone()),
            creator: Some(self.creator.to_owned()),
            is_update: self.is_update,
            ..NewDeposit::default()
        };
        (deposit, address)
    }

    /// The name of its manifest.
    pub(super) fn manifest_name(&self) -> String {
        format!("{}.checkm", self.name)
    }

    /// Its manifest, a row an object.
    ///
    /// # Errors
    /// When a row cannot be written.
    pub(super) fn manifest(&self, seed: u64, origin: SocketAddr) -> Result<Vec<u8>, WriteError> {
        let profile = self.kind().manifest().expect("it is a manifest");
        let mut writer = Writer::new(Vec::new(), profile)?;
        for object in &self.objects {
            let place = self.place(seed, object);
            // Who packs a container does not say how large it is, nor does who writes a manifest.
            let file = place.files().pop().filter(|_| self.of().form == Form::File);
            let (size, digest) = file.map(|(_, content)| (content.size, content.digest())).unzip();
            let row = ManifestRow {
                url: Some(url(origin, &place.path())),
                size,
                digest: digest.flatten(),
                name: object.file_name.clone(),
                local_ids: vec![object.local_id.clone()],
                creator: Some(self.creator.to_owned()),
                title: Some(object.title.clone()),
                ..ManifestRow::default()
            };
            writer.write(&row)?;
        }
        Ok(writer.finish()?)
    }
}

/// The manifest of one object's files, at `place`.
///
/// # Errors
/// When a row cannot be written.
pub(super) fn object_manifest(place: DemoObject<'_>, origin: SocketAddr) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer::new(Vec::new(), ManifestProfile::Ingest)?;
    for (name, content) in place.files() {
        let row = ManifestRow {
            url: Some(url(origin, &format!("{}/{name}", place.path()))),
            size: Some(content.size),
            digest: content.digest(),
            name,
            ..ManifestRow::default()
        };
        writer.write(&row)?;
    }
    Ok(writer.finish()?)
}

fn url(origin: SocketAddr, path: &str) -> ContentUrl {
    format!("http://{origin}{path}").parse().expect("names of the demo are letters, digits, dots and dashes")
}

#[cfg(test)]
mod tests {
    use queuekeeper_ingest::manifest::{Limits, Reader};

    use super::*;

    const KINDS: [SubmissionKind; 3] = [
        SubmissionKind::Ordinary { most: 300 },
        SubmissionKind::Large { objects: 3 },
        SubmissionKind::OfHeld { turn: 1, most: 300 },
    ];

    fn draw(seed: u64) -> Vec<Submission> {
        let mut scenario = Scenario::new(seed);
        (0..60).map(|index| scenario.next(KINDS[index % KINDS.len()])).collect()
    }

    fn origin() -> SocketAddr {
        "127.0.0.1:8080".parse().unwrap()
    }

    #[test]
    fn the_same_seed_submits_the_same_and_another_seed_something_else() {
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let bytes = |seed| draw(seed)[0].manifest(seed, origin()).unwrap();
        assert_eq!(bytes(7), bytes(7));
    }

    #[test]
    fn a_manifest_is_read_as_it_is_meant() {
        let submissions = draw(1);
        assert!(submissions.iter().any(|submission| submission.is_update));
        for submission in submissions.iter().step_by(7) {
            let bytes = submission.manifest(1, origin()).unwrap();
            let (deposit, address) = submission.deposit(origin());
            assert!(address.to_string().ends_with(&deposit.file_name));
            let form = deposit.kind.unwrap().manifest();
            let mut reader = Reader::new(bytes.as_slice(), Limits::default(), form);
            let rows: Vec<ManifestRow> = reader.by_ref().map(|(_, row)| row).collect();
            reader.finish().unwrap();
            assert_eq!(rows.len(), submission.objects.len());
            for (row, object) in rows.iter().zip(&submission.objects) {
                assert_eq!(row.local_ids, [object.local_id.as_str()]);
                assert_eq!(row.url, Some(submission.url(origin(), object)));
                assert_eq!(row.size.is_some(), submission.of().form == Form::File);
            }
        }
    }

    #[test]
    fn batches_have_mixed_sizes() {
        let sizes: Vec<usize> = draw(2).iter().step_by(3).map(|each| each.objects.len()).collect();
        assert!(sizes.iter().any(|size| *size <= 3) && sizes.iter().any(|size| *size > 30), "{sizes:?}");
    }
}
