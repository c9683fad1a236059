//! Objects, versions, files and local ids.

use queuekeeper_catalogue::ErrorKind;
use queuekeeper_catalogue::inventory::{File, NewVersion, Recorded};
use uuid::Uuid;

use super::support::{digests, on_both};

/// A first version of an object, by a job of its own.
pub(crate) fn version(ark: &str, number: u32) -> NewVersion {
    NewVersion {
        ark: ark.to_owned(),
        owner: "owner".to_owned(),
        collection: "collection".to_owned(),
        title: Some(format!("title {number}")),
        creator: None,
        date: Some("circa 1900".to_owned()),
        number,
        job: Uuid::now_v7(),
        batch: Some(Uuid::now_v7()),
        submitter: "ada".to_owned(),
        message: "a message".to_owned(),
        local_ids: Vec::new(),
    }
}

/// So many files, each with its number as its size.
pub(crate) fn files(count: u16) -> impl Iterator<Item = File> + Send {
    (0..count).map(|number| File {
        path: format!("producer/{number:05}.tif"),
        content_path: format!("v1/content/job/producer/{number:05}.tif"),
        size: number.into(),
        digests: digests(3),
        media_type: number.is_multiple_of(2).then(|| "image/tiff".to_owned()),
        is_billable: number > 3,
    })
}

