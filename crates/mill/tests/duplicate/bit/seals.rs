//! What was changed, removed or inserted among the reports of an account is found, and nothing else is called wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use queuekeeper_catalogue::tasks::{EndedTask, TaskOutcome};
use queuekeeper_mill::bit::mail::ReportMail;
use queuekeeper_mill::bit::reporter::Reporter;
use queuekeeper_mill::metrics::MillMetrics;
use queuekeeper_mill::stores::AccountStores;
use queuekeeper_mill::worker::{Lease, Processor as _};
use queuekeeper_store::Store;

use super::mailed::{address, waiting};
use super::reports::{report, requested, write};
use super::sealed::{Files, files, parse, replace, sha256, verify};
use super::world::Bit;
use crate::duplicate::repairs::dying::Dying;
use crate::duplicate::world::{World, main, on_all};

/// More changes than a report makes, each counted before it and behind it.
const MOST_STEPS: usize = 20;

/// Lets the next loop begin.
async fn again(world: &World) {
    world.tamper("UPDATE loops SET next_start = 0".to_owned()).await;
}

/// Four reports: the keys of their files without the endings, and what there is.
async fn four_reports(world: &World) -> ([String; 4], Files) {
    let mut bit = Bit::new(world, "read");
    write(world, &["a", "b"]).await;
    let mut keys = Vec::new();
    for _ in 0..4 {
        let stored = report(world, &mut bit).await;
        keys.push(stored.place.strip_prefix("main/account1.x-duracloud-admin/").unwrap().to_owned());
        again(world).await;
    }
    (keys.try_into().unwrap(), files(world).await)
}

/// What is said of a report, in the store alone and with the catalogue.
type Said<'a> = Vec<(&'a str, &'a str)>;

async fn assert_found(world: &World, whole: &Files, planted: &Files, store_only: &Said<'_>, catalogue: &Said<'_>) {
    replace(world, whole, planted).await;
    for (has_catalogue, expected) in [(false, store_only), (true, catalogue)] {
        let expected: Vec<_> =
            expected.iter().map(|(report, what)| format!("main/account1.x-duracloud-admin/{report}: {what}")).collect();
        assert_eq!(verify(world, has_catalogue, None).await.0, expected, "with the catalogue: {has_catalogue}");
    }
    replace(world, planted, whole).await;
}

/// A seal with other values.
fn forged(seal: &str, values: &[(&str, serde_json::Value)]) -> String {
    let mut document = parse(seal);
    for (key, value) in values {
        document[*key] = value.clone();
    }
    document.to_string()
}

