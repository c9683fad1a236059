//! What daemons of ours say in the status of a job whose deposit itself is wrong.

/// How the message ends of a job whose deposit holds no file.
pub const NOTHING_TO_STORE: &str = "holds no file, so there is nothing to store";

/// The file that says until when an object is not to be given out; the message about one that cannot be read begins with it.
pub const EMBARGO: &str = "mrt-embargo.txt";

/// Whether a message names what is wrong with the deposit itself, so that its job fails again however often it is resumed.
/// Of other messages that is not known.
#[must_use]
pub fn fails_again(message: &str) -> bool {
    message.ends_with(NOTHING_TO_STORE) || message.starts_with(EMBARGO)
}
