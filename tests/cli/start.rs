//! The first part of docs/start.md: its commands, run from the page itself, print what the page shows.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const PAGE: &str = include_str!("../../docs/start.md");

/// How long what happens by itself may take, such as a copy.
const LIMIT: Duration = Duration::from_secs(30);

/// What the page calls the directory of the repository, and its address.
const NAMES: [&str; 2] = ["/tmp/repository", "127.0.0.1:12181"];

/// Commands, and what the page shows as their output.
#[derive(Debug)]
struct Block {
    commands: &'static str,
    shown: &'static str,
}

/// The blocks of the part with this heading.
fn blocks(heading: &str) -> Vec<Block> {
    let part = PAGE.split("\n## ").find_map(|part| part.strip_prefix(heading)).unwrap();
    let parts: Vec<_> = part.split("```").collect();
    let mut blocks: Vec<Block> = Vec::new();
    for block in parts.into_iter().skip(1).step_by(2) {
        match (block.strip_prefix("sh\n"), block.strip_prefix("text\n")) {
            (Some(commands), _) => blocks.push(Block { commands, shown: "" }),
            (None, Some(shown)) => blocks.last_mut().unwrap().shown = shown,
            (None, None) => panic!("neither commands nor their output: {block}"),
        }
    }
    blocks
}

/// What of an output is the same in each run: without identifiers, times, and the widths of columns.
fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_odd = bare.len() > 11 || bare.contains(':') || bare.matches('-').count() > 1;
        let is_identifier = is_odd && bare.bytes().any(|byte| byte.is_ascii_digit()) && !bare.contains("12181");
        // That of the submitter has the name of the host.
        if is_identifier || bare.contains('@') { word.replace(bare, "..") } else { word.to_owned() }
    };
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(word).collect();
        // An age or a size, as `3 s`.
        let units = ["s", "min", "bytes", "KiB"];
        let of_unit = |at: usize| words.get(at + 1).is_some_and(|unit| units.contains(&unit.trim_end_matches(',')));
        let kept = words.iter().enumerate().map(|(at, word)| if of_unit(at) { ".." } else { word });
        kept.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// The terminals of a reader of the page.
struct Reader {
    home: tempfile::TempDir,
    /// What takes the place of [`NAMES`].
    own: [String; 2],
    service: Option<Child>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(mut service) = self.service.take() {
            // It ends its ZooKeeper, too.
            let _ = kill_process(Pid::from_child(&service), Signal::TERM);
            let _ = service.wait();
        }
    }
}

impl Reader {
    fn bash(&self, commands: &str) -> Command {
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUEUEKEEPER_")) {
            command.env_remove(name);
        }
        let program = Path::new(env!("CARGO_BIN_EXE_queuekeeper")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let commands =
            NAMES.iter().zip(&self.own).fold(commands.to_owned(), |text, (name, own)| text.replace(name, own));
        command.args(["--noprofile", "--norc", "-c", &commands]).env("PATH", path).env("HOME", self.home.path());
        command.env_remove("XDG_STATE_HOME").env("QUEUEKEEPER_WEB_LISTEN_ADDRESS", &self.own[1]);
        command.current_dir(self.home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// An output with the names of the page.
    fn as_on_page(&self, text: &str) -> String {
        NAMES.iter().zip(&self.own).fold(text.to_owned(), |text, (name, own)| text.replace(own, name))
    }

    /// Starts what runs until it is ended, and waits until it has printed what the page shows.
    fn start(&mut self, block: &Block) {
        let mut service = self.bash(&format!("exec {}", block.commands)).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(service.stdout.take().unwrap()).lines().map(Result::unwrap);
        let wanted = shape(block.shown);
        let printed: Vec<_> = lines.take(wanted.len()).collect();
        self.service = Some(service);
        assert_eq!(shape(&self.as_on_page(&printed.join("\n"))), wanted);
    }

    /// Runs a block; gives its exit code and what it prints.
    async fn run(&self, block: &Block) -> (i32, String) {
        let mut command = self.bash(&format!("exec 2>&1\n{}", block.commands));
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), self.as_on_page(&printed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_part_of_the_page_for_newcomers_is_as_it_says() {
    let home = tempfile::tempdir().unwrap();
    let port = queuekeeper_zookeeper::child::free_port().unwrap();
    let own = [home.path().join("data").display().to_string(), format!("127.0.0.1:{port}")];
    let mut reader = Reader { home, own, service: None };
    let blocks = blocks("On one machine\n");
    let (first, rest) = blocks.split_first().unwrap();
    reader.start(first);
    // The loop of checks that is reported begins within a minute; tests/cli/mill_reports.rs reads reports.
    let rest: Vec<_> = rest.iter().filter(|block| !block.commands.starts_with("queuekeeper mill reports")).collect();
    assert!(rest.len() > 8 && rest.len() < blocks.len() - 1, "{rest:#?}");
    for block in rest {
        let code = block.commands.split_once("# exits with ").map_or(0, |(_, after)| after[..1].parse().unwrap());
        let (wanted, began) = (shape(block.shown), Instant::now());
        loop {
            let (ended, printed) = reader.run(block).await;
            let is_as_shown = ended == code && (block.shown.is_empty() || shape(&printed) == wanted);
            if is_as_shown {
                break;
            }
            // Only what reads is repeated until it shows what has happened meanwhile.
            let reads = |line: &str| {
                ["cat ", "queuekeeper object show ", "queuekeeper mill spaces", "queuekeeper mill errors"]
                    .iter()
                    .any(|command| line.starts_with(command))
            };
            let reads = block.commands.lines().all(reads);
            assert!(
                reads && began.elapsed() < LIMIT,
                "{}: {ended}\n{:#?}\nnot\n{wanted:#?}",
                block.commands,
                shape(&printed)
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
