//! A catalogue as its users fill it, with odd but legal content in all tables, and what its readers say of it.

use std::time::Duration;

use jiff::Timestamp;
use queuekeeper_store::audit::{AuditSink as _, Change, Intent, Settlement, Subject};
use queuekeeper_store::store::{EntityTag, Item};
use queuekeeper_store::{Algorithm, Digest, Digests, Key, SpaceName, StoreName};
use uuid::Uuid;

use crate::Catalogue;
use crate::asides::NewAside;
use crate::bit::{CheckedItem, CheckedPart, Evidence, LoneItem, NewPage, NewReport, NewRequestedCheck, PageEnd, Wrong};
use crate::brake::{BrakeLimit, Braked};
use crate::comparisons::NewComparison;
use crate::deposits::NewDeposit;
use crate::identifiers::Request;
use crate::inventory::{File, NewVersion};
use crate::loops::{Advance, Lead, Morsel};
use crate::outbox::{Attempt, NewMessage};
use crate::pauses::PauseScope;
use crate::repairs::NewRepair;
use crate::tasks::{
    Decided, Decision, EndedTask, MillProcess, NewTask, TakenTask, TaskKind, TaskOutcome, TaskQueue, TaskState,
    TaskSubject, Tasks,
};

/// Longer than all migrations take: some readers say whether a lease lasts.
const LEASE: Duration = Duration::from_hours(10);
const MONTH: Duration = Duration::from_hours(30 * 24);

/// Near the largest that sums of a few have room for.
const HUGE: u64 = 1 << 60;

pub(super) const ARK: &str = "ark:/99999/fk4ü";
const OWNER: &str = "ark:/99999/owner";
const DEPOSITOR: &str = "adà";
const ACCOUNT: &str = "account";

/// What SQL, JSON and terminals might take for something else, without what no catalogue holds: a NUL.
const ODD: &str = "Üß 𝔘\u{202e}\u{300} \"quoted\" 'single' ; -- $1 {now} %_ \\ <b>&amp;";

fn main() -> StoreName {
    "main".parse().unwrap()
}

fn space() -> SpaceName {
    "space-a".parse().unwrap()
}

/// A key that is no text.
fn raw() -> Key {
    Key::new(*b"\x00\xff'\\ %\n\xc3").unwrap()
}

fn key(name: &str) -> Key {
    Key::new(name.as_bytes()).unwrap()
}

fn item(key: Key) -> Item {
    Item::new(space(), key)
}

