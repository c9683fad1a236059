"""Proof for every copy: what the mill's loops of checks find, what they cover, and when they end."""

from frame import board
from panels import dashed, link, query, says, series, stat, steps
from words import GREEN, GREY, ORANGE, RED, age, of, top, total

BIT = 'producer="bit"'
TO_MILL = link("Mill", "/mill")
TO_ERRORS = link("Bit errors", "/mill/errors")
TO_REPORTS = link("Reports", "/mill/reports")
PLACE = "{{account}} in {{store}}"
QUEUES = 'queue=~"bit-integrity|bit-error|bit-report"'


def checks(by):
    """Checks of copies in a minute. All processes count in one catalogue."""
    return f"sum by ({by}) (max by (result) (rate({of('mill_bit_results_total')}[5m]))) * 60"


def figures():
    """Single figures."""
    return [
        stat(
            "Bit errors",
            "Copies that differ from their records, or whose record is wrong. Those that are not repaired automatically wait for a decision.",
            total("account, store", "mill_bit_errors"),
            "short",
            decimals=0,
            thresholds=steps((None, GREEN), (1, RED)),
            links=[TO_ERRORS],
        ),
        stat(
            "Incomplete reports",
            "Spaces whose newest report does not have a proof of every item.",
            total("account, store", "mill_bit_report_incomplete"),
            "short",
            decimals=0,
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[TO_REPORTS],
        ),
        stat(
            "Repairs stopped",
            "In how many stores automatic repairs are stopped, by an operator, or because too many failed or too many copies were wrong at once. All stores together count as one.",
            f"count({top('mill_repair_stop_started_timestamp_seconds', by='store')}) or vector(0)",
            "short",
            decimals=0,
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[TO_ERRORS],
        ),
        stat(
            "Checks per minute",
            "Copies that were checked, per minute of the last five.",
            f"sum (max by (result) (rate({of('mill_bit_results_total')}[5m]))) * 60",
            "short",
        ),
        stat(
            "Loop ends in",
            "When the current loop of checks ends at its present rate.",
            f"{top('mill_loop_ends_timestamp_seconds', BIT)} - time() or vector(0)",
            "s",
            mappings=says(_0=("not under way", GREY)),
            links=[TO_MILL],
        ),
        stat(
            "Next loop in",
            "When the next loop of checks is due.",
            f"{top('mill_loop_next_start_timestamp_seconds', BIT)} - time()",
            "s",
            empty="No loop planned",
            links=[TO_MILL],
        ),
        stat(
            "Spaces left",
            "Spaces of stores whose checks the loop has not requested yet.",
            top("mill_loop_morsels", BIT, 'state="left"'),
            "short",
            decimals=0,
            links=[TO_MILL],
        ),
        stat(
            "Spaces that fail",
            "Spaces of stores that cannot be listed, which keeps the loop from finishing.",
            top("mill_loop_morsels", BIT, 'state="failed"'),
            "short",
            decimals=0,
            thresholds=steps((None, GREEN), (1, RED)),
            links=[TO_MILL],
        ),
    ]


def of_results():
    """What checks find."""
    return [
        (
            9,
            [
                series(
                    "Checks by result",
                    "Copies that were checked, per minute. Success: the bytes were proven. Unproven: nothing was found wrong, but nothing was proven.",
                    query(checks("result"), "{{result}}"),
                    "suffix:/min",
                ),
                series(
                    "Bit errors by store",
                    "Copies that differ from their records. Many at once in one store indicate a fault of that store.",
                    query(top("mill_bit_errors", by="account, store"), PLACE),
                    "short",
                    decimals=0,
                    links=[TO_ERRORS],
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Incomplete reports by store",
                    "Spaces whose newest report does not have a proof of every item.",
                    query(top("mill_bit_report_incomplete", by="account, store"), PLACE),
                    "short",
                    decimals=0,
                    links=[TO_REPORTS],
                ),
                series(
                    "Tasks of checks, findings and reports",
                    "Tasks that wait for a worker or are being processed. A bit error waits in bit-error until it is decided.",
                    query(f"sum by (queue) ({top('mill_tasks', QUEUES, by='queue, state')})", "{{queue}}"),
                    "short",
                    decimals=0,
                    links=[TO_MILL],
                ),
            ],
        ),
    ]


def of_proofs():
    """How old the proofs of copies are."""
    oldest = age("mill_content_oldest_proven_timestamp_seconds", by="account, store, proof")
    limit = f"min({of('mill_content_max_age_seconds')})"
    return [
        (
            9,
            [
                series(
                    "Age of the oldest proof",
                    "By store and kind of proof, in full days. None: how long the oldest item that was never proven has been there.",
                    [query(oldest, PLACE + ", {{proof}}"), query(limit, "limit")],
                    "s",
                    empty="No content",
                    overrides=[dashed("limit", RED)],
                ),
                series(
                    "Items by their last proof",
                    "Read: the bytes were read. Provider: the store's own checksum was compared. None: never proven.",
                    query(top("mill_content_items", by="account, store, proof"), PLACE + ", {{proof}}"),
                    "short",
                    decimals=0,
                    stacked=True,
                    empty="No content",
                ),
            ],
        ),
    ]


def of_loops():
    """The loop, and what it takes."""
    items = f"clamp_min({top('mill_loop_items', BIT)}, 1)"
    buckets = of("mill_task_duration_seconds_bucket", 'kind=~"BIT.*|REPAIR"')
    took = f"histogram_quantile(0.5, sum by (kind, le) (rate({buckets}[30m]))) >= 0"
    return [
        (
            8,
            [
                series(
                    "Loop progress",
                    "How many of the items the loop has requested checks of. It starts again when the next one is due.",
                    query(f"clamp_max({top('mill_loop_items_scanned', BIT)} / {items}, 1)", "requested"),
                    "percentunit",
                    max=1,
                    width=8,
                    links=[TO_MILL],
                ),
                series(
                    "Age of the loop",
                    "Time since the loop of checks began.",
                    query(age("mill_loop_started_timestamp_seconds", BIT), "age"),
                    "s",
                    width=8,
                    empty="No loop yet",
                    links=[TO_MILL],
                ),
                series(
                    "Time of checks and repairs",
                    "How long a worker had a task, the median of the last half hour. A page has up to a thousand items.",
                    query(took, "{{kind}}"),
                    "s",
                    width=8,
                    empty="No task ended",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    pages = {"Bit errors": "/mill/errors", "Reports": "/mill/reports", "Mill": "/mill"}
    rows = [(4, figures()), *of_results(), *of_proofs(), *of_loops()]
    return board(
        "fixity",
        "queuekeeper / Fixity",
        "Whether every copy is as recorded: what checks find, what they cover, and when they end.",
        [(None, rows)],
        pages,
    )
