//! Trees that are missing, empty, half there, or closed to us.