on_both! {
    async fn a_version_is_recorded_once_for_its_job(world: World) {
        let (catalogue, new) = (&world.catalogue, version("ark:/99999/a", 1));
        assert_eq!(catalogue.record_version(&new, files(250)).await.unwrap(), Recorded::Now);
        let object = catalogue.object(&new.ark).await.unwrap().unwrap();
        assert_eq!(catalogue.record_version(&new, files(7)).await.unwrap(), Recorded::Before);
        assert_eq!(catalogue.object(&new.ark).await.unwrap().unwrap(), object);
        assert_eq!((object.current_version, object.title.as_deref()), (1, Some("title 1")));
        assert_eq!(object.date.as_deref(), Some("circa 1900"));
        let versions = catalogue.versions(&new.ark, None, 10).await.unwrap();
        assert_eq!((versions.len(), versions[0].job, versions[0].batch), (1, new.job, new.batch));
        assert_eq!((versions[0].file_count, versions[0].byte_count), (250, 249 * 250 / 2));
        assert_eq!(catalogue.version_of_job(new.job).await.unwrap(), Some((new.ark.clone(), 1)));
        assert_eq!(catalogue.version_of_job(Uuid::from_u128(7)).await.unwrap(), None);
        // By pages, and in order.
        let (mut listed, mut after) = (Vec::new(), String::new());
        loop {
            let page = catalogue.files(&new.ark, 1, &after, 99).await.unwrap();
            let Some(last) = page.last() else { break };
            after.clone_from(&last.path);
            listed.extend(page);
        }
        assert_eq!(listed, files(250).collect::<Vec<_>>());
    }

    async fn versions_may_be_recorded_in_any_order_and_the_newest_describes_the_object(world: World) {
        let catalogue = &world.catalogue;
        for number in [2, 3, 1] {
            catalogue.record_version(&version("ark:/99999/a", number), files(1)).await.unwrap();
        }
        let object = catalogue.object("ark:/99999/a").await.unwrap().unwrap();
        assert_eq!((object.current_version, object.title.as_deref()), (3, Some("title 3")));
        let numbers = |versions: Vec<queuekeeper_catalogue::inventory::Version>| {
            versions.iter().map(|version| version.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(catalogue.versions("ark:/99999/a", None, 2).await.unwrap()), [3, 2]);
        assert_eq!(numbers(catalogue.versions("ark:/99999/a", Some(2), 2).await.unwrap()), [1]);
    }

    async fn what_contradicts_the_inventory_is_refused_and_leaves_nothing(world: World) {
        let catalogue = &world.catalogue;
        let first = NewVersion { local_ids: vec!["id-1".to_owned()], ..version("ark:/99999/a", 1) };
        catalogue.record_version(&first, files(2)).await.unwrap();
        let same_number = version("ark:/99999/a", 1);
        let same_id = NewVersion {
            local_ids: vec!["id-0".to_owned(), "id-1".to_owned()], ..version("ark:/99999/b", 1)
        };
        let other_owner = NewVersion { owner: "other".to_owned(), ..version("ark:/99999/a", 2) };
        let nul = NewVersion { title: Some("a\0b".to_owned()), ..version("ark:/99999/b", 1) };
        for (new, what) in [
            (nul, "NUL"),
            (same_number, "version 1 of ark:/99999/a was recorded for another job"),
            (same_id, "local id \"id-1\" belongs to ark:/99999/a"),
            (other_owner, "belongs to owner \"owner\""),
        ] {
            let error = catalogue.record_version(&new, files(2)).await.unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Refused(_)) && error.to_string().contains(what), "{error}");
        }
        assert_eq!(catalogue.object("ark:/99999/b").await.unwrap(), None);
        assert_eq!(world.number("SELECT COUNT(*) FROM files").await, 2);
        assert_eq!(catalogue.local_ids("owner", "ark:/99999/a", "", 10).await.unwrap(), ["id-1"]);
        let found = catalogue.object_by_local_id("owner", "id-1").await.unwrap().unwrap();
        assert_eq!(found.ark, "ark:/99999/a");
        assert_eq!(catalogue.object_by_local_id("other", "id-1").await.unwrap(), None);
        assert_eq!(catalogue.check().await.unwrap(), []);
    }

    async fn objects_are_listed_in_byte_order_by_pages(world: World) {
        let catalogue = &world.catalogue;
        // An order by language would take the second before the first, and "Z" last.
        let arks = ["ark:/99999/Z", "ark:/99999/a-b", "ark:/99999/ab", "ark:/99999/\u{e9}"];
        for ark in [2, 0, 3, 1].map(|at| arks[at]) {
            catalogue.record_version(&version(ark, 1), files(0)).await.unwrap();
        }
        let elsewhere = NewVersion { collection: "other".to_owned(), ..version("ark:/99999/c", 1) };
        catalogue.record_version(&elsewhere, files(0)).await.unwrap();
        let mut after = String::new();
        let mut listed = Vec::new();
        while let Some(object) = catalogue.objects(Some("collection"), &after, 1).await.unwrap().pop() {
            after.clone_from(&object.ark);
            listed.push(object.ark);
        }
        assert_eq!(listed, arks);
        let all = catalogue.objects(None, "ark:/99999/ab", 10).await.unwrap();
        assert_eq!(all.iter().map(|object| &*object.ark).collect::<Vec<_>>(), ["ark:/99999/c", "ark:/99999/\u{e9}"]);
    }

    async fn objects_are_found_by_the_beginning_of_their_titles_by_pages(world: World) {
        let catalogue = &world.catalogue;
        let long = "x".repeat(5_000);
        let titles = ["Map", "map", "MAPS of the \u{e9}", "Maple", "\u{c9}t\u{e9}", "100 % of_it", "Mao", &long];
        for (at, title) in titles.iter().enumerate() {
            let collection = if at == 3 { "other" } else { "collection" }.to_owned();
            let new = version(&format!("ark:/99999/{}", 9 - at), 1);
            let new = NewVersion { title: Some((*title).to_owned()), collection, ..new };
            catalogue.record_version(&new, files(0)).await.unwrap();
        }
        let untitled = NewVersion { title: None, ..version("ark:/99999/none", 1) };
        catalogue.record_version(&untitled, files(0)).await.unwrap();
        let found = async |collection: Option<&str>, beginning: &str, limit: u32| {
            let (mut after, mut found) = (String::new(), Vec::new());
            loop {
                let page = catalogue.objects_by_title(collection, beginning, &after, limit).await.unwrap();
                let Some(last) = page.last() else { return found };
                after.clone_from(&last.ark);
                assert!(page.len() <= limit as usize);
                found.extend(page.into_iter().map(|object| object.title.unwrap()));
            }
        };
        for limit in [1, 2, 3, 100] {
            // Titles that are the same but for case are in the order of their ARKs.
            assert_eq!(found(None, "mAp", limit).await, ["map", "Map", "Maple", "MAPS of the \u{e9}"], "{limit}");
            assert_eq!(found(Some("collection"), "map", limit).await, ["map", "Map", "MAPS of the \u{e9}"], "{limit}");
        }
        assert_eq!(found(Some("other"), "map", 2).await, ["Maple"]);
        assert_eq!(found(None, "maps of the \u{e9}", 2).await.len(), 1);
        assert_eq!(found(None, "\u{c9}T", 2).await, ["\u{c9}t\u{e9}"]);
        // No character is a wildcard.
        assert_eq!(found(None, "100 % o", 2).await.len(), 1);
        for nothing in ["%", "_", "maz", "\0", "ap"] {
            assert_eq!(found(None, nothing, 2).await, [""; 0], "{nothing:?}");
        }
        assert_eq!(found(None, &long[..300], 2).await, [&*long]);
    }

    async fn the_same_version_recorded_by_many_at_once_is_one(world: World) {
        let new = NewVersion { local_ids: vec!["b".to_owned(), "a".to_owned()], ..version("ark:/99999/a", 1) };
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let (catalogue, new) = (world.catalogue.clone(), new.clone());
            tasks.spawn(async move { catalogue.record_version(&new, files(120)).await.unwrap() });
        }
        let mut outcomes = tasks.join_all().await;
        outcomes.retain(|outcome| *outcome == Recorded::Now);
        assert_eq!(outcomes.len(), 1);
        assert_eq!(world.number("SELECT COUNT(*) FROM files").await, 120);
        assert_eq!(world.catalogue.check().await.unwrap(), []);
    }
}
