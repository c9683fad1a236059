//! The pages of the documentation. Tests take commands and configuration from them, so that page and test cannot
//! differ.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The root of the repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The pages outside of `docs/`.
const OUTSIDE: [&str; 5] = ["README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"];

/// A page, read when a test runs: an edited page does not have every test compiled again.
#[derive(Debug)]
pub struct Page {
    /// Its path from the root of the repository, such as `docs/mill.md`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A block of code.
#[derive(Debug)]
pub struct Block {
    /// The path of its page.
    pub page: &'static str,
    /// The heading of its part of the page; empty above the first one.
    pub part: &'static str,
    /// What its first line names, such as `sh`; empty where it names nothing.
    pub language: &'static str,
    /// Its lines.
    pub text: &'static str,
}

static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let entries = std::fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    let docs = names.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let docs = docs.map(|path| format!("docs/{}", path.file_name().unwrap().to_str().unwrap()));
    let mut paths: Vec<String> = OUTSIDE.map(str::to_owned).into_iter().chain(docs).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Page { text: std::fs::read_to_string(Path::new(ROOT).join(&path)).unwrap(), path })
        .collect()
});

static BLOCKS: LazyLock<Vec<Block>> = LazyLock::new(|| PAGES.iter().flat_map(blocks_of).collect());

/// All pages, by their paths.
#[must_use]
pub fn pages() -> &'static [Page] {
    &PAGES
}

/// All blocks of all pages.
#[must_use]
pub fn blocks() -> &'static [Block] {
    &BLOCKS
}

fn blocks_of(page: &'static Page) -> Vec<Block> {
    let (mut blocks, mut part) = (Vec::new(), "");
    // Where the block begins that no line has ended yet, and its language.
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in page.text.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let line = line.trim_end();
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(language), None) => open = Some((at, language)),
            (Some(_), Some((from, language))) => {
                blocks.push(Block { page: &page.path, part, language, text: &page.text[from..begin] });
                open = None;
            }
            (None, None) => part = line.strip_prefix("## ").unwrap_or(part),
            (None, Some(_)) => {}
        }
    }
    assert!(open.is_none(), "{}: the last block has no end", page.path);
    blocks
}

/// The text of the one block of a page that begins so.
///
/// # Panics
/// When there is none, or more than one.
#[must_use]
#[track_caller]
pub fn block(page: &str, begin: &str) -> &'static str {
    let found: Vec<_> = blocks().iter().filter(|block| block.page == page && block.text.starts_with(begin)).collect();
    assert_eq!(found.len(), 1, "{page} has this many blocks that begin with {begin}");
    found[0].text
}

/// The blocks of the part of a page with this heading.
///
/// # Panics
/// When there are none.
#[must_use]
#[track_caller]
pub fn part(page: &str, heading: &str) -> Vec<&'static Block> {
    let found: Vec<_> = blocks().iter().filter(|block| block.page == page && block.part == heading).collect();
    assert!(!found.is_empty(), "{page} has no blocks below {heading}");
    found
}

/// A command of a block.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// As many lines as the shell needs for a whole command.
    pub command: String,
    /// What stands behind the last one: what the reader is to expect.
    pub comment: String,
}

impl CommandLine {
    /// The exit codes that the comment allows, where no prompt can be answered.
    #[must_use]
    pub fn codes(&self) -> Vec<i32> {
        if self.comment.split([' ', ',', ';']).any(|word| word == "prompts") {
            return vec![2];
        }
        let Some((_, behind)) = self.comment.split_once("exits with ") else { return vec![0] };
        let (code, behind) = behind.split_at(behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len()));
        let code = code.parse().unwrap();
        if behind.starts_with(" if ") { vec![0, code] } else { vec![code] }
    }

    /// What the comment says that is printed: the texts in quotes behind `prints`.
    #[must_use]
    pub fn prints(&self) -> Vec<&str> {
        let printed = self.comment.split_once("prints ").map_or("", |(_, printed)| printed);
        printed.split('"').skip(1).step_by(2).collect()
    }
}

/// The commands of a block for a shell.
///
/// # Panics
/// When the last one is not whole.
#[must_use]
pub fn commands(block: &str) -> Vec<CommandLine> {
    let (mut found, mut text) = (Vec::new(), String::new());
    for line in block.lines() {
        if text.is_empty() && line.trim_start().starts_with('#') {
            continue;
        }
        writeln!(text, "{line}").unwrap();
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-n", "-c", &text]).stdin(Stdio::null()).stderr(Stdio::piped());
        let output = bash.output().unwrap();
        // A here-document without an end is only warned of.
        let is_whole = output.status.success() && output.stderr.is_empty();
        if is_whole && !line.trim_end().ends_with(['|', '\\']) {
            let comment = line.split_once(" # ").map(|(_, comment)| comment.trim().to_owned()).unwrap_or_default();
            found.push(CommandLine { command: std::mem::take(&mut text), comment });
        }
    }
    assert_eq!(text, "", "the last command is not whole");
    found
}