fn digests(number: u8) -> Digests {
    [Digest::new(Algorithm::Md5, &[number; 16]), Digest::new(Algorithm::Sha256, &[number; 32])]
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn version(number: u32, title: Option<&str>) -> NewVersion {
    NewVersion {
        ark: ARK.to_owned(),
        owner: OWNER.to_owned(),
        collection: "collection".to_owned(),
        title: title.map(str::to_owned),
        creator: None,
        date: Some("ca. −44".to_owned()),
        number,
        job: Uuid::now_v7(),
        batch: (number > 1).then(Uuid::now_v7),
        submitter: DEPOSITOR.to_owned(),
        message: String::new(),
        local_ids: vec![format!("id {number} {ODD}")],
    }
}

fn file(path: &str, size: u64) -> File {
    let content_path = format!("v1/content/{path}");
    File { path: path.to_owned(), content_path, size, digests: digests(3), media_type: None, is_billable: size > 0 }
}

/// Records a change of an item, or of the space where there is no key.
async fn change(catalogue: &Catalogue, change: Change, key: Option<Key>, settlement: impl Into<Option<Settlement>>) {
    let intent = Intent {
        id: Uuid::now_v7(),
        holder: Uuid::now_v7(),
        user: DEPOSITOR.to_owned(),
        subject: Subject { store: main(), space: space(), key },
        change,
        seen: None,
        size: None,
        digests: Digests::default(),
        source: None,
        upload: None,
        properties: (change == Change::Properties).then(|| format!("{{\"é\":{ODD:?}}}")),
    };
    catalogue.begin(&intent, LEASE).await.unwrap();
    if let Some(settlement) = settlement.into() {
        catalogue.settle(&intent, &settlement).await.unwrap();
    }
}

fn done(change: Change, number: u8, size: u64) -> Settlement {
    let etag = Some(EntityTag(format!("{ODD} {number}")));
    Settlement::Done { change, etag, size: Some(size), digests: digests(number) }
}

fn task(kind: TaskKind, queue: TaskQueue, key: Option<Key>) -> NewTask {
    let subject = TaskSubject { kind, account: ACCOUNT.to_owned(), space: space(), key, destination: Some(main()) };
    NewTask { queue, subject, source: Some("replica".parse().unwrap()) }
}

async fn take(catalogue: &Catalogue, queue: TaskQueue, kind: TaskKind) -> TakenTask {
    let tasks = Tasks { queue, account: ACCOUNT, kinds: &[kind], limit: 1 };
    catalogue.take_tasks(&tasks, "worker-1", LEASE).await.unwrap().remove(0)
}

async fn end(catalogue: &Catalogue, task: TakenTask, outcome: TaskOutcome, checked: Option<CheckedPart>) {
    let ended = EndedTask { task, outcome, follow_ups: Vec::new(), checked };
    assert_eq!(catalogue.end_tasks(&[ended]).await.unwrap(), [true]);
}

/// Fills all tables.
pub(super) async fn write(catalogue: &Catalogue) {
    inventory(catalogue).await;
    deposits(catalogue).await;
    content(catalogue).await;
    bit(catalogue).await;
    mill(catalogue).await;
}

/// What a program does with a catalogue that it has brought up to date: new rows beside those that were there.
pub(super) async fn write_more(catalogue: &Catalogue) {
    catalogue.record_version(&version(3, Some(ODD)), [file("a", 1)]).await.unwrap();
    change(catalogue, Change::Update, Some(key("later")), done(Change::Update, 9, 9)).await;
    let new = NewDeposit {
        batch: Uuid::now_v7(),
        depositor: DEPOSITOR.to_owned(),
        idempotency_key: None,
        profile: "demo".to_owned(),
        objects: 1,
        bytes: 1,
    };
    catalogue.record_deposit(&new).await.unwrap();
    catalogue.queue_message(&message("later")).await.unwrap();
    catalogue.put_tasks(&[task(TaskKind::Duplicate, TaskQueue::DuplicationLow, Some(key("later")))]).await.unwrap();
    catalogue.fold().await.unwrap();
}

async fn inventory(catalogue: &Catalogue) {
    let first = version(1, None);
    let reserve = |job, ids: &[String], candidate: &str, is_registered| Request {
        job,
        owner: OWNER.to_owned(),
        local_ids: ids.to_vec(),
        candidate: candidate.to_owned(),
        is_registered,
        place: ("main".to_owned(), "space-a".to_owned()),
    };
    catalogue.reserve(&reserve(first.job, &first.local_ids, ARK, true)).await.unwrap();
    catalogue.reserve(&reserve(Uuid::now_v7(), &[], "ark:/99999/fk4reserved", false)).await.unwrap();
    let files = [file("producer/ß 'n' \"q\".tif", HUGE), file("system/empty", 0)];
    catalogue.record_version(&first, files).await.unwrap();
    catalogue.record_version(&version(2, Some(ODD)), [file(ODD, 7)]).await.unwrap();
    catalogue
        .store_content(Uuid::now_v7(), "ark:/99999/fk4begun", &("main".to_owned(), "space-a".to_owned()), LEASE)
        .await
        .unwrap();
    assert!(catalogue.give_up_content(Uuid::now_v7(), None).await.unwrap());
}

fn message(name: &str) -> NewMessage {
    NewMessage {
        name: name.to_owned(),
        kind: "mail".to_owned(),
        subject: Uuid::now_v7(),
        batch: "bid-1".to_owned(),
        profile: "demo".to_owned(),
        recipient: "keeper@example.edu".to_owned(),
        content: format!("Subject: {ODD}\r\n\r\n{ODD}"),
        settled: None,
    }
}

async fn deposits(catalogue: &Catalogue) {
    let (one, part) = (Uuid::now_v7(), Uuid::now_v7());
    for (batch, key) in [(one, Some(ODD)), (Uuid::now_v7(), None)] {
        let new = NewDeposit {
            batch,
            depositor: DEPOSITOR.to_owned(),
            idempotency_key: key.map(str::to_owned),
            profile: "demo".to_owned(),
            objects: 3,
            bytes: HUGE,
        };
        catalogue.record_deposit(&new).await.unwrap();
    }
    catalogue.record_part(one, 2, part, 40_000).await.unwrap();
    catalogue.deposit_ended(one, "completed").await.unwrap();
    catalogue.queue_message(&message("BATCH/1")).await.unwrap();
    let taken = catalogue.take_messages("mail", 10, LEASE).await.unwrap();
    catalogue.message_tried(taken[0].id, Attempt::Delivered { note: Some(ODD) }).await.unwrap();
    catalogue.queue_message(&message(ODD)).await.unwrap();
}

async fn content(catalogue: &Catalogue) {
    change(catalogue, Change::CreateSpace, None, done(Change::CreateSpace, 0, 0)).await;
    for (number, name) in [raw(), key("a"), key("b"), key("gone"), key("later")].into_iter().enumerate() {
        let number = u8::try_from(number).unwrap();
        let size = if number == 0 { HUGE } else { number.into() };
        change(catalogue, Change::Add, Some(name), done(Change::Add, number, size)).await;
    }
    change(catalogue, Change::Delete, Some(key("gone")), done(Change::Delete, 3, 3)).await;
    change(catalogue, Change::Properties, Some(key("a")), done(Change::Properties, 1, 1)).await;
    change(catalogue, Change::Add, Some(key("never")), Settlement::NotDone).await;
    let why = ODD.to_owned();
    let seen = Settlement::Observed { etag: None, size: Some(HUGE), digests: Digests::default(), why };
    change(catalogue, Change::Update, Some(key("later")), seen).await;
    change(catalogue, Change::Update, Some(raw()), None::<Settlement>).await;
    catalogue.follow_audit("duplication", 3, |_event| Vec::new()).await.unwrap();
}

fn morsel() -> Morsel {
    Morsel {
        account: ACCOUNT.to_owned(),
        space: space(),
        source: main(),
        destination: main(),
        marker: None,
        error: None,
        items: 3,
        scanned: 0,
    }
}

async fn checked(catalogue: &Catalogue, key: Key, wrong: Option<Wrong>) -> CheckedItem {
    let records = catalogue.records_of_item(&main(), &item(key.clone())).await.unwrap();
    CheckedItem {
        item: item(key),
        id: records.as_ref().map(|records| records.id),
        bytes: 7,
        result: if wrong.is_some() { "failure" } else { "success" },
        proof: wrong.is_none().then_some("read"),
        seq: records.and_then(|records| records.index).map(|index| index.seq),
        evidence: Evidence { content: Some(format!("{{\"size\":{HUGE}}}")), ..Evidence::default() },
        wrong,
        is_missing: false,
        unread: None,
    }
}

/// Two loops: the reports on the first are recorded, and the second has items that are checked alone.
async fn bit(catalogue: &Catalogue) {
    let holder = Uuid::now_v7();
    for number in 1..=3 {
        let lead = catalogue.lead("bit", holder, LEASE).await.unwrap().unwrap();
        assert!(catalogue.begin_loop(&lead, &[morsel()], LEASE).await.unwrap());
        let lead = Lead { number, ..catalogue.lead("bit", holder, LEASE).await.unwrap().unwrap() };
        let page = NewPage { behind: None, last: None, items: 3, bytes: HUGE };
        assert!(catalogue.advance_bit(&lead, &morsel(), (&Advance::Done(3), "read"), &[page]).await.unwrap());
        let run = catalogue.open_bit_run(ACCOUNT, &main(), &space()).await.unwrap().unwrap();
        let task = take(catalogue, TaskQueue::BitIntegrity, TaskKind::BitPage).await;
        let wrong = Wrong { findings: vec!["content_missing"], detail: ODD.to_owned(), observed: None };
        let items = vec![checked(catalogue, key("a"), None).await, checked(catalogue, key("b"), Some(wrong)).await];
        let is_last = number == 3;
        let alone = LoneItem { key: raw(), bytes: HUGE, is_listed: true };
        let (rest, alone) = if is_last { (Some(key("b")), vec![alone]) } else { (None, Vec::new()) };
        let page = PageEnd { run, is_late: false, behind: None, rest, listed: (2, HUGE), alone };
        let part =
            CheckedPart { run: Some(run), page: Some(page), ..CheckedPart::of(ACCOUNT.to_owned(), main(), items) };
        end(catalogue, task, TaskOutcome::Done, Some(part)).await;
        if is_last {
            catalogue.put_tasks(&[task_of_lone_item()]).await.unwrap();
            break;
        }
        assert!(catalogue.end_bit_run(&lead, run, Duration::ZERO, Vec::new()).await.unwrap());
        let run = catalogue.bit_run(run).await.unwrap().unwrap();
        let result = if number == 1 { "success" } else { "incomplete" };
        let report = NewReport { result, place: ODD, coverage: "{}", is_complete: number == 1, mail: None };
        catalogue.report_bit_run(&run, &report, |number, _before| format!("{number} {ODD}")).await.unwrap();
        catalogue.fold().await.unwrap();
    }
}

fn task_of_lone_item() -> NewTask {
    NewTask { source: None, ..task(TaskKind::Bit, TaskQueue::BitIntegrity, Some(raw())) }
}

/// A loop that is half done.
async fn morsels(catalogue: &Catalogue) {
    let [one, other] = ["space-a", "space-b"].map(|space| Morsel { space: space.parse().unwrap(), ..morsel() });
    let holder = Uuid::now_v7();
    let lead = catalogue.lead("duplication", holder, LEASE).await.unwrap().unwrap();
    assert!(catalogue.begin_loop(&lead, &[one.clone(), other.clone()], LEASE).await.unwrap());
    let lead = catalogue.lead("duplication", holder, LEASE).await.unwrap().unwrap();
    assert!(catalogue.advance(&lead, &one, &Advance::To(raw(), 2), Vec::new()).await.unwrap());
    assert!(catalogue.advance(&lead, &other, &Advance::Failed(ODD.to_owned()), Vec::new()).await.unwrap());
}

async fn mill(catalogue: &Catalogue) {
    morsels(catalogue).await;
    let (store, space, user) = (&main(), &space(), DEPOSITOR);
    assert!(catalogue.record_policy(ACCOUNT, None, user, ODD, "{}").await.unwrap());
    // One is held, one is allowed, one is dead, and one is to be tried again.
    let queue = TaskQueue::DuplicationHigh;
    for (name, outcome) in [
        ("held", TaskOutcome::Held(ODD.to_owned())),
        ("allowed", TaskOutcome::Held(ODD.to_owned())),
        ("failed", TaskOutcome::Failed(ODD.to_owned())),
        ("done", TaskOutcome::Done),
    ] {
        catalogue.put_tasks(&[task(TaskKind::Duplicate, queue, Some(key(name)))]).await.unwrap();
        let taken = take(catalogue, queue, TaskKind::Duplicate).await;
        let id = taken.id;
        end(catalogue, taken, outcome, None).await;
        if name == "allowed" {
            let decision = Decision { what: Decided::Drop, of: &TaskState::ALL, user, reason: ODD };
            assert!(catalogue.decide_task(id, &decision).await.unwrap());
        }
    }
    catalogue.put_tasks(&[task(TaskKind::Duplicate, queue, None)]).await.unwrap();
    assert!(catalogue.pause(&PauseScope::Account("another".to_owned()), user, ODD).await.unwrap());
    let (of, kept) = (Braked { account: ACCOUNT, store, space }, item(raw()));
    let aside = NewAside { item: &kept, kept_as: ODD, reason: "overwrite", keep: MONTH };
    assert!(catalogue.put_aside(&of, &aside, Some(BrakeLimit::default())).await.unwrap().is_some());
    catalogue.record_space_stats(ACCOUNT, store, space, (HUGE, HUGE)).await.unwrap();
    let process = MillProcess { id: Uuid::now_v7(), name: ODD.to_owned(), workers: 7, kinds: vec![TaskKind::Noop] };
    catalogue.report_process(&process).await.unwrap();
    let damaged = item(key("b"));
    let new = NewRepair {
        account: ACCOUNT,
        store,
        item: &damaged,
        user,
        reason: ODD,
        remedy: "repair_from_copy",
        content: None,
        most_a_day: None,
    };
    catalogue.start_repair(&new, task(TaskKind::Repair, TaskQueue::BitError, Some(key("b")))).await.unwrap();
    assert!(catalogue.stop_repairs(Some(store), user, ODD).await.unwrap());
    let one = raw();
    let requested =
        NewRequestedCheck { account: ACCOUNT, store, space, key: Some(&one), user, reason: ODD, items: 1, bytes: HUGE };
    assert!(catalogue.request_check(&requested).await.unwrap());
    let started = Timestamp::from_millisecond(1).unwrap();
    let comparison =
        NewComparison { account: ACCOUNT, store, space, started, differing: HUGE, result: "{}", place: ODD };
    catalogue.keep_comparison(&comparison).await.unwrap();
    catalogue.allow_bytes(store, HUGE, u64::MAX).await.unwrap();
    catalogue.allow_restore(store, &item(raw()), 1, LEASE).await.unwrap();
    // What is not folded yet, beside what is.
    catalogue.fold().await.unwrap();
    change(catalogue, Change::Update, Some(key("a")), done(Change::Update, 1, 1)).await;
    let items = vec![checked(catalogue, key("a"), None).await];
    let run = catalogue.open_bit_run(ACCOUNT, store, space).await.unwrap();
    let part = CheckedPart { run, ..CheckedPart::of(ACCOUNT.to_owned(), main(), items) };
    catalogue.record_checks(&part, Vec::new()).await.unwrap();
}
