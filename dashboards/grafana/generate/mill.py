"""The mill that copies content to other stores: `queuekeeper mill run` and `queuekeeper standalone`."""

from frame import board
from panels import link, query, series, stat, steps
from words import GREEN, ORANGE, RED, age, of, top, total

TO_MILL = link("Mill", "/mill")
TO_SPACES = link("Spaces and their copies", "/mill/spaces")
OPEN = 'state=~"waiting|in_progress"'
BUSY = 'state="busy"'
PLACE = "{{account}} in {{store}}"


def rate(by, metric):
    """How much all processes do in a second: each counts only what it did itself."""
    return f"sum by ({by}) (rate({of(metric)}[$__rate_interval]))"


def took(share):
    """A quantile of the time that a worker had a task, by kind, over all processes."""
    return f"histogram_quantile({share}, sum by (kind, le) (rate({of('mill_task_duration_seconds_bucket')}[30m]))) >= 0"


def scanned():
    """How much of its items the loop has scanned."""
    items = f"clamp_min({top('mill_loop_items', by='producer')}, 1)"
    return f"clamp_max({top('mill_loop_items_scanned', by='producer')} / {items}, 1)"


def figures():
    """Single figures."""
    return [
        stat(
            "Waiting",
            "Tasks that wait for a worker or are being processed, in all queues.",
            total("queue, state", "mill_tasks", OPEN),
            "short",
            decimals=0,
            links=[TO_MILL],
        ),
        stat(
            "Held",
            "Deletions and overwrites that would exceed the daily limit. None is executed until an admin decides.",
            total("account, store", "mill_brake_held"),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            links=[link("Held tasks", "/mill/held")],
        ),
        stat(
            "Dead letters",
            "Tasks that failed in every attempt. An operator retries or drops them.",
            top("mill_tasks", 'queue="dead-letter"', 'state="dead"'),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Dead letters", "/mill/dead-letters")],
        ),
        stat(
            "Copies missing",
            "The number of items by which stores have fewer than their sources, according to the content index. Stores where keys are left out do not count.",
            total("account, store", "mill_copies_missing"),
            "short",
            decimals=0,
            links=[TO_SPACES],
        ),
        stat("Workers", "Workers of all processes.", total("state", "mill_workers"), "short", links=[TO_MILL]),
        stat(
            "Busy",
            "The share of the workers that have a task. If it stays near 100 %, tasks wait for workers.",
            f"{top('mill_workers', BUSY)} / clamp_min({total('state', 'mill_workers')}, 1)",
            "percentunit",
            thresholds=steps((None, GREEN), (0.9, ORANGE)),
        ),
        stat(
            "Workers wanted",
            "How many workers would empty both duplication queues in ten minutes. From the recording rules, for an autoscaler.",
            top("mill:duplication_workers:wanted"),
            "short",
        ),
        stat(
            "Loop looked at",
            "The share of the items that the loop through all spaces has scanned.",
            f"max ({scanned()})",
            "percentunit",
            links=[TO_MILL],
        ),
    ]


def of_queues():
    """What waits, and what is done."""
    return [
        (
            9,
            [
                series(
                    "Tasks by queue",
                    "Tasks that wait for a worker or are being processed.",
                    query(f"sum by (queue) ({top('mill_tasks', OPEN, by='queue, state')})", "{{queue}}"),
                    "short",
                    decimals=0,
                    links=[TO_MILL],
                ),
                series(
                    "Oldest task by queue",
                    "Time since the request of the task that has been ready for the longest time.",
                    query(age("mill_task_oldest_created_timestamp_seconds", by="queue"), "{{queue}}"),
                    "s",
                    empty="Nothing waits",
                    links=[TO_MILL],
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Tasks ended by outcome",
                    "How often a worker finished with a task, per minute. Put off: not due, or outside the hours of a store. Later: it cannot be decided yet.",
                    query(
                        f"sum by (outcome) (max by (queue, outcome) (rate({of('mill_tasks_ended_total')}[5m]))) * 60",
                        "{{outcome}}",
                    ),
                    "suffix:/min",
                ),
                series(
                    "Workers and workers wanted",
                    "Workers with a task and without, and how many would empty both duplication queues in ten minutes.",
                    [
                        query(top("mill_workers", by="state"), "{{state}}"),
                        query(top("mill:duplication_workers:wanted"), "wanted"),
                    ],
                    "short",
                    decimals=0,
                    names={},
                    links=[TO_MILL],
                ),
            ],
        ),
    ]


def of_work():
    """How much is copied, and how long it takes."""
    return [
        (
            9,
            [
                series(
                    "Content",
                    "Bytes that all processes read from stores to copy and compare, and that they wrote to stores, per second.",
                    query(rate("direction", "mill_bytes_total"), "{{direction}}"),
                    "Bps",
                    width=8,
                ),
                series(
                    "Time of tasks",
                    "How long a worker had a task, the median of the last half hour. Estimated from the histogram's buckets.",
                    query(took(0.5), "{{kind}}"),
                    "s",
                    width=8,
                    empty="No task ended",
                ),
                series(
                    "Time of tasks, 99th percentile",
                    "The slowest tasks of the last half hour. Large items take long, and so do stores with a limit.",
                    query(took(0.99), "{{kind}}"),
                    "s",
                    width=8,
                    empty="No task ended",
                ),
            ],
        ),
    ]


def of_everything():
    """The loop, and what is not as it is to be."""
    return [
        (
            8,
            [
                series(
                    "Loop progress",
                    "The share of the items that the loop has scanned. It starts again when the next loop is due.",
                    query(scanned(), "{{producer}}"),
                    "percentunit",
                    max=1,
                    width=8,
                    links=[TO_MILL],
                ),
                series(
                    "Parts of the loop",
                    "Pairs of a space and two stores that are not done, and those of them that cannot be scanned. An alert fires when these remain for an hour.",
                    query(top("mill_loop_morsels", by="producer, state"), "{{producer}} {{state}}"),
                    "short",
                    decimals=0,
                    width=8,
                    links=[TO_MILL],
                ),
                series(
                    "Kinds of tasks without workers",
                    "Waiting tasks of kinds that no process has workers for.",
                    query(top("mill_unserved_tasks", by="kind"), "{{kind}}"),
                    "short",
                    decimals=0,
                    width=8,
                    links=[TO_MILL],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Copies missing by store",
                    "The number of items by which a store has fewer than its sources. Stores where keys are left out are not shown.",
                    query(top("mill_copies_missing", by="account, store"), PLACE),
                    "short",
                    decimals=0,
                    links=[TO_SPACES],
                ),
                series(
                    "Held by store",
                    "Deletions and overwrites that an admin has to decide on. An alert fires for each store.",
                    query(top("mill_brake_held", by="account, store"), PLACE),
                    "short",
                    decimals=0,
                    links=[link("Held tasks", "/mill/held")],
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    pages = {"Mill": "/mill", "Spaces": "/mill/spaces", "Dead letters": "/mill/dead-letters"}
    rows = [(4, figures()), *of_queues(), *of_work(), *of_everything()]
    return board(
        "mill",
        "queuekeeper / Mill",
        "Copies to other stores: how much is waiting, and what needs an operator.",
        [(None, rows)],
        pages,
    )
