"""What queuekeeper was requested to do, by people, by programs and by rules for alerts."""

from panels import link, query, says, series, table, timeline
from words import BLUE, GREEN, GREY, ORANGE, RED, YELLOW, events, its

OUTCOMES = {
    "executed": GREEN,
    "resolved": "#96D98D",
    "dry_run": BLUE,
    "duplicate": GREY,
    "cooldown": "#A1887F",
    "no_match": "#6E7681",
    "nothing_to_do": "#8AB8FF",
    "paused": YELLOW,
    "budget": ORANGE,
    "not_synced": "#B877D9",
    "queue_full": "#FF85C0",
    "breaker_open": RED,
    "gave_up": "#C4162A",
    "failed": "#E02F44",
    "unknown": "#FA6400",
    "invalid": "#8F3BB8",
    "unauthorized": "#701313",
}
DONE = {
    "done": GREEN,
    "in_part": YELLOW,
    "dry_run": BLUE,
    "cancelled": GREY,
    "conflict": ORANGE,
    "failed": RED,
    "unknown": "#FA6400",
}
RULE = "queuekeeper_alert_rule_"
TO_RULES = link("Rules", "/rules")
TO_AUDIT = link("Who did what?", "/audit")


def of_actions():
    """What was requested, by people and programs and by rules."""
    actions = events("action, source", its("queuekeeper_actions_total", 'outcome!="dry_run"'))
    outcomes = events("outcome", its("queuekeeper_actions_total"))
    alerts = events("outcome", its("queuekeeper_alerts_total"))
    breaker, acted = its(RULE + "breaker_open"), its(RULE + "last_action_timestamp_seconds")
    return [
        (
            8,
            [
                series(
                    "Actions",
                    "What was requested, by whom it came: a person on the pages, a program by the API, or a rule for an alert. Dry runs are left out. The page Audit says who, and why.",
                    query(actions, "{{action}} ({{source}})"),
                    "short",
                    decimals=0,
                    events=True,
                    empty="Nothing was requested",
                    links=[TO_AUDIT],
                ),
                series(
                    "Outcome of actions",
                    "What came of them. `conflict`: the queue had changed meanwhile. `unknown`: the connection was lost, and requesting the same again is safe.",
                    query(outcomes, "{{outcome}}"),
                    "short",
                    names=DONE,
                    decimals=0,
                    events=True,
                    empty="Nothing was requested",
                    links=[TO_AUDIT],
                ),
            ],
        ),
        (
            8,
            [
                series(
                    "Alerts that came, by what was decided",
                    "What automatic action made of the alerts of Alertmanager. `breaker_open`, `gave_up` and `failed` need a person; `budget` and `cooldown` are rules that keep themselves back.",
                    query(alerts, "{{outcome}}"),
                    "short",
                    names=OUTCOMES,
                    decimals=0,
                    events=True,
                    empty="No alert came",
                    links=[TO_RULES],
                ),
                table(
                    "Rules, now",
                    "When each rule last acted, whether its breaker is open, how many items it may still touch, and how many collections it holds. A rule that never acted has no time.",
                    [
                        query(f"max by (rule) ({metric})", instant=True, shape="table")
                        for metric in (f"{acted} * 1000", breaker, its(RULE + "budget_left"), its(RULE + "holds"))
                    ],
                    "short",
                    {
                        "rule": "Rule",
                        "Value #A": "Last action",
                        "Value #B": "Breaker",
                        "Value #C": "Budget left",
                        "Value #D": "Holds",
                    },
                    empty="No rules",
                    links=[TO_RULES],
                    overrides=[
                        {
                            "matcher": {"id": "byName", "options": "Last action"},
                            "properties": [
                                {"id": "unit", "value": "dateTimeFromNow"},
                                {"id": "noValue", "value": "Never"},
                            ],
                        },
                        {
                            "matcher": {"id": "byName", "options": "Breaker"},
                            "properties": [{"id": "mappings", "value": says(_0=("closed", GREEN), _1=("open", RED))}],
                        },
                    ],
                ),
            ],
        ),
        (
            6,
            [
                timeline(
                    "Breakers",
                    "When a rule was past its budget and its breaker open: it does nothing until a person resets it on the page Rules. So much to do at once has one cause; find that first.",
                    query(f"max by (rule) ({breaker})", "{{rule}}"),
                    width=6,
                    mappings=says(_0=("closed", GREEN), _1=("open", RED)),
                    empty="No rules",
                ),
                timeline(
                    "Who acts",
                    "Of several queuekeepers that watch one queue, one carries out what alerts set off. With none, nothing is done: see whether they are connected and have rules.",
                    query(its("queuekeeper_alert_actions_leader"), "{{instance}}"),
                    width=6,
                    mappings=says(_0=("stands by", GREY), _1=("acts", GREEN)),
                ),
                timeline(
                    "When automatic action was switched off",
                    "When the node /queuekeeper/paused was there, which stops all automatic action everywhere at once.",
                    query(its("queuekeeper_alert_actions_paused"), "{{instance}}"),
                    width=6,
                    mappings=says(_0=("on", GREEN), _1=("off", ORANGE)),
                ),
                series(
                    "Decisions that wait",
                    "What was accepted and is not carried out yet, of all queuekeepers. It should be gone within seconds; if it stays, nobody acts.",
                    query(its("queuekeeper_alert_decisions_pending"), "{{instance}}"),
                    "short",
                    width=6,
                    decimals=0,
                ),
            ],
        ),
    ]
