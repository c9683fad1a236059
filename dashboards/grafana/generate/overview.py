"""Five questions about the ingest queue, one row of panels for each."""

import deposits
import health
import responsible
import stuck
from frame import board
from panels import TO_STATE, dashed, link, query, says, series, stat, steps
from words import (
    FIRING,
    GREEN,
    GREY,
    ORANGE,
    PATH,
    RED,
    STATES,
    WORKING,
    of,
    per_minute,
    state,
    top,
    total,
)

TRUST = says(_1=("Synced", GREEN), _0=("Stale", RED))
PAUSED = says(_0=("Takes jobs", GREEN), _1=("Paused", ORANGE))
MOVES = "merritt_job_transitions_total"


def within_hour(*matchers):
    """How many jobs made a step within the last hour."""
    return f"sum(max by (from, to) (increase({of(MOVES, *matchers)}[1h])))"


def steps_per_minute(*matchers):
    """How many jobs make a step in a minute."""
    return f"sum({per_minute('from, to', MOVES, *matchers)})"


def flowing():
    """Is it flowing?"""
    bytes_done = of("merritt_jobs_completed_space_needed_bytes_total")
    return [
        (
            4,
            [
                stat(
                    "Figures",
                    "Whether queuekeeper's mirror is complete and follows the queue; of several, that of at least one. While it is stale, do not trust the other panels: see the dashboard Itself.",
                    top("queuekeeper_mirror_synced"),
                    "none",
                    mappings=TRUST,
                    empty="Not scraped",
                    links=[link("queuekeeper itself", "queuekeeper")],
                ),
                stat(
                    "Ingest",
                    "Whether the ingest queue is paused. Then only the inventory daemon takes jobs. The Locks page shows who paused it, when and why.",
                    top("merritt_queue_paused", 'queue="ingest"'),
                    "none",
                    mappings=PAUSED,
                    links=[link("Who paused it?", "/locks?kind=queue")],
                ),
                stat(
                    "Arrived within the hour",
                    "Jobs that were created within the last hour.",
                    within_hour('from="none"'),
                    "short",
                    decimals=0,
                ),
                stat(
                    "Completed within the hour",
                    "Jobs that were completed within the last hour. None while jobs are under way: the queue is stuck.",
                    within_hour('from!="none"', 'to="completed"'),
                    "short",
                    decimals=0,
                ),
                stat(
                    "Under way",
                    "Jobs that are neither finished nor held or failed: the work of the daemons. An autoscaler reads merritt:jobs_under_way.",
                    total("state", "merritt_jobs", WORKING),
                    "short",
                    links=[link("Jobs", "/jobs")],
                ),
                stat(
                    "Failed",
                    "Failed jobs, which need an operator. The Failures page groups them by cause and can resume a whole group.",
                    top("merritt_jobs", state("failed")),
                    "short",
                    thresholds=steps((None, GREEN), (1, ORANGE)),
                    links=[link("Failures", "/failures")],
                ),
                stat(
                    "Daemons",
                    "ZooKeeper sessions that hold locks: daemons that work on something, and users of the command line.",
                    top("merritt_lock_sessions"),
                    "short",
                    links=[link("Locks", "/locks")],
                ),
                stat(
                    "Alerts firing",
                    "Alerts that are firing on this queue. Prometheus has none until the alerting rules are loaded.",
                    f"count({FIRING}) or vector(0)",
                    "short",
                    thresholds=steps((None, GREEN), (1, RED)),
                ),
            ],
        ),
        (
            9,
            [
                series(
                    "Arrivals and completions",
                    "Jobs created, completed and failed per minute, averaged over half an hour. If more arrive than are completed, the queue grows; if none is completed while jobs are under way, it is stuck.",
                    [
                        query(steps_per_minute('from="none"'), "arrived"),
                        query(steps_per_minute('from!="none"', 'to="completed"'), "completed"),
                        query(steps_per_minute('from!="none"', 'to="failed"'), "failed"),
                    ],
                    "suffix:/min",
                    names={"arrived": STATES["downloading"], "completed": STATES["completed"], "failed": STATES["failed"]},
                ),
                series(
                    "Jobs by state over time",
                    "The queue without finished jobs. A band that widens is a state that more jobs enter than leave.",
                    query(top("merritt_jobs", state(*PATH, "failed", "held"), by="state"), "{{state}}"),
                    "short",
                    stacked=True,
                    links=[TO_STATE],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Completed bytes",
                    "The working storage that completed jobs needed, which is about the size of their content, per second, averaged over half an hour. Jobs of unknown size count as 0.",
                    query(f"max(rate({bytes_done}[30m]))", "completed"),
                    "Bps",
                ),
                series(
                    "Jobs under way, and the marks for scaling",
                    "The work of the daemons. Above the upper mark add daemons, below the lower one remove some; "
                    "the marks are at the top of recording.yml. An autoscaler reads merritt:jobs_under_way.",
                    [
                        query(top("merritt:jobs_under_way"), "under way"),
                        query("max(merritt:jobs_under_way:high)", "add daemons"),
                        query("max(merritt:jobs_under_way:low)", "remove daemons"),
                    ],
                    "short",
                    overrides=[dashed("add daemons", ORANGE), dashed("remove daemons", GREY)],
                    empty="No rules",
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    questions = {
        "Is it flowing?": flowing(),
        "Where is it stuck, and why?": stuck.rows(),
        "How long will a new deposit take?": deposits.rows(),
        "Which collection or cause is responsible?": responsible.rows(),
        "Is queuekeeper itself healthy?": health.rows(),
    }
    sections = [(f"{question} — $job", rows) for question, rows in questions.items()]
    pages = {"Status page": "/", "Failures": "/failures", "Faults": "/faults"}
    return board(
        "overview",
        "queuekeeper / Overview",
        "Is the ingest queue moving; where is it stuck, and why; how long will a new deposit take; what is responsible; is queuekeeper healthy?",
        sections,
        pages,
    )
