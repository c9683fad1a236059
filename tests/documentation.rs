//! Every block of the documentation is run or read by a test, or is left out for a reason; and every link leads
//! somewhere.

use std::collections::BTreeMap;
use std::path::Path;

use queuekeeper_testkit::documentation::{Block, CommandLine, ROOT, block, blocks, commands, pages, part};

/// What becomes of a block.
#[derive(Clone, Copy)]
enum Use {
    /// The test in this file takes it from the page, by the names that it has here.
    By(&'static str),
    /// The test in this file takes it from the page by what follows, which is in both.
    Around(&'static str, &'static str),
    /// It is neither run nor read, and why.
    Not(&'static str),
}
use Use::{Around, By, Not};

/// The parts of pages whose blocks are taken in their order, how many blocks each has, and the test that takes them.
/// Those that it leaves out are below.
const PARTS: [(&str, &str, usize, &str); 2] = [
    ("docs/start.md", "On one machine", 24, "tests/cli/start.rs"),
    ("docs/start.md", "With a ZooKeeper of your own", 15, "tests/cli/start.rs"),
];

/// All blocks of other parts, and those that are left out of these, by their pages and beginnings.
const BLOCKS: [(&str, &str, Use); 53] = [
    ("README.md", ".ci/install zookeeper && cargo run ", By("tests/demo/documented.rs")),
    ("README.md", ".ci/install zookeeper prometheus ", By("tests/demo/monitoring.rs")),
    ("README.md", "cargo run -- standalone", By("tests/cli/start.rs")),
    ("README.md", "queuekeeper serve ", By("tests/cli/services.rs")),
    (
        "README.md",
        ".ci/package build ",
        Not(
            "it builds for many minutes, and installs a package; packaging/try installs, edits and scrapes what it has built",
        ),
    ),
    ("README.md", ".ci/install && .ci/test", Not("it is what runs this test")),
    ("SECURITY.md", "GRANT USAGE ON SCHEMA public TO worker;", By("crates/catalogue/tests/catalogue/support.rs")),
    ("SECURITY.md", "GRANT USAGE ON SCHEMA public TO reader;", By("tests/web/least_grants.rs")),
    (
        "SECURITY.md",
        "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    {\"Effect\"",
        Around("crates/testkit/src/s3/policy.rs", "s3:GetObject"),
    ),
    (
        "SECURITY.md",
        "{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    {\n",
        Around("crates/testkit/src/s3/policy.rs", "s3:PutObject"),
    ),
    (
        "SECURITY.md",
        ".ci/audit ",
        Not("it installs programs, and asks for a database of vulnerabilities that is not here"),
    ),
    ("docs/alerts.md", "queuekeeper dashboards files ", By("tests/cli/dashboards.rs")),
    ("docs/alerts.md", "rule_files: ", By("tests/cli/dashboards.rs")),
    ("docs/alerts.md", "receivers: ", By("tests/cli/dashboards.rs")),
    ("docs/alerts.md", "alerts:\n  rules:", By("tests/cli/rules.rs")),
    ("docs/alerts.md", "queuekeeper rules check ", By("tests/cli/rules.rs")),
    ("docs/deposit.md", "deposits=http", By("tests/cli/pages.rs")),
    ("docs/deposit.md", "depositors:\n", By("tests/cli/configured.rs")),
    ("docs/deposit.md", "access:\n", By("tests/cli/configured.rs")),
    ("docs/deposit.md", "cargo run -- object request", By("tests/cli/start.rs")),
    ("docs/from-java.md", "queuekeeper ingest .. ", By("tests/cli/services.rs")),
    ("docs/ingest.md", "queuekeeper ingest ", By("tests/cli/services.rs")),
    ("docs/ingest.md", "name: merritt_demo", By("tests/cli/configured.rs")),
    ("docs/metrics.md", "# a state whose oldest waiting job", By("tests/alerts/rules.rs")),
    ("docs/mill.md", "# beside stores and catalogue", By("tests/cli/configured.rs")),
    ("docs/mill.md", "mkdir policies", By("tests/cli/drill.rs")),
    ("docs/mill.md", "# beside stores, tokens_file and mill", By("tests/cli/configured.rs")),
    ("docs/mill.md", "queuekeeper mill verify account1/main/theses ", By("tests/cli/drill.rs")),
    ("docs/mill.md", "# in config.yml\nmill:\n", By("tests/cli/configured.rs")),
    ("docs/mill.md", "copy=/srv/", By("tests/cli/drill.rs")),
    ("docs/mill.md", "# in config.yml\nstores:\n", By("tests/cli/configured.rs")),
    ("docs/mill.md", "queuekeeper mill pause ", By("tests/cli/drill.rs")),
    ("docs/mill.md", "triggers:\n", By("tests/alerts/rules.rs")),
    ("docs/operate.md", "queuekeeper serve --zookeeper zk1:", By("tests/cli/services.rs")),
    ("docs/operate.md", "curl 'http://127.0.0.1:12181/", By("tests/demo/documented.rs")),
    ("docs/operate.md", "queuekeeper serve --zookeeper prod=", By("tests/cli/services.rs")),
    (
        "docs/operate.md",
        "# /etc/systemd/system/queuekeeper.service.d/queues.conf",
        Around("packaging/try", "/etc/systemd/system/queuekeeper.service.d/queues.conf"),
    ),
    (
        "docs/operate.md",
        "# /etc/default/queuekeeper-queues",
        Around("packaging/try", "/etc/default/queuekeeper-queues"),
    ),
    ("docs/operate.md", "ask() {", By("tests/demo/documented.rs")),
    (
        "docs/operate.md",
        "/var/log/queuekeeper/audit.jsonl ",
        Not("the tests install no logrotate; the renaming and the signal are those of tests/web/signals.rs"),
    ),
    ("docs/operate.md", "export QUEUEKEEPER_ZOOKEEPER=", By("tests/demo/documented.rs")),
    ("docs/operate.md", "queuekeeper dump ", By("tests/demo/documented.rs")),
    ("docs/security.md", "tls_server_config:\n", By("tests/cli/configured.rs")),
    ("docs/security.md", "users: ", By("tests/cli/configured.rs")),
    ("docs/security.md", "queuekeeper token ci ", By("tests/cli/pages.rs")),
    (
        "docs/start.md",
        "sudo apt install ./target/package/queuekeeper_",
        Not("it installs a package; packaging/try installs it below a root of its own"),
    ),
    ("docs/start.md", ".ci/install zookeeper && cargo build", Not("it installs packages, and builds what is run here")),
    (
        "docs/start.md",
        "sudo apt install zookeeperd ",
        Not("it installs packages: .ci/install has installed what is started here, without their services"),
    ),
    ("docs/stores.md", "stores:\n", By("tests/cli/configured.rs")),
    ("docs/stores.md", "queuekeeper check-config config.yml --probe", By("tests/cli/pages.rs")),
    ("docs/stores.md", "CREATE ROLE keeper ", By("tests/cli/catalogue.rs")),
    ("docs/stores.md", "mkdir damaged ", By("tests/cli/pages.rs")),
    (
        "fuzz/README.md",
        "cargo install cargo-fuzz ",
        Not("it installs a program, and runs for minutes; tests/fuzz.rs tries the corpus"),
    ),
];

/// A file of the repository, without what only formats it.
fn source(file: &str) -> String {
    let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.split_whitespace().collect()
}

/// Whether a test names a page and a beginning, or a part of it, as the table does.
fn names(file: &str, page: &str, begin: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<String>();
    let source = source(file);
    // Either the page is written there, or it is a constant beside it.
    let is_page = format!("constPAGE:&str={page:?};");
    source.contains(&words(&format!("{page:?}, {begin:?}")))
        || source.contains(&is_page) && source.contains(&words(&format!("PAGE, {begin:?}")))
}

#[test]
fn every_block_is_run_or_read_by_one_test_or_is_left_out_for_a_reason() {
    for (page, heading, count, file) in PARTS {
        assert_eq!(part(page, heading).len(), count, "{page}: {heading}");
        assert!(names(file, page, heading), "{file} does not take the blocks of {page} below {heading}");
    }
    let mut used = BTreeMap::new();
    for (page, begin, of) in BLOCKS {
        let text = block(page, begin);
        assert!(used.insert(text.as_ptr(), of).is_none(), "{page}: {begin} is there twice");
        match of {
            By(file) => assert!(names(file, page, begin), "{file} does not take {begin} from {page}"),
            Around(file, within) => {
                let source = source(file);
                let is_taken = text.contains(within) && source.contains(page) && source.contains(within);
                assert!(is_taken, "{file} does not take {within} from {page}");
            }
            Not(why) => {
                let files = why.split_whitespace().filter(|word| word.contains('/'));
                for file in files {
                    assert!(Path::new(ROOT).join(file).exists(), "{begin}: there is no {file}");
                }
            }
        }
    }
    let is_of_part = |block: &Block| PARTS.iter().any(|(page, part, ..)| (block.page, block.part) == (*page, *part));
    for block in blocks() {
        let how = used.get(&block.text.as_ptr());
        let is_left_out = matches!(how, Some(Not(_)));
        // What of a part is not left out is taken with all of it.
        assert!(
            if is_of_part(block) { how.is_none() || is_left_out } else { how.is_some() },
            "{}: this block has to be run or read by one test, or left out for a reason:\n{}",
            block.page,
            block.text
        );
    }
}

/// The links of a page to files, without those below a heading.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let files = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains(':') && !file.contains(' '))
}

#[test]
fn every_link_leads_to_a_file() {
    assert!(pages().len() > 14, "{:?}", pages().iter().map(|page| &page.path).collect::<Vec<_>>());
    for page in pages() {
        let directory = Path::new(ROOT).join(&page.path).parent().unwrap().to_owned();
        for link in links(&page.text) {
            assert!(directory.join(link).exists(), "{} leads to {link}", page.path);
        }
    }
}

#[test]
fn what_a_reader_is_to_expect_of_a_command_is_in_its_comment() {
    let lines = commands(
        "a \\\n  b # 1\n# of its own\nc '{\nd}'  # prompts\ncat <<E\ne # f\nE\ng # exits with 3 if it is late\nh # exits with 7: prints \"i\" and \"j\"\n",
    );
    assert_eq!(
        lines.iter().map(CommandLine::codes).collect::<Vec<_>>(),
        [vec![0], vec![2], vec![0], vec![0, 3], vec![7]]
    );
    assert_eq!(lines[4].prints(), ["i", "j"]);
    assert!(lines[0].prints().is_empty() && lines[2].command.ends_with("E\n"), "{lines:#?}");
}
