//! The page on the mill: its policies, its fire drill, and its other commands, beside a mill that runs, as written
//! there.

use std::fs;
use std::time::Duration;

use queuekeeper_testkit::documentation::{CommandLine, block, commands};
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::wait::eventually;

use super::mill_verify::rot;
use super::reader::{Reader, Terminal};
use super::stores::command;

const PAGE: &str = "docs/mill.md";

/// A reader with stores, and an account as the page has it.
fn reader() -> Reader {
    let mut reader = Reader::new();
    for name in ["main", "replica"] {
        fs::create_dir(reader.at(name)).unwrap();
    }
    let [main, replica] = ["main", "replica"].map(|name| reader.at(name));
    let stores = format!(
        "stores:\n  main: {{url: \"file://{main}\"}}\n  replica: {{url: \"file://{replica}\"}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\n"
    );
    fs::write(reader.at("config.yml"), stores + block(PAGE, "# beside stores and catalogue")).unwrap();
    reader.replace("/srv/replica", replica);
    reader.set("QUEUEKEEPER_CONFIG_FILE", reader.at("config.yml"));
    reader
}

/// The commands on checks and decisions. The mill is idle: what the page has for an example is made for it here.
async fn checks_and_decisions(reader: &Reader, terminal: &mut Terminal<'_>) {
    let (error, change, report) = ("repair 4711 ", "accept 4711 ", "reports 12 ");
    let is_copied = async || ["a", "b"].iter().all(|name| reader.home().join("replica/theses").join(name).exists());
    for name in ["a", "b"] {
        fs::write(reader.at(name), "one\n").unwrap();
        terminal.run(&format!("queuekeeper store put {name} main/theses/{name} --create-space"));
    }
    eventually(Duration::from_mins(1), "both are copied", is_copied).await;
    fs::create_dir(reader.at("main/old")).unwrap();
    fs::write(reader.at("main/old/found"), "not recorded").unwrap();
    fs::write(reader.at("not-checked.txt"), "/account1/main/old\n").unwrap();
    let lines = commands(block(PAGE, "queuekeeper mill verify account1/main/theses "));
    let (run, lines) = lines.split_last().unwrap();
    assert!(lines.iter().any(|line| line.command.contains(report)), "{lines:#?}");
    for line in lines {
        let mut number = "1";
        // The bit error of the drill was the first.
        if line.command.contains(error) {
            number = "2";
            rot(&reader.home().join("replica/theses/a"));
            terminal.follow(&wrong("queuekeeper mill verify account1/replica/theses/a"));
        } else if line.command.contains(change) {
            number = "3";
            // Another program that keeps checksums there: one with a catalogue of its own.
            let config = fs::read_to_string(reader.at("config.yml")).unwrap();
            fs::write(reader.at("other.yml"), config.replace("catalogue.db", "other.db")).unwrap();
            fs::write(reader.at("b"), "changed").unwrap();
            let (code, put) = terminal.run("queuekeeper store put b main/theses/b --replace --config.file other.yml");
            assert_eq!(code, 0, "{put}");
            terminal.follow(&wrong("queuekeeper mill verify account1/main/theses/b"));
        }
        let replaced = line.command.replace("4711", number).replace(report, &format!("reports {number} "));
        terminal.follow(&CommandLine { command: replaced, comment: line.comment.clone() });
    }
    // The loop of checks may have found what is not recorded by now, which nobody has adopted.
    let decided =
        async || !command(reader.home(), "mill errors account1").await.is(0, &[]).out.contains("account1/theses/");
    eventually(Duration::from_mins(1), "what was decided is done", decided).await;
    assert_eq!(fs::read_to_string(reader.at("replica/theses/a")).unwrap(), "one\n");
    assert!(fs::read_to_string(reader.at("theses.tsv")).unwrap().contains("account1"));

    let web = format!("127.0.0.1:{}", free_port());
    let mut checks =
        reader.start(&format!("{} --web.listen-address {web}", run.command.split(" # ").next().unwrap().trim()));
    checks.ready(&web).await;
    checks.end().await;
}

/// A command that finds one item that is wrong.
fn wrong(command: &str) -> CommandLine {
    CommandLine { command: command.to_owned(), comment: "exits with 7: prints \"1 wrong\"".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_the_mill_is_as_it_says_from_policies_to_a_fire_drill_and_its_report() {
    let mut reader = reader();
    let web = format!("127.0.0.1:{}", free_port());
    reader.set("QUEUEKEEPER_MILL_WEB_LISTEN_ADDRESS", &web);
    let mut terminal = reader.terminal();
    let mut mill = None;
    for line in commands(block(PAGE, "mkdir policies")) {
        if line.command.starts_with("queuekeeper mill run ") {
            mill.insert(reader.start(&line.command)).ready(&web).await;
        } else {
            terminal.follow(&line);
        }
    }

    let drill = terminal.follow_all(block(PAGE, "copy=/srv/"));
    assert!(drill.iter().map(|(line, _)| line.prints().len()).sum::<usize>() >= 8, "the page says what is printed");
    // What was requested at the end comes, beside the process that leads.
    let has_report = async || command(reader.home(), "mill reports").await.out.contains("account1/drill");
    eventually(Duration::from_mins(3), "the report is there", has_report).await;
    checks_and_decisions(&reader, &mut terminal).await;
    terminal.follow_all(block(PAGE, "queuekeeper mill pause "));
    drop(terminal);
    mill.expect("the page starts a mill").end().await;
}
