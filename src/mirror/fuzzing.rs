//! A mirror without a server, for the fuzzing, for the tests that repeat what it found, and for those that need many
//! trees: outside the crate no other code sees an image without one.

use std::time::Duration;

use jiff::Timestamp;
use zookeeper_client::Stat;

use super::image::Image;
use super::read::Found;
use super::store::{MirrorStore, Writer};
use queuekeeper_queue::path::Path;

/// When the first of the znodes was made, in milliseconds by the servers' clock: long enough ago for every fault.
const FIRST_MS: i64 = 1_700_000_000_000;

/// A znode as it stands in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Znode {
    /// Its path, relative to the chroot.
    pub path: String,
    /// Its value.
    pub data: Vec<u8>,
    /// Whether it is bound to a session.
    pub is_ephemeral: bool,
}

impl Znode {
    /// What reading it finds. The times follow from its place in the tree, so they are the same whichever way it is
    /// read.
    fn found(&self, at: usize) -> Found {
        let at = i64::try_from(at).unwrap_or_default();
        let ms = FIRST_MS + at * 1_000;
        let stat = Stat {
            czxid: at,
            mzxid: at,
            pzxid: at,
            ctime: ms,
            mtime: ms,
            version: 0,
            cversion: 0,
            aversion: 0,
            ephemeral_owner: if self.is_ephemeral { 0x1_0000 + at } else { 0 },
            data_length: i32::try_from(self.data.len()).unwrap_or(i32::MAX),
            num_children: 0,
        };
        Found::Node { data: self.data.clone(), stat }
    }
}

/// A mirror without a server.
#[derive(Debug, Default)]
pub struct Mirrored {
    writer: Writer,
}

impl Mirrored {
    /// A reader's handle to what it shows.
    #[must_use]
    pub fn store(&self) -> MirrorStore {
        self.writer.store()
    }

    /// Shows these znodes as a walk finds them, all at once.
    pub fn walk(&self, znodes: &[Znode]) {
        self.show(|image| {
            for (at, znode) in znodes.iter().enumerate() {
                image.apply(Path::parse(&znode.path), &znode.found(at));
            }
        });
    }

    /// Shows the same, but in the order of watch events, the last one first.
    pub fn hear(&self, znodes: &[Znode]) {
        self.start();
        let reads = znodes.iter().enumerate().rev().map(|(at, znode)| (Path::parse(&znode.path), znode.found(at)));
        self.writer.apply(reads.collect(), |_, _| {});
    }

    /// Shows an empty tree, for [`Mirrored::follow`].
    pub fn start(&self) {
        self.walk(&[Znode { path: "/".to_owned(), data: Vec::new(), is_ephemeral: false }]);
    }

    /// Shows what reads of single znodes found, as watch events lead to them: `None` where there is nothing.
    pub fn follow(&self, reads: impl IntoIterator<Item = (String, Option<(Vec<u8>, Stat)>)>) {
        let found = |node| match node {
            Some((data, stat)) => Found::Node { data, stat },
            None => Found::Nothing,
        };
        let reads = reads.into_iter().map(|(path, node)| (Path::parse(&path), found(node)));
        self.writer.apply(reads.collect(), |_, _| {});
    }

    /// Moves the bounds of the bands of ages to where they are at an instant, as the mirror does from time to time.
    pub fn set_marks(&self, now: Timestamp) {
        self.writer.set_marks(now);
    }

    /// Shows an image in the place of the one before, of which nothing is inherited.
    fn show(&self, fill: impl FnOnce(&mut Image)) {
        let now = Timestamp::now();
        let mut nothing = Image::default();
        nothing.finish();
        self.writer.swap(nothing, now);
        let mut image = Image::default();
        fill(&mut image);
        image.finish();
        self.writer.swap(image, now);
        self.writer.set_marks(now);
        self.writer.with_freshness(|freshness| {
            freshness.session = Some("fuzzing".to_owned());
            freshness.last_walk = Some(now);
            freshness.last_walk_duration = Some(Duration::ZERO);
        });
    }
}
