//! The output for a queue with one job in each state: plurals and punctuation are right.

use super::world::World;
use queuekeeper_testkit::wording::wrong;

#[tokio::test]
async fn no_command_prints_a_wrong_plural_or_mark_if_there_is_one_of_everything() {
    let world = World::new("words").await;
    world.create("/locks/queue/accessSmall", r#"{"who":"ops@here","why":"a full disk."}"#).await;
    world.ephemeral("/jobs/jid0000000003/lock").await;
    world.create("/jobs/states/storing/05-jid0000000001", "").await;
    world.create("/jobs/strange", "").await;
    world.batch(1, "Completed").await;
    let mut found = Vec::new();
    for line in [
        "status",
        "jobs --state failed",
        "jobs --state failed --limit 1",
        "jobs --limit 1",
        "job 9",
        "job 9 why",
        "job 3 why",
        "job 1 why",
        "failures",
        "batches --limit 1",
        "batch bid0000000000",
        "access",
        "locks",
        "queue",
        "collection",
        "faults",
        "faults --repair --dry-run",
        "job 9 resume --dry-run",
        "jobs --state failed resume --dry-run",
        "jobs --state failed resume --yes --reason tried",
        "jobs --state failed resume --yes --reason tried",
        "job 10 release --yes --reason tried",
        "batch bid0000000000 delete --dry-run",
        "batches clean-up --dry-run",
        "batches clean-up --yes --reason tried",
        "faults --repair --yes --reason tried",
        "dump",
        "nonsense",
        "--help",
        "serve --help",
    ] {
        let ran = match line {
            "nonsense" | "--help" | "serve --help" => {
                super::program::run(world.home.path(), &line.split(' ').collect::<Vec<_>>()).await
            }
            "dump" => world.run_with(line, &["--output", world.home.path().join("dump.jsonl").to_str().unwrap()]).await,
            _ => world.run_with(line, &[]).await,
        };
        for text in [&ran.out, &ran.err] {
            // The output has no markup; what looks like it is a placeholder.
            found.extend(wrong(&text.replace('<', "‹")).into_iter().map(|text| format!("{line}: {text}")));
        }
    }
    assert_eq!(found, [""; 0]);
}
