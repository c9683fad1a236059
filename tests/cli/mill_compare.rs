//! The listing of a store and the content index side by side, from the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::stores::command;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_store_lists_is_compared_with_the_content_index() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::set_permissions(home, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["objects", "policies", "objects/theses"] {
        fs::create_dir(home.join(name)).unwrap();
    }
    let config = format!(
        "stores:\n  main: {{url: \"file://{}\"}}\ncatalogue: {{url: \"sqlite:catalogue.db\"}}\n\
         mill:\n  accounts:\n    one: {{stores: {{\"1\": main}}}}\n  policies: {{directory: policies}}\n",
        home.join("objects").display()
    );
    fs::write(home.join("config.yml"), config).unwrap();
    let file = |key: &str| home.join("objects/theses").join(key);
    for key in ["a", "b\tc", "d"] {
        fs::write(file(key), "one\n").unwrap();
    }
    let compare = async |words: &str| command(home, &format!("mill compare {words}")).await;
    compare("one").await.is(2, &["ACCOUNT/STORE"]);
    compare("one/main/theses/a").await.is(2, &["name a space, or a store"]);
    compare("one/main/none").await.is(4, &["there is no such space"]);
    compare("one/main/x-reports").await.is(4, &["x-reports” is reserved"]);
    let foreign = compare("one/main").await;
    foreign.is(7, &["one/main/theses/a: stored, not recorded\n", "3 stored, not recorded", "3 items differ"]);
    command(home, "mill adopt one/main/theses --reason ours").await.is(0, &["3 items adopted"]);
    compare("one/1").await.is(0, &["3 items with 12 bytes as recorded\n"]);
    let header = "account\tstore\tspace\tkey\tdifference\tstored_bytes\trecorded_bytes\n";
    assert_eq!(compare("one/1 --output tsv").await.out, header);
    let none = compare("one/1 --output json").await.json();
    assert_eq!(
        none,
        json!({"differences": [], "compared": {"agreeing": {"items": 3, "bytes": 12}, "differences": {}, "changing": 0}})
    );

    fs::remove_file(file("a")).unwrap();
    fs::write(file("b\tc"), "another size\n").unwrap();
    compare("one/main").await.is(
        7,
        &[
            "one/main/theses/a: recorded, not stored\n",
            "with another size: 13 bytes stored, 4 bytes recorded\n",
            "1 item with 4 bytes",
        ],
    );
    let tsv = compare("one/main --output tsv").await;
    let lines = "one\tmain\ttheses\ta\tmissing\t\t4\none\tmain\ttheses\tb%09c\tsize\t13\t4\n";
    assert_eq!((tsv.code, tsv.out.as_str()), (7, &*format!("{header}{lines}")));
    let found = compare("one/main/theses --keep --output json").await;
    let json: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((found.code, &json["differences"][1]["key_encoded"]), (7, &json!("b%09c")), "{found:?}");
    assert_eq!(json["compared"]["differences"]["missing"], json!({"items": 1, "bytes": 4}), "{found:?}");
    let place = found.err.lines().find_map(|line| line.strip_prefix("kept as main/")).unwrap();
    assert_eq!(fs::read_to_string(home.join("objects").join(place)).unwrap(), format!("{header}{lines}"));
    // What is kept there is no content of the account.
    compare("one/main").await.is(7, &["2 items differ"]);

    // A store that is not there has no space, and says so: not that all of it is missing.
    fs::rename(home.join("objects"), home.join("away")).unwrap();
    let away = compare("one/main/theses").await;
    assert!(away.code == 1 && !away.out.contains("not stored"), "{away:?}");
}
