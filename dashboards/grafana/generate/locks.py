"""Locks, holds and faults."""

from frame import board
from panels import bars, link, query, says, series, stat, steps, table, timeline
from words import AGES, GREEN, ORANGE, RED, YELLOW, age, of, top, total

# Locks that daemons take. The others are set by people.
DAEMONS = 'kind!~"queue|collection"'
TO_LOCKS = link("These locks", "/locks?kind=${__field.labels.kind}")
TO_FAULT = link("These faults", "/faults?fault=${__field.labels.fault}")


def count(fault):
    """How many items show one of these faults."""
    return total("fault", "merritt_faults", f'fault=~"{fault}"')


def blocking():
    """How many items block the head of their queue."""
    faults = top("merritt_faults", by="fault")
    info = of("merritt_fault_info", 'blocks_head="true"')
    return f"sum({faults} and on (fault) {info})"


def figures():
    """What is worth a number of its own."""
    none = steps((None, GREEN), (1, RED))
    return [
        stat(
            "Locks",
            "Locks held now, of all kinds. A lock of a daemon is normal: it ends with the session of its daemon.",
            total("kind", "merritt_locks"),
            "short",
            links=[link("Locks", "/locks")],
        ),
        stat(
            "Leaked locks",
            "Locks that will not be released. The items that they lock are never acquired again. Make sure that no daemon is working on the item, then break the lock.",
            count("leaked_lock|leaked_storage_lock"),
            "short",
            thresholds=none,
            links=[link("Leaked locks", "/faults?fault=leaked_lock")],
        ),
        stat(
            "Blocking",
            "Items that make a daemon fail and end its poll, each time: it never reaches the items behind them. Repair these first.",
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
            "Collections that somebody has held.",
            top("merritt_collections_held"),
            "short",
            thresholds=steps((None, GREEN), (1, YELLOW)),
            links=[link("Who holds them?", "/locks?kind=collection")],
        ),
        stat(
            "Held without a hold",
            "Collections that are free and whose jobs are still Held. Releasing a collection does not release its jobs.",
            count("held_collection_backlog"),
            "short",
            thresholds=none,
            links=[link("These collections", "/faults?fault=held_collection_backlog")],
        ),
        stat(
            "Retries exhausted",
            "Failed jobs that were resumed too often. Resuming them again does not help: a person has to read what they say.",
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
                    "What is locked: jobs, batches and requests by daemons at work, objects in storage, queues and collections by operators.",
                    query(top("merritt_locks", by="kind"), "{{kind}}"),
                    "short",
                    stacked=True,
                    links=[TO_LOCKS],
                ),
                series(
                    "Age of the oldest lock",
                    "Daemons take and release their locks within the time of a job. Queues and collections stay as they are until an operator changes it. 0: nothing of the kind is locked.",
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
                    "Young locks below, old ones above. Old ones that do not go away are of daemons that hang, or leaked.",
                    query(f"sum by (age) ({top('merritt_locks_by_age', DAEMONS, by='kind, age')})", "{{age}}"),
                    "short",
                    stacked=True,
                    links=[link("Locks", "/locks")],
                ),
                bars(
                    "Oldest lock of each kind, now",
                    "For how long the oldest lock of each kind has been held; 0 where there is none.",
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
                    "What was paused",
                    "When each queue was paused.",
                    query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
                    mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
                ),
                series(
                    "Paused for",
                    "For how long each queue has been paused. One that is paused for longer than --faults.pause counts as forgotten.",
                    query(age("merritt_queue_paused_timestamp_seconds", by="queue"), "{{queue}}"),
                    "s",
                    empty="No queue is paused",
                    links=[link("Who paused it?", "/locks?kind=queue")],
                ),
            ],
        ),
    ]


def of_faults():
    """What is broken, and how often jobs came back."""
    named = {"fault": "Fault", "Value": "Items"}
    return [
        (
            10,
            [
                table(
                    "Faults, now",
                    "What is broken in the tree. The page Faults says of each item since when, what it does and what repairs it.",
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
                    "A fault counts once it has lasted longer than a daemon takes for its own writes. One that comes and goes is repaired by the daemons themselves.",
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
                    "Jobs by how often they were resumed",
                    "Of all jobs present. Those that come back again and again have a cause of their own.",
                    query(top("merritt_jobs_by_retries", 'retries!="0"', by="retries"), "{{retries}}"),
                    "short",
                    stacked=True,
                    names=dict(zip(("1", "2", "3+"), (AGES["6h"], AGES["1d"], AGES["older"]))),
                ),
                series(
                    "Most retries of any job",
                    "The highest number of times that a job present was resumed. Past --faults.retries it counts as exhausted.",
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
        "Who holds what, what is stopped, and what is broken in the tree.",
        [(4, figures()), *of_locks(), *of_faults()],
        pages,
    )
