//! The command line; everything else is in the library.

use std::process::ExitCode;

// A walk fills a second image beside the first, and gives one of them back in small pieces: with the system's allocator
// up to a quarter of that stays with the process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    queuekeeper::cli::run()
}
