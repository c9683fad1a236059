"""Is it flowing, and if not, where?"""

from frame import board
from panels import bars, dashed, link, query, says, series, stat, steps, timeline
from words import FIRING, GREEN, GREY, ORANGE, PATH, RED, WORKING, YELLOW, age, of, per_minute, state, top, total

TRUST = says(_1=("Synced", GREEN), _0=("Stale", RED))
PAUSED = says(_0=("Takes jobs", GREEN), _1=("Paused", ORANGE))
TO_STATE = link("This state in depth", "state?var-state=${__field.labels.state}")
TO_JOBS = link("The jobs in this state", "/jobs?state=${__field.labels.state}")
LIMITS = "The limits are those of --faults.stuck; the ages need the recording rules."


def figures():
    """Single figures."""
    return [
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
            "Held",
            "Jobs that are held, by themselves or with their collection. No daemon takes them until they are released.",
            top("merritt_jobs", state("held")),
            "short",
            thresholds=steps((None, GREEN), (1, YELLOW)),
            links=[link("Held jobs", "/jobs?state=held")],
        ),
        stat(
            "Waiting for space",
            "Jobs in Provisioning that are kept back by the threshold of working storage. Hold the collections that need most; do not pause the ingest queue, since that stops the daemons that free space.",
            top("merritt_jobs_waiting_for_space"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            empty="Not measured",
            links=[link("By space", "/jobs?state=provisioning&sort=space_needed&direction=desc")],
        ),
        stat(
            "Faults",
            "Items with a fault. The Faults page shows the effect of each and how to repair it.",
            total("fault", "merritt_faults"),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            links=[link("Faults", "/faults")],
        ),
        stat(
            "Alerts",
            "Alerts that are firing on this queue. Prometheus has none until the alerting rules are loaded.",
            f"count({FIRING}) or vector(0)",
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
        ),
    ]


def now():
    """The pipeline, from left to right in the queue and from top to bottom here."""
    every = [*PATH, "failed", "held"]
    return [
        bars(
            "Jobs by state",
            "Jobs in each state of the success path, and outside of it. A state that grows while the next ones are nearly empty is where the queue is stuck.",
            [query(top("merritt_jobs", state(name)), name, instant=True) for name in every],
            "short",
            links=[TO_STATE, TO_JOBS],
        ),
        bars(
            "Oldest job, relative to the limit of its state",
            "The age of the oldest job in each state relative to the limit of that state; 0 for a state without jobs. Above 100 %, while no job leaves the state, an alert fires. "
            + LIMITS,
            [
                query(part_of_limit(name), name, instant=True)
                for name in PATH
            ],
            "percentunit",
            max=1,
            color="thresholds",
            thresholds=steps((None, GREEN), (0.5, YELLOW), (1, RED)),
            overrides=[],
            empty="No rules",
            links=[TO_STATE, TO_JOBS],
        ),
    ]


def part_of_limit(name):
    """The age of a state's oldest job as part of the state's limit; 0 for an idle state, and nothing without rules."""
    limit = top("queuekeeper_fault_limit_seconds", 'fault="stuck_state"', by="state")
    oldest = top("merritt:state_age:seconds", state(name), by="state")
    loaded = "max(merritt:state_drain:limit_seconds)"
    return f"{oldest} / on (state) {limit} or 0 * {top('merritt_jobs', state(name), by='state')} and on () {loaded}"


def curves():
    """The last hours."""
    used = f"max({of('merritt_working_storage_size_bytes')} - {of('merritt_working_storage_free_bytes')})"
    limit = f"max({of('merritt_working_storage_size_bytes')} * {of('merritt_working_storage_threshold_ratio')})"
    space = top("merritt_jobs_space_needed_bytes", state("provisioning"))
    oldest = age("merritt_job_oldest_entered_timestamp_seconds", WORKING, by="state")
    ended = 'to=~"completed|failed"'
    return [
        (
            9,
            [
                series(
                    "Jobs by state over time",
                    "The queue without finished jobs. A band that widens is a state that more jobs enter than leave.",
                    query(top("merritt_jobs", state(*PATH, "failed", "held"), by="state"), "{{state}}"),
                    "short",
                    stacked=True,
                    links=[TO_STATE],
                ),
                series(
                    "Age of the oldest job",
                    "How long the oldest job of each state has been in it, locked or not; 0 for a state without jobs. A straight rising line is a job that does not move: its page shows why.",
                    query(f"{oldest} or 0 * {top('merritt_jobs', WORKING, by='state')}", "{{state}}"),
                    "s",
                    links=[TO_STATE, TO_JOBS],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Finished jobs",
                    "Jobs completed and failed per minute, averaged over half an hour. Both at 0 while jobs are in progress: the queue is stuck.",
                    query(f"sum by (to) ({per_minute('from, to', 'merritt_job_transitions_total', ended)})", "{{to}}"),
                    "suffix:/min",
                ),
                series(
                    "Failure ratio of jobs that finished within the hour",
                    "The fraction that failed. Many failures at once usually have one cause outside the queue; resumed before it is fixed, the jobs fail again.",
                    [query(top("merritt:failure_ratio:1h"), "failed"), query("max(merritt:failure_ratio:limit)", "limit")],
                    "percentunit",
                    min=0,
                    overrides=[dashed("limit", RED)],
                    empty="No rules, or no job has finished",
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Working storage",
                    "The used space of the volume, and on top of it the space that the jobs in Provisioning need. A daemon keeps a job back while used space plus the needs of the job exceed the limit, so a large job waits long before the volume is full. Space is freed only as jobs pass Notify.",
                    [query(used, "used"), query(space, "needed in provisioning"), query(limit, "limit")],
                    "bytes",
                    stacked=True,
                    overrides=[dashed("limit", RED)],
                    empty="Set --storage.path",
                ),
                series(
                    "Jobs in progress, and the thresholds for scaling",
                    "The work of the daemons. Above the upper threshold add daemons, below the lower one remove some; "
                    "the thresholds are at the top of recording.yml. An autoscaler reads merritt:jobs_under_way.",
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
        (
            8,
            [
                timeline(
                    "Paused queues",
                    "When each queue was paused. Alerts that a pause explains do not fire during it.",
                    query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
                    mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
                ),
                series(
                    "Collections held",
                    "Collections that an operator holds: their pending jobs wait, jobs in progress continue.",
                    query(top("merritt_collections_held"), "held"),
                    "short",
                    links=[link("Who holds them?", "/locks?kind=collection")],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Faults by kind",
                    "Faults, detected automatically. The dashboard Locks and faults shows each kind with its effect.",
                    query(top("merritt_faults", by="fault") + " > 0", "{{fault}}"),
                    "short",
                    width=24,
                    empty="No fault",
                    links=[link("These faults", "/faults?fault=${__field.labels.fault}")],
                ),
            ],
        ),
    ]


def dashboard():
    """The dashboard."""
    rows = [(4, figures()), (10, now()), *curves()]
    pages = {"Status page": "/", "Failures": "/failures", "Faults": "/faults"}
    return board(
        "overview", "queuekeeper / Overview", "Is the ingest queue flowing, and if not, where and why?", rows, pages
    )
