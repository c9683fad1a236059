//! A reader of the documentation, who types its commands into terminals.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use queuekeeper_testkit::documentation::{CommandLine, commands};
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::wait::{eventually, eventually_some};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::program::SESSION;

/// How long what happens by itself may take: a copy some seconds, and a loop of checks begins within a minute.
const LIMIT: Duration = Duration::from_mins(2);

/// The end of the output of a command, before its exit code.
const ENDED: &str = "@@ended";

/// A home directory, and what the reader has in place of the names on a page.
pub(super) struct Reader {
    home: TempDir,
    names: Vec<(String, String)>,
    variables: Vec<(&'static str, String)>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), names: Vec::new(), variables: Vec::new() }
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A path in the home directory.
    pub(super) fn at(&self, name: &str) -> String {
        self.home().join(name).display().to_string()
    }

    /// From here on, what the page calls `name` is `own` in commands, and the other way round in what they print.
    pub(super) fn replace(&mut self, name: &str, own: impl Into<String>) {
        self.names.push((name.to_owned(), own.into()));
    }

    /// Sets a variable for terminals that are opened later.
    pub(super) fn set(&mut self, variable: &'static str, value: impl Into<String>) {
        self.variables.push((variable, value.into()));
    }

    /// A port that takes the place of one of the page.
    pub(super) fn port(&mut self, address: &str) -> String {
        let own = format!("127.0.0.1:{}", free_port());
        self.replace(address, &own);
        own
    }

    /// What is on the page, with the names of the reader.
    pub(super) fn own(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, own)| text.replace(name, own))
    }

    /// What was printed, with the names of the page.
    pub(super) fn as_on_page(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, own)| text.replace(own, name))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let (program, arguments) = arguments.split_first().unwrap();
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("QUEUEKEEPER_")) {
            command.env_remove(name);
        }
        let built = Path::new(env!("CARGO_BIN_EXE_queuekeeper")).parent().unwrap();
        let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
        command.args(arguments).env("PATH", path).env("HOME", self.home()).env_remove("XDG_STATE_HOME");
        command.env(SESSION.0, SESSION.1);
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).current_dir(self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Opens a terminal.
    pub(super) fn terminal(&self) -> Terminal<'_> {
        // A command that does not end fails the test, which would wait for it otherwise.
        let mut bash = self.command(&["timeout", "900", "bash", "--noprofile", "--norc", "-s"]);
        let mut child = bash.stdin(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Terminal { reader: self, child, input, output }
    }

    /// Opens a terminal for commands of which the last one runs until it is ended.
    pub(super) fn start(&self, commands: &str) -> Service {
        let (before, last) = commands.trim_end().rsplit_once('\n').unwrap_or(("", commands.trim_end()));
        // The process of the terminal becomes that of the program, which has its end and its signals.
        let last = match last.rsplit_once("&& ") {
            Some((first, last)) => format!("{first}&& exec {last}"),
            None => format!("exec {last}"),
        };
        let commands = self.own(&format!("{before}\n{last}"));
        let log = tempfile::tempfile().unwrap();
        let mut bash = self.command(&["bash", "--noprofile", "--norc", "-c", &commands]);
        let mut child = bash.stderr(log.try_clone().unwrap()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Service { child, output, log }
    }
}

/// Bash, which stays: what one block exports, and where it goes, holds for the next one.
pub(super) struct Terminal<'a> {
    reader: &'a Reader,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // It ends with its input, or else with what waits for it.
        self.input.take();
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Terminal<'_> {
    /// Types commands; returns the exit code of the last one, and what all of them print.
    pub(super) fn run(&mut self, commands: &str) -> (i32, String) {
        let commands = self.reader.own(commands);
        block_in_place(|| {
            // Its input are the commands that follow, which those programs would read.
            let group = format!("{{ {commands}\n}} </dev/null 2>&1\necho \"{ENDED} $?\"\n");
            self.input.as_mut().unwrap().write_all(group.as_bytes()).unwrap();
            let (mut printed, mut line) = (String::new(), Vec::new());
            loop {
                line.clear();
                let length = self.output.read_until(b'\n', &mut line).unwrap();
                assert!(length > 0, "the terminal was closed by {commands}: {printed}");
                let text = String::from_utf8_lossy(&line);
                if let Some((rest, code)) = text.split_once(ENDED) {
                    printed += rest;
                    return (code.trim().parse().unwrap(), self.reader.as_on_page(&printed));
                }
                printed += &text;
            }
        })
    }

    /// Types one command, which ends and prints as its comment says; returns what it prints.
    #[track_caller]
    pub(super) fn follow(&mut self, line: &CommandLine) -> String {
        let (code, printed) = self.run(&line.command);
        assert!(line.codes().contains(&code), "{} ends with {code}, not {:?}: {printed}", line.command, line.codes());
        for part in line.prints() {
            assert!(printed.contains(part), "{} does not print {part:?}: {printed}", line.command);
        }
        printed
    }

    /// The same for each command of a block.
    #[track_caller]
    pub(super) fn follow_all(&mut self, block: &str) -> Vec<(CommandLine, String)> {
        let mut followed = Vec::new();
        for line in commands(block) {
            let printed = self.follow(&line);
            followed.push((line, printed));
        }
        followed
    }

    /// Types the commands of a block, which print what the page shows below it. Those at its end that only read are
    /// repeated until they show what has happened meanwhile.
    pub(super) async fn shows(&mut self, block: &str, shown: &str) {
        // The reader waits, and this looks again.
        let lines: Vec<_> = commands(block).into_iter().filter(|line| !line.command.starts_with("sleep ")).collect();
        let once = lines.iter().rposition(|line| !reads(&line.command)).map_or(0, |at| at + 1);
        let (first, repeated) = lines.split_at(once);
        let before: String = first.iter().map(|line| self.follow(line)).collect();
        let shape = |text: &str| {
            let mut lines = shape(text);
            // Reports are numbered as they are written, the newest first, and the checks of either space may end first.
            if block.starts_with("queuekeeper mill reports") {
                for line in &mut lines {
                    *line = line.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
                }
                lines.sort();
            }
            // Series come in the order in which they were first scraped.
            if block.starts_with("promtool ") {
                lines.sort();
            }
            lines
        };
        let (wanted, began) = (shape(shown), Instant::now());
        loop {
            let (mut printed, mut is_expected) = (before.clone(), true);
            for line in repeated {
                let (code, text) = self.run(&line.command);
                is_expected &= line.codes().contains(&code);
                printed += &text;
            }
            let printed = shape(&printed);
            if is_expected && (shown.is_empty() || printed == wanted) {
                return;
            }
            let may_come = !repeated.is_empty() && began.elapsed() < LIMIT;
            assert!(may_come, "{block} prints {printed:#?}\nnot\n{wanted:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Whether a command changes nothing.
fn reads(command: &str) -> bool {
    let programs = [
        "cat ",
        "promtool query ",
        "queuekeeper mill errors",
        "queuekeeper mill reports",
        "queuekeeper mill spaces",
        "queuekeeper object show ",
        "queuekeeper probe ",
    ];
    programs.iter().any(|program| command.starts_with(program))
}

/// What of an output is the same in each run: without identifiers, times, and the widths of columns.
pub(super) fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_odd = bare.len() > 11 || bare.contains(':') || bare.matches('-').count() > 1;
        let is_identifier =
            is_odd && bare.bytes().any(|byte| byte.is_ascii_digit()) && !bare.contains("127.0.0.1:1218");
        // That of the submitter has the name of the host.
        if is_identifier || bare.contains('@') { word.replace(bare, "..") } else { word.to_owned() }
    };
    let line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().map(word).collect();
        // An age or a size, as `3 s`. What takes a minute or longer has another unit.
        let is_age = |unit: &str| ["s", "min"].contains(&unit);
        let is_unit = |unit: &str| is_age(unit) || ["bytes", "KiB"].contains(&unit);
        let bare = |at: usize| words.get(at).map(|word| word.trim_end_matches(','));
        let kept = words.iter().enumerate().map(|(at, word)| match bare(at + 1) {
            Some(unit) if is_unit(unit) => "..",
            _ if bare(at).is_some_and(is_age) => "..",
            _ => word.as_str(),
        });
        kept.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// A program that runs until it is ended.
pub(super) struct Service {
    child: Child,
    output: BufReader<ChildStdout>,
    log: File,
}

impl Drop for Service {
    fn drop(&mut self) {
        // What it has started ends with it.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Service {
    /// The first lines that it prints.
    pub(super) fn printed(&mut self, lines: usize) -> String {
        let lines = self.output.by_ref().lines().take(lines).map(Result::unwrap);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Waits until it is ready at this address.
    pub(super) async fn ready(&mut self, address: &str) {
        let url = format!("http://{address}/-/ready");
        eventually(LIMIT, &format!("{url} answers"), async || {
            if let Some(ended) = self.child.try_wait().unwrap() {
                let mut log = String::new();
                self.log.rewind().unwrap();
                self.log.read_to_string(&mut log).unwrap();
                panic!("it has ended ({ended}): {log}");
            }
            reqwest::get(&url).await.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
    }

    /// Ends it by Ctrl-C, which it takes for no failure.
    pub(super) async fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let ended = eventually_some(LIMIT, "it ends by Ctrl-C", async || self.child.try_wait().unwrap()).await;
        assert!(ended.success(), "{ended}");
    }
}
