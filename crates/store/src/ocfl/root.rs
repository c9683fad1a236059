//! A storage root: a space that holds objects.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use crate::error::ErrorKind;
use crate::key::Key;
use crate::name::SpaceName;
use crate::ocfl::error::OcflError;
use crate::ocfl::layout::{self, CONFIG_KEY, EXTENSION};
use crate::ocfl::object::{Object, read_small};
use crate::store::{Condition, Item, Put, Store};

mod objects;

pub use objects::Found;

const DECLARATION_KEY: &str = "0=ocfl_1.1";
const DECLARATION: &str = "ocfl_1.1\n";
const LAYOUT_KEY: &str = "ocfl_layout.json";
const LAYOUT: &str = r#"{
  "extension": "0003-hash-and-id-n-tuple-storage-layout",
  "description": "SHA-256 of the identifier in three tuples of three digits, then the percent-encoded identifier"
}
"#;
const CONFIG: &str = r#"{
  "extensionName": "0003-hash-and-id-n-tuple-storage-layout",
  "digestAlgorithm": "sha256",
  "tupleSize": 3,
  "numberOfTuples": 3
}
"#;

/// The largest of these files that is read, in bytes.
const MOST_BYTES: u64 = 64 << 10;

/// A storage root of OCFL 1.1 with the layout of extension 0003: a space of a store that holds conditions.
#[derive(Clone)]
pub struct Root {
    store: Arc<dyn Store>,
    space: SpaceName,
    /// Where temporary files are.
    directory: Arc<Path>,
}

impl fmt::Debug for Root {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Root({}/{})", self.store.name(), self.space)
    }
}

impl Root {
    /// Opens the storage root that a space is, and makes it one where the space is empty or missing. A space that
    /// becomes one is probed before: without conditions, two writers would overwrite each other.
    ///
    /// # Errors
    /// [`OcflError::Root`] when the space holds something else, another version of OCFL, or another layout; or when the
    /// store does not hold conditions.
    pub async fn open(store: Arc<dyn Store>, space: SpaceName) -> Result<Self, OcflError> {
        let root = Self { store, space, directory: std::env::temp_dir().into() };
        root.store.create_space(&root.space).await?;
        match root.read(DECLARATION_KEY).await? {
            Some(text) if text == DECLARATION => root.check_layout().await?,
            Some(_) => return Err(root.wrong(format!("{DECLARATION_KEY} does not hold {DECLARATION:?}"))),
            None => root.declare().await?,
        }
        Ok(root)
    }

    /// Opens the storage root that a space is; `None` for a space that is empty or missing, which [`Self::open`] would
    /// make one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_existing(store: Arc<dyn Store>, space: SpaceName) -> Result<Option<Self>, OcflError> {
        let first = store.list(&space, b"", None).next().await.transpose();
        match first {
            Ok(None) => Ok(None),
            Err(error) if matches!(error.kind, ErrorKind::NoSpace) => Ok(None),
            Ok(Some(_)) => Self::open(store, space).await.map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder in which an object lies in every root, without a slash at its end.
    ///
    /// # Errors
    /// [`OcflError::Id`] when no object can have the identifier.
    pub fn folder_of(id: &str) -> Result<String, OcflError> {
        layout::object_root(id)
    }

    /// The same root by another face of its store, such as one that notes what is changed.
    #[must_use]
    pub fn in_store(self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self }
    }

    /// The items that make its space a root.
    #[must_use]
    pub fn items(&self) -> [Item; 3] {
        [CONFIG_KEY, LAYOUT_KEY, DECLARATION_KEY].map(|key| self.item(key))
    }

    /// The object with an identifier, which need not exist.
    ///
    /// # Errors
    /// [`OcflError::Id`] when no object can have it.
    pub fn object(&self, id: &str) -> Result<Object, OcflError> {
        let root = layout::object_root(id)?;
        Ok(self.object_at(id.to_owned(), root))
    }

    fn object_at(&self, id: String, root: String) -> Object {
        Object::new(Arc::clone(&self.store), self.space.clone(), id, root, Arc::clone(&self.directory))
    }

    async fn check_layout(&self) -> Result<(), OcflError> {
        let json = |key: &str, text: Option<String>| {
            let text =
                text.ok_or_else(|| self.wrong(format!("it has no {key}, so where its objects lie is unknown")))?;
            serde_json::from_str(&text).map_err(|error| self.wrong(format!("{key}: {error}")))
        };
        let layout: serde_json::Value = json(LAYOUT_KEY, self.read(LAYOUT_KEY).await?)?;
        if layout["extension"] != EXTENSION {
            return Err(self.wrong(format!("its layout is {}, this program writes {EXTENSION:?}", layout["extension"])));
        }
        let Some(config) = self.read(CONFIG_KEY).await? else { return Ok(()) };
        let config: serde_json::Value = json(CONFIG_KEY, Some(config))?;
        let expected = [("digestAlgorithm", "sha256".into()), ("tupleSize", 3.into()), ("numberOfTuples", 3.into())];
        for (parameter, value) in expected {
            let value: serde_json::Value = value;
            let found = &config[parameter];
            if !found.is_null() && *found != value {
                return Err(
                    self.wrong(format!("the {parameter} of its layout is {found}, this program writes {value}"))
                );
            }
        }
        Ok(())
    }

    /// Makes a storage root of an empty space. The declaration comes last; a space with nothing but the files before it
    /// is one that was not finished.
    async fn declare(&self) -> Result<(), OcflError> {
        let mut items = self.store.list(&self.space, b"", None);
        while let Some(item) = items.next().await {
            let key = item?.key;
            if ![LAYOUT_KEY, CONFIG_KEY, DECLARATION_KEY].iter().any(|ours| key.as_bytes() == ours.as_bytes()) {
                // Another process made the root meanwhile, and objects in it.
                if self.read(DECLARATION_KEY).await?.is_some_and(|text| text == DECLARATION) {
                    return self.check_layout().await;
                }
                let why = format!("it has no {DECLARATION_KEY} but other items, such as {key}; name an empty space");
                return Err(self.wrong(why));
            }
        }
        let capabilities = self.store.probe().await?;
        if !(capabilities.if_absent && capabilities.if_match) {
            let why = "the store does not support conditional writes, so two writers would overwrite each other";
            return Err(self.wrong(why.to_owned()));
        }
        for (key, text) in [(CONFIG_KEY, CONFIG), (LAYOUT_KEY, LAYOUT), (DECLARATION_KEY, DECLARATION)] {
            let put = Put { size: Some(text.len() as u64), condition: Condition::IfAbsent, ..Put::default() };
            let chunks = futures::stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed();
            match self.store.put(&self.item(key), chunks, put).await {
                Ok(_) => {}
                // Another process makes the same root.
                Err(error) if matches!(error.kind, ErrorKind::Precondition) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.check_layout().await
    }

    fn item(&self, key: &str) -> Item {
        Item::new(self.space.clone(), key.parse::<Key>().expect("these keys are short"))
    }

    async fn read(&self, key: &str) -> Result<Option<String>, OcflError> {
        let found = read_small(&*self.store, &self.item(key), MOST_BYTES).await?;
        Ok(found.map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn wrong(&self, why: String) -> OcflError {
        OcflError::Root { space: format!("{}/{}", self.store.name(), self.space), why }
    }
}
