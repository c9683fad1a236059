//! Policy files on their way into force.

use queuekeeper_mill::policy::{ACCOUNTS_FILE, Policy, PolicySource, apply, in_force, policy_file, read, read_policy};
use queuekeeper_store::Item;

use super::world::{World, main, on_all};

const BOTH: &str = r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "2"}]}"#;
const NONE: &str = "{}";

fn policy(text: &str) -> Policy {
    read_policy(text.as_bytes()).unwrap()
}

/// Writes the files of policies where they are.
async fn write(world: &World, source: &PolicySource, name: &str, text: &str) {
    match source {
        PolicySource::Directory(directory) => std::fs::write(directory.join(name), text).unwrap(),
        PolicySource::Space(_, space) => {
            world.bare[&main()].create_space(space).await.unwrap();
            world.put(&main(), false, &Item::new(space.clone(), name.parse().unwrap()), text, "application/json").await;
        }
    }
}

on_all! {
    async fn what_a_file_adds_is_in_force_at_once_and_what_it_ends_waits_for_an_admin(world: World) {
        let directory = tempfile::tempdir().unwrap();
        let space = "x-policies".parse().unwrap();
        let catalogue = &world.catalogue;
        let mut account = world.duplicator.accounts["account1"].clone();
        for source in [
            PolicySource::Directory(directory.path().to_owned()),
            PolicySource::Space(world.bare[&main()].clone(), space),
        ] {
            let file = policy_file(&account.name);
            let error = in_force(catalogue, &source, &account).await.unwrap_err();
            assert!(error.to_string().contains(ACCOUNTS_FILE), "{error}");
            write(&world, &source, ACCOUNTS_FILE, &format!("[{:?}]", account.name)).await;
            write(&world, &source, &file, NONE).await;
            // To look at it brings nothing into force.
            assert_eq!(read(catalogue, &source, &account).await.unwrap().policy, policy(NONE));
            assert_eq!(catalogue.policies(&account.name, None, 10).await.unwrap(), []);
            assert_eq!(in_force(catalogue, &source, &account).await.unwrap().policy, policy(NONE));
            write(&world, &source, &file, BOTH).await;
            let now = in_force(catalogue, &source, &account).await.unwrap();
            assert_eq!((now.policy, now.waiting.len(), now.error), (policy(BOTH), 0, None));

            // It ends copies, is broken, wants a store that is not there, or is gone: the last policy stays.
            write(&world, &source, &file, NONE).await;
            for _ in 0..2 {
                let now = in_force(catalogue, &source, &account).await.unwrap();
                assert_eq!((now.policy, now.waiting.len(), now.error), (policy(BOTH), 1, None));
            }
            for (text, why) in [
                ("{\"defaultPolicies\"", ""),
                (r#"{"defaultPolicies": [{"srcStoreId": "1", "destStoreId": "9"}]}"#, "has no store \"9\""),
            ] {
                write(&world, &source, &file, text).await;
                let now = in_force(catalogue, &source, &account).await.unwrap();
                assert_eq!(now.policy, policy(BOTH));
                let error = now.error.unwrap();
                assert!(error.starts_with(&file) && error.contains(why), "{error}");
                assert!(apply(catalogue, &source, &account, "ada", "why not").await.is_err());
            }
            write(&world, &source, ACCOUNTS_FILE, "[]").await;
            assert_eq!(in_force(catalogue, &source, &account).await.unwrap().policy, policy(BOTH));

            write(&world, &source, ACCOUNTS_FILE, &format!("[{:?}]", account.name)).await;
            write(&world, &source, &file, NONE).await;
            assert_eq!(apply(catalogue, &source, &account, "ada", "the replica closes").await.unwrap(), policy(NONE));
            let now = in_force(catalogue, &source, &account).await.unwrap();
            assert_eq!((now.policy, now.waiting.len()), (policy(NONE), 0));
            let history = catalogue.policies(&account.name, None, 10).await.unwrap();
            let said: Vec<_> = history.iter().map(|one| (one.user.as_str(), one.reason.as_str())).collect();
            assert_eq!((said.len(), said[0]), (3, ("ada", "the replica closes")));
            assert!(!catalogue.record_policy(&account.name, Some(history[1].id), "bob", "late", NONE).await.unwrap());
            "account2".clone_into(&mut account.name);
        }
    }
}
