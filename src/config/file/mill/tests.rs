//! Accounts as they are read.

use super::super::ConfigFile;

/// Where the reports of an account with these keys are.
fn place(keys: &str) -> Result<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.yml");
    let text = format!(
        "stores: {{main: {{url: \"file:///a\"}}, replica: {{url: \"file:///b\"}}}}\n\
         catalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill:\n  policies: {{directory: policies}}\n  accounts:\n    one:\n\
         \x20     stores: {{\"1\": main, \"2\": replica}}\n      {keys}\n"
    );
    std::fs::write(&path, text).unwrap();
    let read = ConfigFile::read(&path).map_err(|error| error.to_string())?;
    let account = &read.mill().unwrap().accounts["one"];
    Ok(format!("{}/{}", account.primary().unwrap(), account.admin_space().unwrap()))
}

#[test]
fn reports_are_in_the_primary_store_and_the_admin_space_of_the_account() {
    for (keys, expected) in [
        ("prefix: one", "main/one.x-duracloud-admin"),
        ("primary: \"2\"", "replica/x-duracloud-admin"),
        ("admin_space: x-reports", "main/x-reports"),
        ("{primary: \"2\", admin_space: x-reports, prefix: p}", "replica/p.x-reports"),
    ] {
        let keys = keys.trim_matches(['{', '}']).replace(", ", "\n      ");
        assert_eq!(place(&keys).as_deref(), Ok(expected), "{keys}");
    }
}

#[test]
fn a_primary_store_or_an_admin_space_that_cannot_be_is_refused_with_its_line() {
    let many = format!("mail: [{}]", (0..51).map(|at| format!("a{at}@b.example")).collect::<Vec<_>>().join(", "));
    let long = format!("prefix: {}", "p".repeat(50));
    for (wrong, expected) in [
        (
            "primary: \"3\"",
            "line 8: mill: accounts: one: primary: \"3\" is not the number of one of its stores; expected one of \"1\", \"2\"",
        ),
        ("primary: main", "primary: \"main\" is not the number of one of its stores"),
        ("admin_space: reports", "line 8: mill: accounts: one: admin_space: its name must begin with x-"),
        ("admin_space: x-queuekeeper-aside", "admin_space: x-queuekeeper-aside is used for something else"),
        ("admin_space: x-a/b", "line 8: mill: accounts: one: admin_space: "),
        ("mail: [\"a@b\\r\\nBcc: c@d\"]", "line 8: mill: accounts: one: mail: \"a@b  Bcc: c@d\" is not a mail address"),
        ("mail: [a@example.edu, \"\"]", "one: mail: \"\" is not a mail address"),
        (&many, "line 8: mill: accounts: one: mail: at most 50 addresses"),
        (&long, "one: admin_space: with the prefix before it, it is too long"),
    ] {
        let error = place(wrong).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
