//! The command line; everything else is in the library.

use std::process::ExitCode;

// A walk fills a second image beside the first, and gives one of them back in small pieces, from another thread than
// the one that took them: jemalloc returns them to the system within seconds, by a thread of its own. The system's
// allocator keeps up to a quarter for good, mimalloc all of it until the taking thread comes by again.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    queuekeeper::cli::run()
}
