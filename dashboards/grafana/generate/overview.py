"""Is it flowing, and if not, where?"""

from frame import board
from panels import bars, dashed, link, query, says, series, stat, steps, timeline
from words import FIRING, GREEN, GREY, ORANGE, PATH, RED, WORKING, YELLOW, age, of, per_minute, state, top, total

TRUST = says(_1=("Synced", GREEN), _0=("Behind", RED))
PAUSED = says(_0=("Takes jobs", GREEN), _1=("Paused", ORANGE))
TO_STATE = link("This state in depth", "state?var-state=${__field.labels.state}")
TO_JOBS = link("The jobs in this state", "/jobs?state=${__field.labels.state}")
LIMITS = "The limits are those of --faults.stuck; the ages need the recording rules."


def figures():
    """What is worth a number of its own."""
    return [
        stat(
            "Figures",
            "Whether queuekeeper's image of the queue is complete and follows it; of several, that of any. While it is behind, believe no other panel: see the dashboard queuekeeper.",
            top("queuekeeper_mirror_synced"),
            "none",
            mappings=TRUST,
            empty="Not scraped",
            links=[link("queuekeeper itself", "queuekeeper")],
        ),
        stat(
            "Ingest",
            "Whether somebody has paused the ingest queue. Only Recording goes on then. The page Locks says who, when and why.",
            top("merritt_queue_paused", 'queue="ingest"'),
            "none",
            mappings=PAUSED,
            links=[link("Who paused it?", "/locks?kind=queue")],
        ),
        stat(
            "Under way",
            "Jobs that are neither done nor stopped: what daemons have before them. An autoscaler reads merritt:jobs_under_way.",
            total("state", "merritt_jobs", WORKING),
            "short",
            links=[link("Jobs", "/jobs")],
        ),
        stat(
            "Failed",
            "Jobs that wait for an operator. The page Failures groups them by cause and resumes a whole group.",
            top("merritt_jobs", state("failed")),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            links=[link("Failures", "/failures")],
        ),
        stat(
            "Held",
            "Jobs that were put aside, by themselves or with their collection. Nobody takes them until they are released.",
            top("merritt_jobs", state("held")),
            "short",
            thresholds=steps((None, GREEN), (1, YELLOW)),
            links=[link("Held jobs", "/jobs?state=held")],
        ),
        stat(
            "Waiting for space",
            "Jobs in Provisioning that the threshold of working storage keeps back. Hold the collections that need most; never pause ingest for it, since that stops the daemons that free space.",
            top("merritt_jobs_waiting_for_space"),
            "short",
            thresholds=steps((None, GREEN), (1, ORANGE)),
            empty="Not measured",
            links=[link("By space", "/jobs?state=provisioning&sort=space_needed&direction=desc")],
        ),
        stat(
            "Faults",
            "Items of the tree that show something known to be broken. The page Faults says of each what it does and what repairs it.",
            total("fault", "merritt_faults"),
            "short",
            thresholds=steps((None, GREEN), (1, RED)),
            links=[link("Faults", "/faults")],
        ),
        stat(
            "Alerts",
            "Alerts that are firing on this queue. None are known to Prometheus until its rules are loaded.",
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
            "How many jobs are in each state of the success path, and how many are out of it. A bar that grows while the next ones are short is where it is stuck.",
            [query(top("merritt_jobs", state(name)), name, instant=True) for name in every],
            "short",
            links=[TO_STATE, TO_JOBS],
        ),
        bars(
            "Oldest job, as part of what its state may take",
            "The age of each state's oldest job over the limit of that state; 0 where no job is in it. Past 100 % with nothing leaving the state, an alert is raised. "
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
                    "The queue without what is done with. A band that widens is a state that takes in more than it gives on.",
                    query(top("merritt_jobs", state(*PATH, "failed", "held"), by="state"), "{{state}}"),
                    "short",
                    stacked=True,
                    links=[TO_STATE],
                ),
                series(
                    "Age of the oldest job",
                    "For how long the oldest job of each state has been in it, whether a daemon holds it or not; 0 for a state without jobs. A straight line upwards is a job that does not move: the page Jobs says why.",
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
                    "Jobs that end",
                    "How many jobs are completed, and how many fail, in a minute, as the mean of half an hour. Both at 0 with jobs under way: nothing flows.",
                    query(f"sum by (to) ({per_minute('from, to', 'merritt_job_transitions_total', ended)})", "{{to}}"),
                    "suffix:/min",
                ),
                series(
                    "Failures among jobs that ended within the hour",
                    "The part that failed. So many at once have one cause, as a rule outside the queue; resuming them before it is repaired fails them again.",
                    [query(top("merritt:failure_ratio:1h"), "failed"), query("max(merritt:failure_ratio:limit)", "limit")],
                    "percentunit",
                    min=0,
                    overrides=[dashed("limit", RED)],
                    empty="No rules, or no job has ended",
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Working storage",
                    "What is used of the volume, and on it what the jobs in Provisioning ask for. A daemon keeps a job back while what is used and what the job asks for pass the limit together, so that a large one waits long before the volume is full. Space comes back only as jobs pass Notify.",
                    [query(used, "used"), query(space, "asked for in provisioning"), query(limit, "limit")],
                    "bytes",
                    stacked=True,
                    overrides=[dashed("limit", RED)],
                    empty="Set --storage.path",
                ),
                series(
                    "Jobs under way, and the marks for scaling",
                    "What daemons have before them. Above the upper mark add daemons, below the lower one take some away; "
                    "the marks stand at the top of recording.yml. An autoscaler reads merritt:jobs_under_way.",
                    [
                        query(top("merritt:jobs_under_way"), "under way"),
                        query("max(merritt:jobs_under_way:high)", "add daemons"),
                        query("max(merritt:jobs_under_way:low)", "take some away"),
                    ],
                    "short",
                    overrides=[dashed("add daemons", ORANGE), dashed("take some away", GREY)],
                    empty="No rules",
                ),
            ],
        ),
        (
            8,
            [
                timeline(
                    "What was paused",
                    "When each queue was paused. Alerts that a pause explains are not raised meanwhile.",
                    query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
                    mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
                ),
                series(
                    "Collections held",
                    "Collections that somebody has held: their pending jobs wait, and what is under way goes on.",
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
                    "What is broken in the tree, as found by itself. See the dashboard of locks and faults for each kind and its effect.",
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
