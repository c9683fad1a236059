//! A check at once, in the foreground.

use queuekeeper_mill::bit::verify::{Said, Scope, Totals};
use queuekeeper_store::error::Operation;
use queuekeeper_testkit::faulty::{Fault, Rule};

use super::world::Bit;
use crate::duplicate::world::{item, main, on_all};

fn scope(space: Option<&str>, key: Option<&str>) -> Scope {
    let space = space.map(|space| space.parse().unwrap());
    Scope { account: "account1".to_owned(), store: main(), space, key: key.map(|key| item(key).key) }
}

async fn verify(bit: &Bit, scope: &Scope) -> (Totals, Vec<String>) {
    let mut lines = Vec::new();
    let mut say = |said: Said| match said {
        Said::Progress(_) => {}
        Said::Wrong(space, key, verdict) => lines.push(format!("{space}/{key}: {verdict}")),
        Said::Unchecked(space, key, why) => lines.push(format!("{space}/{key}: not checked: {why}")),
    };
    let totals = bit.checker.verify(scope, &mut say).await.unwrap();
    (totals, lines)
}

on_all! {
    async fn what_is_wrong_is_said_at_once_and_written_down(world: World) {
        // Whatever the policy says, it reads.
        let bit = Bit::new(&world, "provider");
        for key in ["a", "b", "c"] {
            world.put(&main(), true, &item(key), "content", "text/plain").await;
        }
        let (totals, lines) = verify(&bit, &scope(None, None)).await;
        assert_eq!((totals.proven, totals.bytes, totals.wrong, totals.unchecked, lines.len()), (3, 21, 0, 0, 0));
        let proven = world.catalogue.copy(&main(), &item("a")).await.unwrap().unwrap().proven;
        assert_eq!(proven.map(|(_, proof)| proof).as_deref(), Some("read"));

        world.rot("b");
        world.bare[&main()].delete(&item("c"), None).await.unwrap();
        let (totals, lines) = verify(&bit, &scope(Some("theses"), None)).await;
        assert_eq!((totals.proven, totals.wrong), (1, 2));
        assert_eq!(lines, ["theses/b: content damaged", "theses/c: content missing"]);
        assert_eq!(bit.errors().await.len(), 2);
        // It is right again; then it cannot be read.
        world.rot("b");
        assert_eq!(verify(&bit, &scope(Some("theses"), Some("b"))).await.0.proven, 1);
        assert_eq!(bit.errors().await.len(), 1);
        bit.faults.add(Rule::new(Fault::Temporary).on(Operation::Get));
        let (totals, lines) = verify(&bit, &scope(Some("theses"), Some("b"))).await;
        assert_eq!(totals.unchecked, 1);
        assert!(lines[0].starts_with("theses/b: not checked: "), "{lines:?}");

        // What is requested by name may not be there.
        assert_eq!(verify(&bit, &scope(Some("theses"), Some("none"))).await.0, Totals::default());
        let elsewhere = Scope { store: "nowhere".parse().unwrap(), ..scope(None, None) };
        assert!(bit.checker.verify(&elsewhere, &mut |_said| {}).await.is_err());
    }
}
