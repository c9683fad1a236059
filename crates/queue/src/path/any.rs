//! The path of any znode below the chroot, whether the queue knows it or not.

use std::fmt;

use super::{LockFolder, Path};

/// The path of any znode below the chroot: one that ZooKeeper takes, relative to the chroot.
///
/// [`Path`] names what the queue consists of; this is for looking at the tree as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePath(Box<str>);

/// A text that is not a znode path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// It does not begin with a slash.
    #[error("a path begins with a slash")]
    Relative,
    /// It has an empty part, or one that is `.` or `..`.
    #[error("a path has no empty part and none that is \".\" or \"..\"")]
    Part,
    /// It has a character that ZooKeeper does not take.
    #[error("a path has no control characters and none from the private or special Unicode ranges, or beyond U+FFEF")]
    Character,
    /// It is longer than any request may be.
    #[error("a path is at most {} bytes long", NodePath::LONGEST)]
    Long,
}

impl NodePath {
    /// The longest path that can be requested, in bytes: far below the 1 MiB at which the server resets the connection.
    pub const LONGEST: usize = 64 << 10;

    /// The chroot itself.
    #[must_use]
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Reads a path.
    ///
    /// # Errors
    /// When ZooKeeper would refuse it.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let Some(rest) = text.strip_prefix('/') else { return Err(InvalidPath::Relative) };
        if text.len() > Self::LONGEST {
            return Err(InvalidPath::Long);
        }
        if !rest.is_empty() && rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(InvalidPath::Part);
        }
        // As `PathUtils.validatePath` of ZooKeeper has it, which looks at UTF-16: of two halves it takes neither.
        let is_refused = |character: char| matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..);
        if text.contains(is_refused) { Err(InvalidPath::Character) } else { Ok(Self(text.into())) }
    }

    /// The path as ZooKeeper takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names from the root down to it; none for the root itself.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The path of a child, by a name that ZooKeeper gave.
    ///
    /// # Errors
    /// When no child can have that name.
    pub fn child(&self, name: &str) -> Result<Self, InvalidPath> {
        if name.contains('/') {
            return Err(InvalidPath::Part);
        }
        Self::parse(&format!("{}/{name}", self.0.trim_end_matches('/')))
    }

    /// What the queue knows it as.
    #[must_use]
    pub fn known(&self) -> Path {
        Path::parse(&self.0)
    }
}

impl From<&Path> for NodePath {
    fn from(path: &Path) -> Self {
        Self(path.to_string().into())
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Path {
    /// Whether ZooKeeper takes it and it reads back as itself: its names may come from values that any client wrote.
    pub(crate) fn is_nameable(&self) -> bool {
        let text = self.to_string();
        NodePath::parse(&text).is_ok() && Self::parse(&text) == *self
    }

    /// The hold on a collection, by its mnemonic; `None` for one that no znode can be named by.
    #[must_use]
    pub fn hold(mnemonic: &str) -> Option<Self> {
        Some(Self::NamedLock(LockFolder::Collections, mnemonic.into())).filter(Self::is_nameable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_zookeeper_takes_is_a_path() {
        for (text, error) in [
            ("", InvalidPath::Relative),
            ("jobs", InvalidPath::Relative),
            ("//", InvalidPath::Part),
            ("/jobs/", InvalidPath::Part),
            ("/jobs/../locks", InvalidPath::Part),
            ("/./jobs", InvalidPath::Part),
            ("/a\nb", InvalidPath::Character),
            ("/\u{f8ff}", InvalidPath::Character),
            ("/\u{1f980}", InvalidPath::Character),
        ] {
            assert_eq!(NodePath::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(NodePath::parse(&format!("/{}", "x".repeat(NodePath::LONGEST))), Err(InvalidPath::Long));
        for text in ["/", "/jobs", "/zookeeper/quota", "/locks/storage/ark_99999_fk4", "/a b/<c>/…/.../%2e"] {
            let path = NodePath::parse(text).unwrap();
            let again = path.names().try_fold(NodePath::root(), |at, name| at.child(name));
            assert_eq!(again, Ok(path));
        }
        assert_eq!(NodePath::root().child("a/b"), Err(InvalidPath::Part));
        let longest = format!("/{}", "x".repeat(NodePath::LONGEST - 1));
        assert_eq!(NodePath::parse(&longest).map(|path| path.as_str().len()), Ok(65_536));
    }

    #[test]
    fn a_path_of_the_queue_is_the_path_of_a_znode() {
        for text in ["/", "/jobs/jid0000000042/status", "/odd"] {
            let (path, node) = (Path::parse(text), NodePath::parse(text).unwrap());
            assert_eq!((NodePath::from(&path), node.known()), (node.clone(), path));
            assert_eq!([node.as_str(), &node.to_string()], [text; 2]);
        }
    }

    #[test]
    fn a_hold_has_a_name_that_a_znode_can_have_and_that_is_no_path() {
        assert_eq!(Path::hold("ucb_demo"), Some(Path::parse("/locks/collections/ucb_demo")));
        for mnemonic in ["", ".", "..", "a/b", "a\nb"] {
            assert_eq!(Path::hold(mnemonic), None, "{mnemonic:?}");
        }
    }
}
