"""Batches and access requests."""

from frame import board
from panels import bars, dashed, link, query, says, series, stat, steps, timeline
from words import GREEN, ORANGE, RED, age, per_minute, state, top, total

BATCHES = ["pending", "processing", "reporting", "update-reporting", "failed", "held"]
OPEN = state("pending", "processing", "reporting", "update-reporting")
QUEUES = {"access_small": "small", "access_large": "large"}
TO_BATCHES = link("These batches", "/batches?state=${__field.labels.state}")
TO_ACCESS = link("Requests", "/access")


def figures():
    """Single figures."""
    paused = says(_0=("Runs", GREEN), _1=("Paused", ORANGE))
    return [
        stat(
            "Batches in progress",
            "Deposits whose report has not been made.",
            total("state", "merritt_batches", OPEN),
            "short",
            links=[link("Batches", "/batches")],
        ),
        stat(
            "Failed batches",
            "Batches that finished with failed jobs, or could not be created. Once their jobs are completed, the report can be sent again.",
            top("merritt_batches", state("failed")),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Failed batches", "/batches?state=failed")],
        ),
        stat(
            "Overdue batches",
            "Batches whose report, cleanup or creation of jobs is overdue. Check that the batch daemon is running.",
            top("merritt_faults", 'fault="overdue_batch"'),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            links=[link("These batches", "/faults?fault=overdue_batch")],
        ),
        stat(
            "Oldest in progress",
            "How long the oldest batch has been in its state. A large deposit may take days.",
            age("merritt_batch_oldest_entered_timestamp_seconds", OPEN),
            "s",
            empty="None in progress",
        ),
        stat(
            "Requests waiting",
            "Access requests that no daemon has taken yet.",
            total("queue", "merritt_access_requests", state("pending")),
            "short",
            links=[TO_ACCESS],
        ),
        stat(
            "Failed requests",
            "Access requests that failed. A user is waiting for an object and does not get it.",
            total("queue", "merritt_access_requests", state("failed")),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[TO_ACCESS],
        ),
        *(
            stat(
                f"Queue of {name} requests",
                f"Whether the queue of {name} requests is paused.",
                top("merritt_queue_paused", f'queue="{queue}"'),
                "none",
                mappings=paused,
                links=[link("Who paused it?", "/locks?kind=queue")],
            )
            for queue, name in QUEUES.items()
        ),
    ]


def of_batches():
    """Deposits."""
    return [
        (
            9,
            [
                bars(
                    "Batches by state",
                    "Batches in each state, without completed and deleted ones.",
                    [query(top("merritt_batches", state(name)), name, instant=True) for name in BATCHES],
                    "short",
                    width=8,
                    links=[TO_BATCHES],
                ),
                series(
                    "Batches by state over time",
                    "Unfinished batches. The report is made when the last job of a batch has finished.",
                    query(top("merritt_batches", state(*BATCHES), by="state"), "{{state}}"),
                    "short",
                    width=16,
                    stacked=True,
                    links=[TO_BATCHES],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Batch transitions",
                    "Batches that enter each state per minute, averaged over half an hour.",
                    query(
                        "sum by (to) (" + per_minute("from, to", "merritt_batch_transitions_total", 'to!="none"') + ")",
                        "{{to}}",
                    ),
                    "suffix:/min",
                ),
                series(
                    "Age of the oldest batch",
                    "How long the oldest batch of each state has been in it.",
                    query(age("merritt_batch_oldest_entered_timestamp_seconds", state(*BATCHES), by="state"), "{{state}}"),
                    "s",
                    empty="No batch is in progress",
                    links=[TO_BATCHES],
                ),
            ],
        ),
    ]


def of_requests(queue, name):
    """One of the two queues of requests."""
    this = f'queue="{queue}"'
    requests = "merritt_access_oldest_entered_timestamp_seconds"
    wait = f"{age(requests, this, state('pending'))} unless {top('merritt_queue_paused', this)} == 1"
    limit = "max(merritt:access_wait:limit_seconds{" + this + "})"
    return [
        series(
            f"{name.capitalize()} requests by state",
            f"Requests for assembly in the queue of {name} ones, without finished ones.",
            query(
                top("merritt_access_requests", this, state("pending", "processing", "failed", "other"), by="state"),
                "{{state}}",
            ),
            "short",
            width=8,
            stacked=True,
            links=[TO_ACCESS],
        ),
        series(
            f"{name.capitalize()} requests: longest wait",
            "How long the oldest request has waited for a daemon, unless its queue is paused, and the limit above which an alert fires.",
            [query(wait, "oldest"), query(limit, "limit")],
            "s",
            width=8,
            overrides=[dashed("limit", RED)],
            empty="None waits",
            links=[TO_ACCESS],
        ),
        series(
            f"{name.capitalize()} requests: size",
            "Total size of the objects that are requested, by state. One very large request may hold up its queue.",
            query(
                top("merritt_access_requested_bytes", this, state("pending", "processing", "failed", "other"), by="state"),
                "{{state}}",
            ),
            "bytes",
            width=8,
            stacked=True,
            links=[link("Largest first", "/access?sort=largest")],
        ),
    ]


def dashboard():
    """The dashboard."""
    paused = timeline(
        "Paused queues",
        "When each queue was paused. Requests that wait in a paused queue raise no alert.",
        query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
        width=24,
        mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
    )
    rows = [(4, figures()), *of_batches(), *((8, of_requests(*queue)) for queue in QUEUES.items()), (5, [paused])]
    pages = {"Batches": "/batches", "Access": "/access"}
    return board(
        "batches",
        "queuekeeper / Batches and access",
        "The progress of deposits, and the access requests.",
        [("$job", rows)],
        pages,
    )
