//! The same as of a server without them, of one with a catalogue and a mill: what they add is refused to those without
//! the role, and open to those with it.

use std::path::Path;

use queuekeeper::actions::Role;
use queuekeeper_catalogue::Catalogue;
use queuekeeper_testkit::tree::{Tree, read_tree};
use reqwest::Method;

use super::roles::{Answers, MESSAGES, everyone_without_the_role_is_refused};
use super::site::{Examples, Route, Site};
use super::world::World;

/// What only an admin may, by the ends of its routes: to change policies, to let take effect what was held, and to let
/// repairs start again.
const OF_ADMINS: [&str; 5] =
    ["/mill/policies/{account}", "/mill/policies/{account}/plan", "/mill/held", "/mill/held/decide", "/repairs/resume"];

const CLOCK: &str = "/queuekeeper/clock";

/// Whether a route is of the catalogue or the mill, on pages or in the API.
fn is_new(route: &Route) -> bool {
    let path = route.pattern.trim_start_matches("/api/v1");
    path.starts_with("/mill") || path.starts_with("/objects")
}

/// The tree, how many lines the audit trail has, and what of the mill may be changed: pauses, stops, checks, and files.
async fn all_of(world: &World, home: &Path) -> (Tree, usize, [usize; 4]) {
    let catalogue = Catalogue::open(&format!("sqlite:{}/catalogue.db", home.display())).await.unwrap();
    let of_mill = [
        catalogue.pauses().await.unwrap().len(),
        catalogue.repair_stops().await.unwrap().len(),
        catalogue.requested_checks("account1", None, 10).await.unwrap().len(),
        std::fs::read_dir(home.join("policies")).unwrap().count(),
    ];
    catalogue.close().await;
    let mut tree = read_tree(&world.client, "/", &[]).await;
    // Written from time to time, whoever asks.
    tree.remove(CLOCK);
    (tree, world.audited_by_whole().len(), of_mill)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_the_role_are_refused_on_every_route_of_a_catalogue_and_a_mill() {
    let world = Box::pin(World::start()).await;
    world.failed_job(1, "404 for a file").await;
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let site = Site::with_mill(&world, home).await;
    let examples = Examples::new(&site).await;
    let mut routes = site.routes(&examples).await;
    // Who may send messages is tried on a server without a mill, and what becomes of them elsewhere.
    routes.retain(|route| !MESSAGES.contains(&&*route.pattern));
    let added: Vec<_> = routes.iter().filter(|route| is_new(route)).collect();
    let taking = added.iter().filter(|route| route.takes(&Method::POST)).count();
    assert!(added.len() > 30 && taking >= 15, "{} routes, of which {taking} take something", added.len());
    let before = all_of(&world, home).await;
    let answers = Answers {
        messages: &[],
        is_read: |route| is_new(route),
        // There is no object, no report, no space and no comparison.
        is_missing: |route| is_new(route) || ["/lists/{id}", "/api/v1/rules"].contains(&&*route.pattern),
    };
    everyone_without_the_role_is_refused(&site, &routes, &answers).await;
    assert_eq!(all_of(&world, home).await, before, "nobody has requested anything");

    // What an admin may is refused to an operator, and both may the rest.
    for role in [Role::Operator, Role::Admin] {
        let who = site.asker(role);
        for route in added.iter().filter(|route| route.takes(&Method::POST)) {
            let answer = site.send(who, &Method::POST, route).await;
            let what = format!("{} as {role}: {} {}", route.pattern, answer.code, answer.text);
            if role == Role::Operator && OF_ADMINS.iter().any(|end| route.pattern.ends_with(end)) {
                assert_eq!(answer.code, 403, "{what}");
            } else {
                assert!(![400, 401, 403, 405, 413, 415].contains(&answer.code) && answer.code < 500, "{what}");
            }
        }
    }
    assert!(OF_ADMINS.iter().all(|end| added.iter().any(|route| route.pattern.ends_with(end))));
    let after = all_of(&world, home).await;
    assert!(after.1 > before.1, "an admin has stopped repairs, and more");
}
