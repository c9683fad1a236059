//! What a loop of checks still takes, while it is under way.

use jiff::Timestamp;
use queuekeeper_catalogue::pauses::PauseScope;
use queuekeeper_catalogue::tasks::TaskKind;
use queuekeeper_mill::bit::forecast::{Forecast, Need, forecast};
use queuekeeper_mill::producer::Step;

use super::world::Bit;
use crate::duplicate::world::{item, main, on_all};

async fn seen(bit: &Bit) -> Option<Forecast> {
    seen_at(bit, Timestamp::now()).await
}

async fn seen_at(bit: &Bit, now: Timestamp) -> Option<Forecast> {
    forecast(&bit.checker.catalogue, &bit.checker.accounts, now).await.unwrap()
}

on_all! {
    async fn a_forecast_has_what_is_listed_and_what_is_not_and_ends_by_what_was_checked_lately(world: World) {
        let (mut bit, catalogue) = (Bit::new(&world, "read"), &world.catalogue);
        for at in 0..12 {
            world.put(&main(), true, &item(&format!("{at:02}")), "0123456789", "text/plain").await;
        }
        bit.producer.part = 1;
        assert_eq!(seen(&bit).await, None);
        assert_eq!(bit.producer.step().await.unwrap(), Step::Advanced);
        let whole = seen(&bit).await.unwrap();
        assert_eq!((whole.left.items, whole.left.bytes, whole.ends), (12, 120, None));
        assert_eq!(whole.needs[&main()], Need { requests: 14, bytes: 120 });

        // Ten pages are requested, and four of them are done: nothing is counted twice, and nothing is left out.
        assert_eq!(bit.producer.step().await.unwrap(), Step::Advanced);
        for _ in 0..4 {
            assert!(bit.process(TaskKind::BitPage).await.is_some());
        }
        while catalogue.fold().await.unwrap() > 0 {}
        let now = Timestamp::now();
        let rest = seen_at(&bit, now).await.unwrap();
        assert_eq!((rest.left.items, rest.left.bytes), (8, 80));
        let ends = rest.ends.unwrap();
        assert!(ends > now, "{ends}");

        // A pause keeps the loop from its end, for nobody knows how long.
        let paused = PauseScope::new(None, Some(main())).unwrap();
        assert!(catalogue.pause(&paused, "ada", "disks").await.unwrap());
        assert_eq!(seen(&bit).await.unwrap().ends, None);
        assert!(catalogue.resume(&paused).await.unwrap().is_some());
        world.rot("11");
        while bit.producer.step().await.unwrap() != Step::Checking {}
        while bit.process(TaskKind::BitPage).await.is_some() {}
        assert_eq!(seen(&bit).await, None);
        bit.run_loop().await;
        assert_eq!(seen(&bit).await, None);
    }
}
