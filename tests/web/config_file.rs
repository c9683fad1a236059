use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use jiff::Timestamp;
use queuekeeper::config::{ConfigFile, Presented, Secret};

use super::command_line::queuekeeper;

const HASH: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs the program with something on its standard input.
fn run(arguments: &[&str], input: &str) -> Output {
    let pipes = [(); 3].map(|()| Stdio::piped());
    let [stdin, stdout, stderr] = pipes;
    let mut child = queuekeeper(arguments).stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    // What is refused before it is read is not waited for.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_not_taken_is_refused_by_name_and_line_and_shows_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let secret = Secret::make();
    let digits = "0123456789abcdef".repeat(4);
    let token = |keys: &str| ("tokens_file: tokens.yml\n".to_owned(), format!("# tokens\n{keys}\n"));
    let config = |keys: &str| (keys.to_owned(), String::new());
    for ((config, tokens), reported) in [
        (config("user: {}"), &["config.yml, line 1: the key user is unknown", "users, tokens_file"][..]),
        (config("users: {alice: root}"), &["line 1: users: alice: unknown role “root”; expected one of alertmanager"]),
        (config("users:\n  alice: admin\n  alice: viewer"), &["line 3: the key alice is duplicated"]),
        (config("users:\n  alice: admin\n  bob: [admin]"), &["line 3"]),
        (config("users: [alice]"), &["line 1"]),
        (
            config("users: {nobody: admin}"),
            &["line 1: users: nobody: the web configuration has no such user", "basic_auth_users"],
        ),
        (config("\ntokens_file: ''"), &["line 2: tokens_file is empty"]),
        (config("tokens_file: none.yml"), &["cannot read", "none.yml", "No such file"]),
        (config("tokens_file: ."), &["cannot read", "it is not a file"]),
        (config("a: ["), &["config.yml, line "]),
        (config(""), &["config.yml: it is empty", "write {}"]),
        (config("# later\n---\n"), &["config.yml: it is empty except for comments"]),
        (token(""), &["tokens.yml: it is empty except for comments", "write {}"]),
        (token("- ci"), &["tokens.yml, line 2"]),
        (token("ci: operator"), &["tokens.yml, line 2: ci: expected keys with values"]),
        (token(secret.reveal()), &["tokens.yml"]),
        (token(&format!("{}: {{role: admin, sha256: {digits}}}", secret.reveal())), &["line 2", "looks like a token"]),
        (
            token(&format!("{0}: {1}\n{0}: {1}", secret.reveal(), format_args!("{{role: admin, sha256: {digits}}}"))),
            &["tokens.yml, line ", "looks like a token"],
        ),
        (
            token(&format!("ci: {{role: admin, sha256: {}}}", secret.reveal())),
            &["line 2: the token ci: sha256 must be 64 hex"],
        ),
        (token(&format!("ci: {{role: {}, sha256: {digits}}}", secret.reveal())), &["line 2", "looks like a token"]),
        (token("ci: {role: admin}"), &["tokens.yml, line 2", "sha256"]),
        (token(&format!("ci: {{sha256: {digits}}}")), &["tokens.yml, line 2", "role"]),
        (token(&format!("ci: {{role: root, sha256: {digits}}}")), &["line 2: the token ci: unknown role “root”"]),
        (token(&format!("ci:\n  role: admin\n  sha256: {digits}0")), &["line 4: the token ci: sha256"]),
        (token(&format!("ci: {{role: admin, sha256: {}}}", "é".repeat(32))), &["line 2: the token ci: sha256"]),
        (
            token(&format!("ci:\n  role: admin\n  sha256: {digits}\n  expires: tomorrow")),
            &["line 5: the token ci: expires: “tomorrow” is neither a date", "2027-01-31T18:00:00Z"],
        ),
        (token(&format!("ci: {{role: admin, sha256: {digits}, expiry: x}}")), &["line 2: the key expiry is unknown"]),
        (
            token(&format!("c i: {{role: admin, sha256: {digits}}}")),
            &["line 2: the name of a token must begin with a letter"],
        ),
        (
            token(&format!("ci: {{role: admin, sha256: {digits}}}\ncd: {{role: viewer, sha256: {digits}}}")),
            &["tokens.yml, line ", "is the same token as"],
        ),
        (
            token(&format!("alice: {{role: admin, sha256: {digits}}}")),
            &["tokens.yml, line 2: the token alice: the web configuration has a user of that name"],
        ),
    ] {
        let path = write(directory.path(), "config.yml", &config);
        write(directory.path(), "tokens.yml", &tokens);
        let web = write(directory.path(), "web.yml", &format!("basic_auth_users: {{alice: {HASH}}}"));
        let read = ConfigFile::read(&path);
        let web = queuekeeper::config::WebFile::read(&web).unwrap();
        let error = read.and_then(|file| file.check_users(Some(&web))).err();
        let error = error.unwrap_or_else(|| panic!("taken: {config} {tokens}")).to_string();
        for part in reported {
            assert!(error.contains(part), "{part:?} is not in {error:?} for:\n{config}\n{tokens}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!error.contains(secret.reveal()), "{error}");
    }
    let path = write(directory.path(), "config.yml", "users: {alice: admin}");
    let error = ConfigFile::read(&path).unwrap().check_users(None).unwrap_err().to_string();
    assert!(error.contains("users: alice: the web configuration has no users"), "{error}");
}

#[test]
fn a_file_that_everyone_may_write_is_not_taken() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let tokens = write(directory.path(), "tokens.yml", "{}");
    let config = write(directory.path(), "config.yml", "tokens_file: tokens.yml");
    let web = write(directory.path(), "web.yml", "{}");
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let before = ConfigFile::read(&config).unwrap();
    for path in [&tokens, &config, &web] {
        set(path, 0o666);
        let read = if path == &web {
            queuekeeper::config::WebFile::read(&web).map(drop)
        } else {
            // Neither by a server that runs already.
            assert!(before.read_again().is_err(), "{}", path.display());
            ConfigFile::read(&config).map(drop)
        };
        let error = read.unwrap_err().to_string();
        assert!(error.contains("may write it; chmod o-w") && error.contains(path.to_str().unwrap()), "{error}");
        set(path, 0o664);
    }
    assert!(ConfigFile::read(&config).is_ok());
    // Nor one that everyone may replace, at the start or later.
    set(directory.path(), 0o777);
    let error = ConfigFile::read(&config).unwrap_err().to_string();
    assert!(error.contains("may write to the directory") && error.contains("chmod o-w"), "{error}");
    assert!(before.read_again().is_err());
    let refused = run(&["serve", "--config.file", config.to_str().unwrap()], "");
    assert!(
        refused.status.code() == Some(2) && text(&refused.stderr).contains("may write to the directory"),
        "{refused:?}"
    );
    set(directory.path(), 0o1777);
    assert!(ConfigFile::read(&config).is_ok(), "only its owner replaces a file in such a directory");
    set(directory.path(), 0o700);
}

#[test]
fn a_file_is_checked_with_the_users_and_serve_refuses_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let web = write(directory.path(), "web.yml", &format!("basic_auth_users: {{alice: {HASH}}}"));
    let digits = "0123456789abcdef".repeat(4);
    write(directory.path(), "tokens.yml", &format!("old: {{role: admin, sha256: {digits}, expires: 2020-01-01}}\n"));
    let path = write(directory.path(), "config.yml", "users: {alice: operator}\ntokens_file: tokens.yml\n");
    let [path, web] = [&path, &web].map(|path| path.to_str().unwrap());
    let checked = run(&["check-config", path, "--web.config.file", web], "");
    let reported = text(&checked.stdout);
    assert!(
        checked.status.success() && reported.contains("is valid: roles for users: 1, tokens: 1 (expired: old)"),
        "{reported}"
    );
    let alone = run(&["check-config", path], "");
    assert!(alone.status.success() && text(&alone.stdout).contains("--web.config.file"), "{alone:?}");
    std::fs::write(path, "{}").unwrap();
    assert!(text(&run(&["check-config", path], "").stdout).contains("allows no actions"));
    std::fs::write(path, "users: {bob: admin}").unwrap();
    for arguments in [
        &["check-config", path, "--web.config.file", web][..],
        &["serve", "--config.file", path, "--web.config.file", web],
        &["serve", "--config.file", path],
    ] {
        let refused = run(arguments, "");
        let reported = text(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && reported.contains("config.yml, line 1: users: bob: the web"),
            "{reported}"
        );
    }
}

