//! Reserved ARKs and local ids.

use std::time::Duration;

use queuekeeper_catalogue::ErrorKind;
use queuekeeper_catalogue::identifiers::{Request, Reserved};
use queuekeeper_catalogue::object_intents::ObjectIntent;
use uuid::Uuid;

use super::inventory::{files, version};
use super::support::on_both;

fn request(candidate: &str, local_ids: &[&str]) -> Request {
    Request {
        job: Uuid::now_v7(),
        owner: "owner".to_owned(),
        local_ids: local_ids.iter().map(ToString::to_string).collect(),
        candidate: candidate.to_owned(),
        is_registered: false,
        place: ("main".to_owned(), "demo".to_owned()),
    }
}

fn ark(ark: &str, is_registered: bool) -> Reserved {
    Reserved::Ark { ark: ark.to_owned(), is_registered }
}

on_both! {
    async fn a_job_gets_what_it_has_and_another_with_its_local_id_gets_the_same(world: World) {
        let (catalogue, first) = (&world.catalogue, request("ark:/99999/a", &["id-1", "id-2"]));
        assert_eq!(catalogue.reserve(&first).await.unwrap(), ark("ark:/99999/a", false));
        let again = Request { candidate: "ark:/99999/again".to_owned(), ..first.clone() };
        assert_eq!(catalogue.reserve(&again).await.unwrap(), ark("ark:/99999/a", false));
        assert!(catalogue.registered("ark:/99999/a").await.unwrap());
        assert!(!catalogue.registered("ark:/99999/unknown").await.unwrap());
        let second = request("ark:/99999/b", &["id-2", "id-3"]);
        assert_eq!(catalogue.reserve(&second).await.unwrap(), ark("ark:/99999/a", true));
        let other_owner = Request { owner: "other".to_owned(), ..request("ark:/99999/c", &["id-1"]) };
        assert_eq!(catalogue.reserve(&other_owner).await.unwrap(), ark("ark:/99999/c", false));
        let unlisted = Request { is_registered: true, ..request("ark:/99999/d", &[]) };
        for _again in 0..2 {
            assert_eq!(catalogue.reserve(&unlisted).await.unwrap(), ark("ark:/99999/d", true));
        }
        assert_eq!(catalogue.local_ids("owner", "ark:/99999/a", "id-1", 9).await.unwrap(), ["id-2", "id-3"]);
    }

    async fn a_candidate_that_is_taken_is_a_collision_and_leaves_nothing(world: World) {
        let catalogue = &world.catalogue;
        catalogue.reserve(&request("ark:/99999/a", &[])).await.unwrap();
        catalogue.record_version(&version("ark:/99999/b", 1), files(0)).await.unwrap();
        // The owner of a job that has reserved it, which no other owner's job may take for its own.
        for (taken, owner) in [("ark:/99999/a", Some("owner".to_owned())), ("ark:/99999/b", None)] {
            let found = catalogue.reserve(&request(taken, &["id"])).await.unwrap();
            assert_eq!(found, Reserved::Collision { owner });
        }
        assert_eq!(world.number("SELECT COUNT(*) FROM local_ids").await, 0);
        assert_eq!(world.number("SELECT COUNT(*) FROM identifiers").await, 1);
    }

    async fn a_job_intends_a_version_from_its_reservation_until_its_record(world: World) {
        let catalogue = &world.catalogue;
        let intents = async || catalogue.object_intents(Duration::ZERO, None, 10).await.unwrap();
        let job = version("ark:/99999/a", 1);
        let first = Request { job: job.job, ..request("ark:/99999/a", &["id-1"]) };
        catalogue.reserve(&first).await.unwrap();
        // Of an object that exists, and of one that the local id leads to.
        let others = [request("ark:/99999/a", &[]), request("ark:/99999/c", &["id-1"])];
        for other in &others {
            catalogue.reserve(other).await.unwrap();
        }
        let mut found = intents().await;
        assert!(found.iter().all(|intent| (intent.ark.as_str(), intent.space.as_str()) == ("ark:/99999/a", "demo")));
        assert_eq!(found.len(), 3);
        assert_eq!(catalogue.object_intents(Duration::ZERO, Some(&found[1]), 10).await.unwrap(), [found.remove(2)]);
        assert!(catalogue.object_intents(Duration::from_mins(1), None, 10).await.unwrap().is_empty());
        catalogue.record_version(&job, files(0)).await.unwrap();
        let left = intents().await;
        assert!(left.len() == 2 && left.iter().all(|intent| intent.job != job.job), "{left:?}");
        catalogue.end_object_intent(&left[0]).await.unwrap();
        let stale = ObjectIntent { begun_ms: 0, ..left[1].clone() };
        catalogue.end_object_intent(&stale).await.unwrap();
        assert_eq!(intents().await, left[1..]);
    }

    async fn content_that_was_given_up_is_replaced_under_another_name_and_none_is_that_was_stored_since(world: World) {
        let catalogue = &world.catalogue;
        let (request, ark) = (request("ark:/99999/a", &[]), "ark:/99999/a");
        let job = request.job;
        catalogue.reserve(&request).await.unwrap();
        let listed = async || {
            world.tamper("UPDATE object_intents SET begun = begun - 1000").await;
            catalogue.object_intents(Duration::ZERO, None, 10).await.unwrap().remove(0)
        };
        let stored = async |within| catalogue.store_content(job, ark, &request.place, within).await.unwrap();
        let hour = Duration::from_hours(1);
        for (by, is_intended) in [(job, false), (Uuid::nil(), true)] {
            assert_eq!(catalogue.is_intended_by_another(by, ark).await.unwrap(), is_intended);
        }
        // What the reservation says is fresh.
        let intent = listed().await;
        assert_eq!(stored(hour).await, job);
        assert!(catalogue.give_up_content(job, Some(&intent)).await.unwrap());
        let second = stored(hour).await;
        assert_ne!(second, job);
        assert_eq!(catalogue.content_folders(job).await.unwrap(), (vec![job], second));
        // It was stored again since.
        assert_eq!(stored(Duration::ZERO).await, second);
        assert!(!catalogue.give_up_content(second, Some(&intent)).await.unwrap());
        assert_eq!(stored(hour).await, second);
        // Both at once: it is given up before, or stored under this name, and never both.
        for _round in 0..20 {
            let (intent, (_, in_use)) = (listed().await, catalogue.content_folders(job).await.unwrap());
            let giving_up = catalogue.give_up_content(in_use, Some(&intent));
            let (is_given_up, name) = tokio::join!(giving_up, stored(Duration::ZERO));
            assert_ne!(is_given_up.unwrap(), name == in_use);
        }
        // One whose reservation is gone has an intent again.
        world.tamper("DELETE FROM object_intents").await;
        let name = stored(hour).await;
        assert_eq!(listed().await.job, job);
        assert!(catalogue.give_up_content(name, None).await.unwrap());
        assert_ne!(stored(hour).await, name);
    }

    async fn local_ids_of_different_objects_are_refused(world: World) {
        let catalogue = &world.catalogue;
        catalogue.reserve(&request("ark:/99999/a", &["id-1"])).await.unwrap();
        catalogue.reserve(&request("ark:/99999/b", &["id-2"])).await.unwrap();
        let error = catalogue.reserve(&request("ark:/99999/c", &["id-2", "id-1"])).await.unwrap_err();
        assert!(matches!(&error.kind, ErrorKind::Refused(text) if text.contains("id-1") && text.contains("id-2")));
        assert_eq!(world.number("SELECT COUNT(*) FROM identifiers").await, 2);
    }

    async fn many_jobs_with_one_local_id_at_once_get_one_ark(world: World) {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let catalogue = world.catalogue.clone();
            let own = format!("own-{number}");
            let request = request(&format!("ark:/99999/{number}"), &["z", &own, "a"]);
            tasks.spawn(async move { catalogue.reserve(&request).await.unwrap() });
        }
        let mut got = tasks.join_all().await;
        got.dedup();
        assert_eq!(got.len(), 1);
        assert_eq!(world.number("SELECT COUNT(*) FROM identifiers").await, 1);
        assert_eq!(world.number("SELECT COUNT(*) FROM local_ids").await, 22);
    }
}
