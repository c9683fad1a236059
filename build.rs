//! Tells the crate which revision and compiler it was built from; `queuekeeper_build_info` and `--version` say it.

use vergen_gitcl::{Emitter, Gitcl, Rustc};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Outside a git checkout (a source archive) the emitter falls back to a placeholder instead of failing the build.
    Emitter::default()
        .add_instructions(&Gitcl::builder().sha(true).build())?
        .add_instructions(&Rustc::builder().semver(true).build())?
        .emit()?;
    Ok(())
}