#[test]
fn a_token_goes_to_standard_output_alone_and_its_line_lets_it_in() {
    let directory = tempfile::tempdir().unwrap();
    let made = run(&["token", "ci", "--role", "operator", "--expires", "2199-01-31"], "");
    assert!(made.status.success(), "{made:?}");
    let secret = text(&made.stdout).strip_suffix('\n').unwrap();
    assert!(secret.starts_with("qk_") && secret.len() == 46 && !secret.contains(char::is_whitespace), "{secret}");
    let line = text(&made.stderr);
    assert!(!line.contains(secret) && line.contains("expires: \"2199-01-31T00:00:00Z\""), "{line}");

    // What went to standard error is what belongs into the file, and so is the line of a token that was there before.
    let hashed = run(&["token", "cd", "--role", "admin", "--hash"], "0123456789abcdef0123456789abcdef\n");
    assert!(hashed.status.success() && hashed.stderr.is_empty(), "{hashed:?}");
    write(directory.path(), "tokens.yml", &format!("{line}{}", text(&hashed.stdout)));
    let file = ConfigFile::read(&write(directory.path(), "config.yml", "tokens_file: tokens.yml")).unwrap();
    for (secret, name) in [(secret, "ci"), ("0123456789abcdef0123456789abcdef", "cd")] {
        let Presented::Valid(token) = file.tokens().find(secret.as_bytes(), Timestamp::now()) else { panic!("{name}") };
        assert_eq!(token.name, name);
    }
    let again = run(&["token", "ci", "--role", "operator", "--hash"], secret);
    let hash = |line: &str| line.split("sha256: ").nth(1).unwrap()[..66].to_owned();
    assert_eq!(hash(text(&again.stdout)), hash(line));

    for (arguments, input, reported) in [
        (&["token", "ci"][..], "", "--role"),
        (&["token", "ci", "--role", "root"], "", "viewer, operator, admin"),
        (&["token", "--role", "admin"], "", "<NAME>"),
        (&["token", "a b", "--role", "admin"], "", "must begin with a letter"),
        (&["token", secret, "--role", "admin"], "", "looks like a token"),
        (&["token", "ci", "--role", "admin", "--expires", "2020-01-01"], "", "--expires: the time is in the past"),
        (&["token", "ci", "--role", "admin", "--expires", "soon"], "", "“soon” is neither a date such as 2027-01-31"),
        (&["token", "ci", "--role", "admin", "--hash"], "hunter2\n", "32 to 512 random characters"),
        (&["token", "ci", "--role", "admin", "--hash"], "", "32 to 512 random characters"),
    ] {
        let refused = run(arguments, input);
        let error = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && error.contains(reported), "{arguments:?}: {error}");
        assert!(refused.stdout.is_empty() && !error.contains("hunter2"), "{refused:?}");
    }
}