on_all! {
    async fn each_seal_names_its_files_and_the_seal_before_it(world: World) {
        let (reports, whole) = four_reports(&world).await;
        let mut before = serde_json::Value::Null;
        for (number, key) in (1..).zip(&reports) {
            let text = &whole[&format!("{key}.seal.json")];
            let (seal, place) = (parse(text), format!("main/account1.x-duracloud-admin/{key}"));
            assert_eq!((seal["number"].as_u64(), &seal["previous"]), (Some(number), &before));
            assert_eq!((seal["report"].as_str(), seal["result"].as_str()), (Some(&*place), Some("success")));
            let named: BTreeMap<_, _> = seal["files"].as_object().unwrap().iter().collect();
            let stored = whole.iter().filter_map(|(file, text)| Some((file.strip_prefix(key)?.strip_prefix('.')?, text)));
            let stored: BTreeMap<_, _> = stored.filter(|(ending, _)| *ending != "seal.json").collect();
            assert_eq!(named.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["coverage.tsv", "json", "premis.xml", "tsv"]);
            for ((name, file), (ending, text)) in named.into_iter().zip(stored) {
                assert_eq!((name.as_str(), file["sha256"].as_str()), (ending, Some(&*sha256(text))));
                assert_eq!(file["bytes"].as_u64(), Some(text.len() as u64));
            }
            before = serde_json::json!({"report": place, "sha256": sha256(text)});
        }
        for has_catalogue in [false, true] {
            let first = sha256(&whole[&format!("{}.seal.json", reports[0])]);
            let (said, totals) = verify(&world, has_catalogue, Some(&first)).await;
            assert_eq!((said, totals.reports, totals.last.as_deref()), (vec![], 4, before["sha256"].as_str()));
        }
    }

    async fn what_is_changed_or_missing_among_reports_is_found(world: World) {
        let ([first, second, third, last], whole) = four_reports(&world).await;
        let file = |report: &str, ending: &str| format!("{report}.{ending}");
        let alike = async |planted: &Files, report: &str, what: &str| {
            let said = vec![(report, what)];
            assert_found(&world, &whole, planted, &said, &said).await;
        };
        // A change, a missing file and a file more.
        for report in [&second, &last] {
            let mut planted = whole.clone();
            planted.get_mut(&file(report, "tsv")).unwrap().push('x');
            alike(&planted, report, "the file .tsv was changed").await;
            let mut planted = whole.clone();
            planted.remove(&file(report, "premis.xml"));
            alike(&planted, report, "the file .premis.xml is missing").await;
            let mut planted = whole.clone();
            planted.insert(file(report, "pdf"), "more".to_owned());
            alike(&planted, report, "the file .pdf was inserted").await;
        }
        // The seal, and all of a report. The last seal is named by none in the store: that is below.
        for (report, number) in [(&first, 1), (&third, 3)] {
            let (mut planted, seal) = (whole.clone(), &whole[&file(report, "seal.json")]);
            for changed in [forged(seal, &[("result", "failure".into())]), "no seal".to_owned()] {
                planted.insert(file(report, "seal.json"), changed);
                alike(&planted, report, &format!("its seal was changed; it is report {number}")).await;
            }
            planted.remove(&file(report, "seal.json"));
            alike(&planted, report, &format!("its seal is missing; it was report {number}")).await;
            planted.retain(|key, _| !key.starts_with(&format!("{report}.")));
            alike(&planted, report, &format!("it is missing; it was report {number}")).await;
        }

        // Two that follow each other: the store alone has the name of the later one.
        let mut planted = whole.clone();
        planted.retain(|key, _| !key.starts_with(&format!("{second}.")) && !key.starts_with(&format!("{third}.")));
        let later = "it is missing; it was report 3";
        assert_found(
            &world,
            &whole,
            &planted,
            &vec![(&third, later), (&third, "the reports 2 to 2 before it are missing")],
            &vec![(&third, later), (&second, "it is missing; it was report 2")],
        )
        .await;
    }

    async fn what_is_inserted_among_reports_is_found(world: World) {
        let ([_, second, _, last], whole) = four_reports(&world).await;
        let file = |report: &str, ending: &str| format!("{report}.{ending}");
        let seal = |report: &str| whole[&file(report, "seal.json")].clone();
        // Without a seal, with that of another report, and with one of its own for a number that is taken.
        let new = second.replace("/20", "/19");
        let place = format!("main/account1.x-duracloud-admin/{new}");
        let mut planted = whole.clone();
        planted.insert(file(&new, "tsv"), "new".to_owned());
        let unnamed = "it was inserted: no seal of the chain names it";
        assert_found(
            &world,
            &whole,
            &planted,
            &vec![(&new, "it was inserted, or is being written: it has no seal")],
            &vec![(&new, "it was inserted: it has no seal")],
        )
        .await;
        planted.insert(file(&new, "seal.json"), seal(&second));
        assert_found(&world, &whole, &planted, &vec![(&new, unnamed)], &vec![(&new, unnamed)]).await;
        planted.insert(file(&new, "seal.json"), forged(&seal(&second), &[("report", place.clone().into())]));
        assert_found(&world, &whole, &planted, &vec![(&new, unnamed)], &vec![(&new, unnamed)]).await;
        planted.insert(file(&new, "seal.json"), forged(&seal(&last), &[("report", place.clone().into())]));
        replace(&world, &whole, &planted).await;
        assert_eq!(verify(&world, false, None).await.0.len(), 1, "two have the highest number");
        assert_eq!(verify(&world, true, None).await.0, [format!("{place}: {unnamed}")]);
        replace(&world, &planted, &whole).await;
    }

    async fn an_end_that_is_changed_is_found_by_who_has_it(world: World) {
        let ([first, second, third, last], whole) = four_reports(&world).await;
        let file = |report: &str, ending: &str| format!("{report}.{ending}");
        let seal = |report: &str| whole[&file(report, "seal.json")].clone();
        let new = second.replace("/20", "/19");
        let place = format!("main/account1.x-duracloud-admin/{new}");
        let unnamed = "it was inserted: no seal of the chain names it";
        // The store alone cannot know of it, but the catalogue, and one who has noted the hash of the last seal.
        let noted = sha256(&seal(&last));
        let mut planted = whole.clone();
        planted.retain(|key, _| !key.starts_with(&format!("{last}.")));
        assert_found(&world, &whole, &planted, &vec![], &vec![(&last, "it is missing; it was report 4")]).await;
        let mut appended = whole.clone();
        let previous = parse(&seal(&last))["report"].clone();
        let previous = serde_json::json!({"report": previous, "sha256": noted});
        let values = [("report", place.into()), ("number", 5.into()), ("previous", previous), ("files", serde_json::json!({}))];
        appended.insert(file(&new, "seal.json"), forged(&seal(&last), &values));
        assert_found(&world, &whole, &appended, &vec![], &vec![(&new, unnamed)]).await;
        // So is a chain that was written anew from the first report on.
        let (mut anew, mut before) = (whole.clone(), serde_json::Value::Null);
        for report in [&first, &second, &third, &last] {
            let table = "nothing was wrong".to_owned();
            let mut values = vec![("previous", before.clone())];
            if report == &first {
                let mut files = parse(&seal(report))["files"].clone();
                files["tsv"] = serde_json::json!({"bytes": table.len(), "sha256": sha256(&table)});
                values.push(("files", files));
                anew.insert(file(report, "tsv"), table);
            }
            let text = forged(&seal(report), &values);
            before = serde_json::json!({"report": parse(&text)["report"], "sha256": sha256(&text)});
            anew.insert(file(report, "seal.json"), text);
        }
        let changed = |number: u64| format!("its seal was changed; it is report {number}");
        let said = [4, 3, 2, 1].map(changed);
        let said: Said<'_> = [&last, &third, &second, &first].into_iter().map(|report| &**report).zip(said.iter().map(|what| &**what)).collect();
        assert_found(&world, &whole, &anew, &vec![], &said).await;
        for planted in [planted, anew] {
            replace(&world, &whole, &planted).await;
            assert_eq!(verify(&world, false, Some(&noted)).await.0, [format!("{noted}: no seal of the chain has this hash")]);
            replace(&world, &planted, &whole).await;
        }
    }

    async fn a_report_that_is_killed_at_any_step_ends_as_if_it_had_run_once(world: World) {
        let mut bit = Bit::new(&world, "read");
        write(&world, &["a", "b"]).await;
        world.rot("b");
        address(&mut bit);
        let dying = Arc::new(Dying::new(Arc::clone(&world.bare[&main()])));
        let stores = BTreeMap::from([(main(), Arc::clone(&dying) as Arc<dyn Store>)]);
        let (catalogue, accounts) = (world.catalogue.clone(), &bit.checker.accounts);
        bit.checker.stores = AccountStores::new(catalogue, accounts, stores, MillMetrics::default());
        let mut killed = 0;
        for step in 1..MOST_STEPS {
            let task = requested(&world, &mut bit).await;
            let (reporter, lease) = (Reporter { checker: bit.checker.clone(), mail: ReportMail::default() }, Lease::unlimited());
            dying.die_at(step);
            let first = tokio::select! {
                processed = reporter.process(&task, &lease) => Some(processed.outcome),
                () = dying.died() => None,
            };
            dying.die_at(0);
            // Nothing is called wrong, where the catalogue says what a process has left.
            assert_eq!(verify(&world, true, None).await.0, [""; 0], "{step}");
            killed += usize::from(first.is_none());
            let outcome = match first.clone() {
                Some(outcome) => outcome,
                None => reporter.process(&task, &lease).await.outcome,
            };
            assert_eq!(outcome, TaskOutcome::Done, "{step}");
            let ended = EndedTask { task, outcome, follow_ups: Vec::new(), checked: None };
            assert_eq!(world.catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
            assert_eq!(waiting(&world).await, step as u64, "each has one mail");
            for has_catalogue in [false, true] {
                let (said, totals) = verify(&world, has_catalogue, None).await;
                assert_eq!((said, totals.reports), (vec![], step as u64), "{step}");
            }
            if first.is_some() {
                break;
            }
            again(&world).await;
        }
        // Before and behind each of six changes: the space, four files, and the seal.
        assert_eq!(killed, 12);
    }
}
