//! What daemons of ours say in the status of a job whose deposit itself is wrong.

/// How the message ends of a job whose deposit holds no file.
pub const NOTHING_TO_STORE: &str = "holds no file, so there is nothing to store";

/// The file that says until when an object is not to be given out; the message about one that cannot be read begins
/// with it.
pub const EMBARGO: &str = "mrt-embargo.txt";

/// What the message begins with about an entry that an archive must not have; with the reading or writing of one as
/// well.
pub const ENTRY: &str = "cannot unpack entry";

/// How such a message goes on where the archive may be right, or came broken.
const OF_TRANSFER: [&str; 4] =
    [": cannot read the archive: ", ": cannot write: ", ": the archive was cut off", ": the archive is damaged: "];

/// Whether a message names what is wrong with the deposit itself, so that its job fails again however often it is
/// resumed. Of other messages that is not known.
#[must_use]
pub fn fails_again(message: &str) -> bool {
    let is_of_entry = message.starts_with(ENTRY) && !OF_TRANSFER.iter().any(|why| message.contains(why));
    message.ends_with(NOTHING_TO_STORE) || message.starts_with(EMBARGO) || is_of_entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_about_the_deposit_itself_shows_that_a_job_fails_again() {
        for message in [
            format!("the archive a.zip {NOTHING_TO_STORE}"),
            format!("{EMBARGO} has no date"),
            format!("{ENTRY} ../a: it leads out of the object"),
        ] {
            assert!(fails_again(&message), "{message}");
        }
        let of_transfer = OF_TRANSFER.map(|why| format!("{ENTRY} a{why}: connection reset"));
        let others = [
            "the connection was reset".to_owned(),
            format!("it {NOTHING_TO_STORE} yet"),
            format!("cannot store {EMBARGO}"),
            format!("tried again: {ENTRY} a: it leads out of the object"),
        ];
        for message in of_transfer.iter().chain(&others) {
            assert!(!fails_again(message), "{message}");
        }
    }
}
