"""Locks, holds and faults."""

from frame import board
from panels import bars, link, query, says, series, stat, steps, table, timeline
from words import AGES, GREEN, ORANGE, RED, YELLOW, age, of, top, total

# Locks that daemons take. The others are set by people.
DAEMONS = 'kind!~"queue|collection"'
TO_LOCKS = link("These locks", "/locks?kind=${__field.labels.kind}")
TO_FAULT = link("These faults", "/faults?fault=${__field.labels.fault}")


def count(fault):
    """The number of items with one of these faults."""
    return total("fault", "merritt_faults", f'fault=~"{fault}"')


def blocking():
    """The number of items that block the head of their queue."""
    faults = top("merritt_faults", by="fault")
    info = of("merritt_fault_info", 'blocks_head="true"')
    return f"sum({faults} and on (fault) {info})"


def figures():
    """Single figures."""
    none = steps((None, GREEN), (1, RED))
    return [
        stat(
            "Locks",
            "Locks of all kinds. Locks of daemons are normal: each ends with the session of its daemon.",
            total("kind", "merritt_locks"),
            "short",
            links=[link("Locks", "/locks")],
        ),
        stat(
            "Leaked locks",
            "Locks that have outlasted their limit or their daemon. The items are not acquired while the locks exist. Make sure that no daemon is working on the item, then break the lock.",
            count("leaked_lock|leaked_storage_lock"),
            "short",
            thresholds=none,
            links=[link("Leaked locks", "/faults?fault=leaked_lock")],
        ),
        stat(
            "Blocking",
            "Items on which every poll of a Java daemon fails, so that it never reaches the items behind them. Repair these first.",
            blocking(),
            "short",
            thresholds=none,
            links=[link("Faults", "/faults")],
        ),
        stat(
            "Faults",
            "Items with a fault, of all kinds.",
            total("fault", "merritt_faults"),
            "short",
            thresholds=none,
            links=[link("Faults", "/faults")],
        ),
        stat(
            "Queues paused",
            "Queues that are paused.",
            total("queue", "merritt_queue_paused"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Who paused them?", "/locks?kind=queue")],
        ),
        stat(
            "Collections held",
            "Collections that an operator holds.",
            top("merritt_collections_held"),
            "short",
            thresholds=steps((None, GREEN), (1, YELLOW)),
            links=[link("Who holds them?", "/locks?kind=collection")],
        ),
        stat(
            "Held collection backlog",
            "Collections that are held with Pending jobs, or not held with Held jobs. Releasing a collection does not release its jobs.",
            count("held_collection_backlog"),
            "short",
            thresholds=none,
            links=[link("These collections", "/faults?fault=held_collection_backlog")],
        ),
        stat(
            "Retries exhausted",
            "Failed jobs that were resumed too often. Resuming does not help until the cause is fixed: read their messages.",
            count("retries_exhausted"),
            "short",
            thresholds=none,
            links=[link("These jobs", "/jobs?fault=retries_exhausted")],
        ),
    ]


def of_locks():
    """Who holds what, and for how long."""
    oldest = age("merritt_lock_oldest_created_timestamp_seconds", by="kind")
    oldest = f"{oldest} or 0 * {top('merritt_locks', by='kind')}"
    return [
        (
            9,
            [
                series(
                    "Locks by kind",
                    "Locks on jobs, batches and requests by daemons, on objects in storage, and on queues and collections by operators.",
                    query(top("merritt_locks", by="kind"), "{{kind}}"),
                    "short",
                    stacked=True,
                    links=[TO_LOCKS],
                ),
                series(
                    "Age of the oldest lock",
                    "Daemons hold a lock for as long as they work on an item. Queues stay paused and collections held until they are unpaused or released. 0: there is no lock of this kind.",
                    query(oldest, "{{kind}}"),
                    "s",
                    links=[TO_LOCKS],
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Locks of daemons by age",
                    "Young locks at the bottom, old ones at the top. Old locks that persist are leaked, or belong to daemons that hang.",
                    query(f"sum by (age) ({top('merritt_locks_by_age', DAEMONS, by='kind, age')})", "{{age}}"),
                    "short",
                    stacked=True,
                    links=[link("Locks", "/locks")],
                ),
                bars(
                    "Oldest lock of each kind, now",
                    "The age of the oldest lock of each kind; 0 if there is none.",
                    query(oldest, "{{kind}}", instant=True),
                    "s",
                    overrides=[],
                    links=[TO_LOCKS],
                ),
            ],
        ),
        (
            7,
            [
                timeline(
                    "Paused queues",
                    "When each queue was paused.",
                    query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
                    mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
                ),
                series(
                    "Paused for",
                    "How long each queue has been paused. A pause longer than --faults.pause is reported as a fault.",
                    query(age("merritt_queue_paused_timestamp_seconds", by="queue"), "{{queue}}"),
                    "s",
                    empty="No queue is paused",
                    links=[link("Who paused it?", "/locks?kind=queue")],
                ),
            ],
        ),
    ]


def of_faults():
    """Faults and retries."""
    named = {"fault": "Fault", "Value": "Items"}
    return [
        (
            10,
            [
                table(
                    "Faults, now",
                    "What is broken in the tree. The Faults page shows for each item since when, the effect and how to repair it.",
                    query(top("merritt_faults", by="fault") + " > 0", instant=True, shape="table"),
                    "short",
                    named,
                    width=8,
                    empty="No fault",
                    sort="Items",
                    links=[link("These faults", "/faults?fault=${__data.fields.Fault}")],
                ),
                series(
                    "Faults by kind",
                    "A fault is reported once it has lasted longer than a daemon's own writes take. Faults that come and go are repaired by the daemons themselves.",
                    query(top("merritt_faults", by="fault") + " > 0", "{{fault}}"),
                    "short",
                    width=16,
                    empty="No fault",
                    links=[TO_FAULT],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Jobs by retry count",
                    "All jobs in the queue. Jobs that are resumed again and again have a cause of their own.",
                    query(top("merritt_jobs_by_retries", 'retries!="0"', by="retries"), "{{retries}}"),
                    "short",
                    stacked=True,
                    names=dict(zip(("1", "2", "3+"), (AGES["6h"], AGES["1d"], AGES["older"]))),
                ),
                series(
                    "Most retries of any job",
                    "The highest retry count of any job. Above --faults.retries the job is reported as a fault.",
                    query(top("merritt_job_retries_max"), "most"),
                    "short",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    pages = {"Locks": "/locks", "Faults": "/faults"}
    return board(
        "locks",
        "queuekeeper / Locks and faults",
        "Locks and their holders, paused queues and held collections, and faults in the tree.",
        [("$job", [(4, figures()), *of_locks(), *of_faults()])],
        pages,
    )
