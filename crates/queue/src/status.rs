//! The status of a batch or an access request, as it was read.

/// Implements the accessors of an item's status, for a type with the field `status: Option<(Vec<u8>, Stat)>`.
macro_rules! impl_status {
    ($item:ident, $state:ident) => {
        impl $item {
            /// Its decoded status.
            #[must_use]
            pub fn status(&self) -> Decoded<ItemStatus<'_, $state>> {
                ItemStatus::decode(self.status.as_ref().map(|(data, _)| data.as_slice()).unwrap_or_default())
            }

            /// The state that its status names, in any spelling; `None` for one that we do not know, or none.
            #[must_use]
            pub fn state(&self) -> Option<$state> {
                self.status().value.status.state
            }

            /// The data of its status as it stands, with its stat; `None` where it has none.
            pub(super) fn status_found(&self) -> Option<&(Vec<u8>, Stat)> {
                self.status.as_ref()
            }

            /// The version of its status; `None` where it has none.
            #[must_use]
            pub fn version(&self) -> Option<i32> {
                self.status.as_ref().map(|(_, stat)| stat.version)
            }

            /// When it entered its state, by the server's clock; `None` where it has no status.
            #[must_use]
            pub fn entered(&self) -> Option<Timestamp> {
                self.status.as_ref().map(|(_, stat)| instant(stat.mtime))
            }
        }
    };
}

pub(crate) use impl_status;
