//! The users under whose names the mill acts.

/// The user under whose name the mill changes content, and brings policies into force. No person is called so: a login
/// has no colon (RFC 7617), and the command line adds the name of its host.
pub const MILL: &str = "queuekeeper:mill";

/// The user under whose name checks of content say what they observed.
pub const CHECK: &str = "queuekeeper:check";
