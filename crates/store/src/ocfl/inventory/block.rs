//! Reading the blocks of an inventory that have one form: digests, each with the paths that have it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Takes the entries of a block as they are read, or says what is wrong with one.
pub(super) trait Block {
    /// The digest of the entries that follow.
    fn digest(&mut self, digest: &str) -> Result<(), String>;
    /// A path that has it.
    fn path(&mut self, path: &str) -> Result<(), String>;
}

/// Reads a block into what takes its entries.
pub(super) struct BlockSeed<'a, B>(pub(super) &'a mut B);

impl<'de, B: Block> DeserializeSeed<'de> for BlockSeed<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, B: Block> Visitor<'de> for BlockSeed<'_, B> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object of digests, each with an array of paths")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let block = self.0;
        while map.next_key_seed(Text(|digest: &str| block.digest(digest)))?.is_some() {
            map.next_value_seed(Paths(block))?;
        }
        Ok(())
    }
}

struct Paths<'a, B>(&'a mut B);

impl<'de, B: Block> DeserializeSeed<'de> for Paths<'_, B> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de, B: Block> Visitor<'de> for Paths<'_, B> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an array of paths")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut paths: A) -> Result<(), A::Error> {
        let block = self.0;
        while paths.next_element_seed(Text(|path: &str| block.path(path)))?.is_some() {}
        Ok(())
    }
}

/// Reads a string without keeping it.
pub(super) struct Text<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> Result<T, String>> DeserializeSeed<'de> for Text<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// Reads an object with fixed keys. One that comes twice, is unknown, or is required and missing, is refused.
pub(super) struct ObjectSeed<F> {
    /// What it is, for errors.
    pub(super) what: &'static str,
    /// The keys that it may have.
    pub(super) keys: &'static [&'static str],
    /// How many of them, the first ones, it must have.
    pub(super) required: usize,
    /// Takes the values, by the place of their key in `keys`.
    pub(super) take: F,
}

/// Takes the value of a key out of the object that is read.
pub(super) trait TakeValue {
    /// Reads the value that follows the key with this place in the list.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: usize, map: &mut A) -> Result<(), A::Error>;
}

impl<'de, F: TakeValue> DeserializeSeed<'de> for ObjectSeed<F> {
    type Value = F;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<F, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, F: TakeValue> Visitor<'de> for ObjectSeed<F> {
    type Value = F;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.what)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<F, A::Error> {
        let mut seen = 0_u32;
        let keys = self.keys;
        let place = |text: &str| {
            let place = keys.iter().position(|key| *key == text);
            place.ok_or_else(|| format!("unknown key {:?}", text.chars().take(50).collect::<String>()))
        };
        while let Some(key) = map.next_key_seed(Text(place))? {
            if seen & (1 << key) != 0 {
                return Err(A::Error::custom(format!("key {:?} comes twice", keys[key])));
            }
            seen |= 1 << key;
            self.take.take(key, &mut map)?;
        }
        match keys[..self.required].iter().enumerate().find(|(place, _)| seen & (1 << place) == 0) {
            None => Ok(self.take),
            Some((_, key)) => Err(A::Error::custom(format!("{} has no {key:?}", self.what))),
        }
    }
}
