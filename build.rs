//! Passes the revision and the compiler to the crate, as `queuekeeper_build_info` and `--version` say it, and
//! what is in `dashboards/`, which the binary carries with it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use vergen_gitcl::{Emitter, Gitcl, Rustc};

/// Folders of `dashboards/` that only we need: what the files are made by, and what they are tested with.
const OURS: [&str; 2] = ["generate", "tests"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Outside a git checkout (a source archive) the emitter falls back to a placeholder instead of failing the build.
    Emitter::default()
        .add_instructions(&Gitcl::builder().sha(true).commit_date(true).build())?
        .add_instructions(&Rustc::builder().semver(true).build())?
        .emit()?;
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=dashboards");
    let mut files = Vec::new();
    collect(Path::new("dashboards"), &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let file = file.to_str().ok_or("a name in dashboards/ is not UTF-8")?;
        let name = file.trim_start_matches("dashboards/");
        writeln!(table, "({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {file:?}))),")?;
    }
    table.push(']');
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("dashboards.rs"), table)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !OURS.contains(&name.as_str()) {
                collect(&path, files)?;
            }
        } else if !name.starts_with('.') {
            files.push(path);
        }
    }
    Ok(())
}
