//! The page for newcomers: its commands, run from the page itself, print what the page shows.

use queuekeeper_testkit::documentation::{Block, block, commands, part};
use queuekeeper_testkit::process::free_port;
use queuekeeper_testkit::server::shared;

use super::reader::{Reader, Service, shape};

/// A block of commands, and what the page shows below it.
fn steps(blocks: &[&'static Block]) -> Vec<(&'static str, &'static str)> {
    let mut steps: Vec<(&str, &str)> = Vec::new();
    for block in blocks {
        match block.language {
            "sh" => steps.push((block.text, "")),
            "text" => steps.last_mut().unwrap().1 = block.text,
            other => panic!("neither commands nor their output: {other}"),
        }
    }
    steps
}

/// Starts a repository, and waits until it has printed what the page shows.
fn start(reader: &mut Reader, (commands, shown): (&str, &str)) -> Service {
    let mut service = reader.start(commands);
    let wanted = shape(shown);
    assert_eq!(shape(&reader.as_on_page(&service.printed(wanted.len()))), wanted);
    service
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_part_of_the_page_for_newcomers_is_as_it_says() {
    let mut reader = Reader::new();
    reader.replace("/tmp/repository", reader.at("data"));
    let web = reader.port("127.0.0.1:12181");
    reader.set("QUEUEKEEPER_WEB_LISTEN_ADDRESS", web);
    let steps = steps(&part("docs/start.md", "On one machine"));
    let (first, rest) = steps.split_first().unwrap();
    let repository = start(&mut reader, *first);
    let mut terminal = reader.terminal();
    for (commands, shown) in rest {
        terminal.shows(commands, shown).await;
    }
    assert!(rest.len() > 8, "{rest:#?}");

    // The README's is the same repository, built where it is started.
    let readme = commands(block("README.md", "cargo run -- standalone"));
    let [start, deposit] = &readme[..] else { panic!("{readme:#?}") };
    assert_eq!(start.command.replace("cargo run --", "queuekeeper"), first.0);
    std::fs::write(reader.at("README.md"), "# Read me\n").unwrap();
    let (code, printed) = terminal.run(&deposit.command.replace("cargo run --", "queuekeeper"));
    assert!(code == 0 && printed.contains("Completed: 1 completed, 0 failed"), "{code}: {printed}");
    let ark = printed.lines().last().unwrap();
    let request = block("docs/deposit.md", "cargo run -- object request").replace("cargo run --", "queuekeeper");
    let (code, printed) = terminal.run(&request.replace("ARK", ark));
    assert!(code == 0 && printed.contains("http://127.0.0.1:12181/"), "{code}: {printed}");
    drop(terminal);
    repository.end().await;
}

/// The blocks of the first part, as the second part has them repeated.
fn as_above(text: &str) -> String {
    [
        (" --data /tmp/repository", ""),
        ("/tmp/repository/copies", "replica"),
        ("repository", "ours"),
        ("copies", "replica"),
        ("default", "demo"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (name, own)| text.replace(name, own))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_part_with_a_zookeeper_of_ones_own_is_as_it_says() {
    let mut reader = Reader::new();
    reader.replace("127.0.0.1:2181", shared().await.connect_string());
    let sidecar = reader.port("127.0.0.1:12181");
    let [daemons, mill] = ["127.0.0.1:12182", "127.0.0.1:12183"].map(|address| reader.port(address));
    reader.port("127.0.0.1:9091");
    reader.set("QUEUEKEEPER_WEB_LISTEN_ADDRESS", &sidecar);
    reader.set("QUEUEKEEPER_INGEST_WEB_LISTEN_ADDRESS", &daemons);
    reader.set("QUEUEKEEPER_MILL_WEB_LISTEN_ADDRESS", &mill);
    let steps = steps(&part("docs/start.md", "With a ZooKeeper of your own"));
    // Debian's packages are there, and their services are not used.
    let [(install, ""), (chroot, ""), (files, ""), checked, rest @ ..] = &steps[..] else { panic!("{steps:#?}") };
    assert!(install.starts_with("sudo apt install "), "{install}");
    let mut terminal = reader.terminal();
    let (_, printed) = terminal.run(chroot);
    // What else it says of the new connection may come later.
    assert!(printed.lines().any(|line| line == "Created /merritt"), "{printed}");
    terminal.follow_all(files);
    terminal.shows(checked.0, checked.1).await;

    let [(ingest, ""), (run, ""), (serve, ""), probed, deposited, prometheus, queried] = rest else {
        panic!("{rest:#?}")
    };
    let services = [ingest, run, serve].map(|command| reader.start(command));
    terminal.shows(probed.0, probed.1).await;
    terminal.shows(deposited.0, deposited.1).await;

    // The page says that what it has done above goes here as well.
    let above = self::steps(&part("docs/start.md", "On one machine"));
    let repeated = above.iter().skip_while(|(commands, _)| !commands.starts_with("queuekeeper mill verify "));
    let mut count = 0;
    for (commands, shown) in repeated.take_while(|(commands, _)| !commands.starts_with("queuekeeper mill reports")) {
        terminal.shows(&as_above(commands), &as_above(shown)).await;
        count += 1;
    }
    assert!(count > 5, "{above:#?}");

    let lines = commands(prometheus.0);
    let [write, change, scrape] = &lines[..] else { panic!("{lines:#?}") };
    terminal.follow(write);
    terminal.follow(change);
    let file = reader.at("merritt/files/prometheus/prometheus.yml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (now, alerts) = (text.replace("15s", "1s"), format!("127.0.0.1:{}", free_port()));
    assert_ne!(now, text, "it is scraped more often than in an installation");
    std::fs::write(&file, reader.own(&now.replace("127.0.0.1:9093", &alerts))).unwrap();
    let scraping = reader.start(&format!("cd ~/merritt\n{}", scrape.command));
    terminal.shows(queried.0, queried.1).await;

    drop(terminal);
    scraping.end().await;
    for service in services {
        service.end().await;
    }
}
