//! The exposition, read by others than ourselves.

#[path = "support"]
mod support {
    pub(crate) mod figures;
    pub(crate) mod readers;
}

#[path = "metrics"]
mod metrics {
    mod exposition;
}
