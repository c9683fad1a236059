"""Where is it stuck, and why?"""

from panels import TO_JOBS, TO_STATE, bars, dashed, link, query, says, series, stat, steps, table, timeline
from words import (
    GREEN,
    ORANGE,
    OUR_ALERTS,
    PATH,
    RED,
    WORKING,
    YELLOW,
    age,
    of,
    state,
    top,
    total,
)

LIMITS = "The limits are those of --faults.stuck; the ages need the recording rules."
COLUMNS = {
    "severity": "Severity",
    "alertname": "Alert",
    "cause": "Cause",
    "state": "State",
    "fault": "Fault",
    "item": "Item",
    "Value": "Since",
}


def part_of_limit(name):
    """The age of a state's oldest job as part of the state's limit; 0 for an idle state, and nothing without rules."""
    limit = top("queuekeeper_fault_limit_seconds", 'fault="stuck_state"', by="state")
    oldest = top("merritt:state_age:seconds", state(name), by="state")
    loaded = "max(merritt:state_drain:limit_seconds)"
    return f"{oldest} / on (state) {limit} or 0 * {top('merritt_jobs', state(name), by='state')} and on () {loaded}"


def firing():
    """The alerts that fire, with the instant since which each of them has held."""
    labels = ", ".join(label for label in COLUMNS if label != "Value")
    fires = f'ignoring (alertstate) ALERTS{{alertstate="firing",{OUR_ALERTS}}}'
    since = f"max by ({labels}) (ALERTS_FOR_STATE{{{OUR_ALERTS}}} and {fires}) * 1000"
    return table(
        "Alerts, by cause",
        "The alerts that are firing: what is wrong, for which cause, in which state, which fault, and since when. The runbook has a section for each alert.",
        query(since, instant=True, shape="table"),
        "short",
        COLUMNS,
        empty="No alert",
        links=[link("Runbook", "/runbook")],
        overrides=[
            {
                "matcher": {"id": "byName", "options": "Since"},
                "properties": [{"id": "unit", "value": "dateTimeFromNow"}],
            },
        ],
    )


def rows():
    """The panels."""
    used = f"max({of('merritt_working_storage_size_bytes')} - {of('merritt_working_storage_free_bytes')})"
    limit = f"max({of('merritt_working_storage_size_bytes')} * {of('merritt_working_storage_threshold_ratio')})"
    forecast = f"{limit} - {top('merritt:working_storage:headroom_forecast_bytes')}"
    space = top("merritt_jobs_space_needed_bytes", state("provisioning"))
    oldest = age("merritt_job_oldest_entered_timestamp_seconds", WORKING, by="state")
    return [
        (
            9,
            [
                firing(),
                bars(
                    "Oldest job, relative to the limit of its state",
                    "The age of the oldest job in each state relative to the limit of that state; 0 for a state without jobs. Above 100 %, while no job leaves the state, an alert fires. "
                    + LIMITS,
                    [query(part_of_limit(name), name, instant=True) for name in PATH],
                    "percentunit",
                    max=1,
                    color="thresholds",
                    thresholds=steps((None, GREEN), (0.5, YELLOW), (1, RED)),
                    overrides=[],
                    empty="No rules",
                    links=[TO_STATE, TO_JOBS],
                ),
            ],
        ),
        (
            4,
            [
                stat(
                    "Waiting for space",
                    "Jobs in Provisioning that are kept back by the threshold of working storage. Hold the collections that need most; do not pause the ingest queue, because that stops the daemons that free space.",
                    top("merritt_jobs_waiting_for_space"),
                    "short",
                    width=6,
                    thresholds=steps((None, GREEN), (1, ORANGE)),
                    empty="Not measured",
                    links=[link("By space", "/jobs?state=provisioning&sort=space_needed&direction=desc")],
                ),
                stat(
                    "Faults",
                    "Items with a fault. The Faults page shows the effect of each and how to repair it.",
                    total("fault", "merritt_faults"),
                    "short",
                    width=6,
                    thresholds=steps((None, GREEN), (1, RED)),
                    links=[link("Faults", "/faults")],
                ),
                stat(
                    "Held",
                    "Jobs that are held, individually or with their collection. No daemon takes them until they are released.",
                    top("merritt_jobs", state("held")),
                    "short",
                    width=6,
                    thresholds=steps((None, GREEN), (1, YELLOW)),
                    links=[link("Held jobs", "/jobs?state=held")],
                ),
                stat(
                    "Collections held",
                    "Collections that an operator holds: their pending jobs wait, jobs under way continue.",
                    top("merritt_collections_held"),
                    "short",
                    width=6,
                    thresholds=steps((None, GREEN), (1, YELLOW)),
                    links=[link("Who holds them?", "/locks?kind=collection")],
                ),
            ],
        ),
        (
            10,
            [
                bars(
                    "Jobs by state",
                    "Jobs in each state of the success path, and outside of it. A state that grows while the next ones are nearly empty is where the queue is stuck.",
                    [query(top("merritt_jobs", state(name)), name, instant=True) for name in [*PATH, "failed", "held"]],
                    "short",
                    links=[TO_STATE, TO_JOBS],
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
                timeline(
                    "Paused queues",
                    "When each queue was paused. Alerts that a pause explains do not fire during it.",
                    query(top("merritt_queue_paused", by="queue"), "{{queue}}"),
                    width=8,
                    mappings=says(_0=("runs", GREEN), _1=("paused", ORANGE)),
                ),
                series(
                    "Faults by kind",
                    "Faults, detected automatically. The dashboard Locks and faults shows each kind with its effect.",
                    query(top("merritt_faults", by="fault") + " > 0", "{{fault}}"),
                    "short",
                    width=8,
                    empty="No fault",
                    links=[link("These faults", "/faults?fault=${__field.labels.fault}")],
                ),
                series(
                    "Working storage",
                    "The used space of the volume, on top of it the space that the jobs in Provisioning need, and the used space that is forecast from the trend of the last six hours. A daemon keeps a job back while used space plus the needs of the job exceed the limit, so a large job waits long before the volume is full. Space is freed only as jobs pass Notify.",
                    [
                        query(used, "used"),
                        query(space, "needed in provisioning"),
                        query(forecast, "forecast"),
                        query(limit, "limit"),
                    ],
                    "bytes",
                    width=8,
                    stacked=True,
                    overrides=[dashed("limit", RED), dashed("forecast", ORANGE)],
                    empty="Set --storage.path",
                ),
            ],
        ),
    ]
