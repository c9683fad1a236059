"""States, their colours, and the selectors that all queries share."""

# The success path, in its order.
PATH = ["pending", "estimating", "provisioning", "downloading", "processing", "storing", "recording", "notify"]

# One colour for a state, whichever panel it is in and whether a job, a batch or a request is in it.
STATES = {
    "pending": "#8F9BB3",
    "estimating": "#B877D9",
    "provisioning": "#FF9830",
    "downloading": "#5794F2",
    "processing": "#1FA3B5",
    "storing": "#3D5AFE",
    "recording": "#A1887F",
    "notify": "#C0D860",
    "reporting": "#C0D860",
    "update-reporting": "#9DB34A",
    "completed": "#56A64B",
    "failed": "#E02F44",
    "held": "#F2CC0C",
    "deleted": "#6E7681",
    "other": "#FF85C0",
}

# Time in a state or age of a lock, youngest first.
AGES = {
    "1m": "#96D98D",
    "10m": "#56A64B",
    "1h": "#5794F2",
    "6h": "#F2CC0C",
    "1d": "#FF9830",
    "older": "#E02F44",
}

GREEN, YELLOW, ORANGE, RED, GREY, BLUE = "#56A64B", "#F2CC0C", "#FF9830", "#E02F44", "#8F9BB3", "#5794F2"

# Alerts of our rules that fire, but for those that are for scaling: one of each, however many queuekeepers it is on. One
# on a queue that was never scraped has no job.
OUR_ALERTS = 'severity!="info",alertname=~"Merritt.*|Mill.*|Queuekeeper.*",job=~"$job|"'
FIRING = (
    "count by (alertname, severity, cause, state, queue, fault, item, rule, outcome, flag)"
    f' (ALERTS{{alertstate="firing",{OUR_ALERTS}}})'
)


def of(metric, *matchers):
    """A metric of the queue that is shown, as each queuekeeper on it has it."""
    return metric + "{" + ",".join(['job=~"$job"', *matchers]) + "}"


def its(metric, *matchers):
    """A metric of the queuekeepers that are shown."""
    return of(metric, 'instance=~"$instance"', *matchers)


def top(metric, *matchers, by=""):
    """A metric of the queue: queuekeepers that watch the same one have the same figures, and count once. Labels that the
    scrape adds, such as those of a pod, fall away."""
    return f"max{f' by ({by})' if by else ''} ({of(metric, *matchers)})"


def total(by, metric, *matchers):
    """A metric of the queue, summed over a label of its own."""
    return f"sum({top(metric, *matchers, by=by)})"


def state(*names):
    """A matcher for states."""
    return f'state=~"{"|".join(names)}"' if len(names) > 1 else f'state="{names[0]}"'


WORKING = state(*PATH)


def age(metric, *matchers, by=""):
    """How long ago the earliest of some instants was, in seconds."""
    return f"time() - min{f' by ({by})' if by else ''} ({of(metric, *matchers)})"


def per_minute(labels, metric, *matchers):
    """How many changes of state there are in a minute. A quiet queue ends 20 jobs in an hour, so that a window of minutes
    would say that nothing flows."""
    return f"max by ({labels}) (rate({of(metric, *matchers)}[30m])) * 60"


def quantile(share, by, histogram, window, *matchers):
    """A quantile of what each of the queuekeepers that are shown saw within a window."""
    rate = f"rate({its(histogram + '_bucket', *matchers)}[{window}])"
    return f"histogram_quantile({share}, sum by ({', '.join([*by, 'le'])}) ({rate}))"


def shared_quantile(share, histogram, window, *matchers, by=()):
    """A quantile of what happened to the queue within a window: of several queuekeepers each has seen the same."""
    rate = f"rate({of(histogram + '_bucket', *matchers)}[{window}])"
    return f"histogram_quantile({share}, max by ({', '.join([*by, 'le'])}) ({rate}))"


def events(by, counter):
    """How many of something happened since the last point of the curve, to be queried every minute at least. Unlike increase()
    it extrapolates nothing, and no two bars count the same. A counter that began anew counts from 0, and so does a series
    that was not there before, if its queuekeeper was."""
    before = f"last_over_time({counter}[5m] offset $__interval)"
    lived = f"last_over_time({of('queuekeeper_mirror_synced')}[5m] offset $__interval)"
    return f"sum by ({by}) ({counter} - ({before} <= {counter} or {counter} * 0 and on (job, instance) {lived})) > 0"


# Actions without dry runs.
ACTIONS = of("queuekeeper_actions_total", 'outcome!="dry_run"')
