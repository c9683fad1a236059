"""What every dashboard has around its panels: variables, annotations, links, and places on the grid."""

from panels import SOURCE
from words import BLUE, FIRING, ACTIONS, RED, events

TAG = "queuekeeper"


def variables(extra):
    """Where the figures come from, of which queues, and where their status page is."""
    source = {
        "name": "datasource",
        "type": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
        "hide": 0,
        "refresh": 1,
        "regex": "",
        "multi": False,
        "includeAll": False,
        "options": [],
        "current": {},
    }
    url = {
        "name": "url",
        "type": "textbox",
        "label": "Status page",
        "description": "The address of queuekeeper's status page as your browser reaches it, without a slash at its end. Links lead there.",
        "query": "http://127.0.0.1:12181",
        "hide": 0,
        "options": [],
        "current": {"selected": True, "text": "http://127.0.0.1:12181", "value": "http://127.0.0.1:12181"},
    }
    job = variable(
        "job",
        "Queue",
        "label_values(queuekeeper_mirror_synced, job)",
        "Which queue: the job of Prometheus that scrapes its queuekeepers. Several that watch the same one count once.",
        several=True,
    )
    return [source, job, *extra, url]


def variable(name, label, query, description, several=False, start=None, pattern=""):
    """A variable that takes its values from Prometheus."""
    everything = {"selected": True, "text": ["All"], "value": ["$__all"]}
    chosen = {"selected": True, "text": start, "value": start} if start else {}
    return {
        "name": name,
        "type": "query",
        "label": label,
        "description": description,
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"PrometheusVariableQueryEditor-{name}"},
        "regex": pattern,
        "hide": 0,
        "refresh": 2,
        "sort": 0 if start else 1,
        "multi": several,
        "includeAll": several,
        "options": [],
        "current": everything if several else chosen,
    }


def annotation(name, color, expr, title, text, tags):
    """What is marked on every curve."""
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expr,
        "step": "60s",
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": tags,
        "useValueForTime": False,
    }


ANNOTATIONS = [
    {
        "builtIn": 1,
        "name": "Annotations & Alerts",
        "type": "dashboard",
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
    },
    annotation(
        "Actions",
        BLUE,
        events("action, source, outcome", ACTIONS),
        "{{action}}: {{outcome}}",
        "Requested by {{source}}. The page Audit of queuekeeper shows by whom and why.",
        "action,source,outcome",
    ),
    annotation(
        "Alerts",
        RED,
        # Grafana writes the name of a label where the label is missing: this one never is.
        f'label_join({FIRING}, "what", " ", "cause", "state", "queue", "fault", "item", "rule", "outcome", "flag")',
        "{{alertname}}",
        "{{what}}",
        "severity",
    ),
]


def links(pages):
    """To the other dashboards, with time and variables, and to the pages that show the same item by item."""
    others = {
        "type": "dashboards",
        "title": "queuekeeper",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
    there = [
        {
            "type": "link",
            "title": title,
            "url": "${url:raw}" + path,
            "tags": [],
            "asDropdown": False,
            "includeVars": False,
            "keepTime": False,
            "targetBlank": True,
            "icon": "external link",
            "tooltip": "On queuekeeper's status page",
        }
        for title, path in pages.items()
    ]
    return [others, *there]


def placed(rows, top, first):
    """Gives panels their ids and places: `rows` are pairs of a height and the panels beside each other, 24 units wide."""
    panels = []
    for height, row in rows:
        left = 0
        for each in row:
            width = each.pop("width")
            place = {"x": left, "y": top, "w": width, "h": height}
            panels.append({"id": first + len(panels), **each, "gridPos": place})
            left += width
        assert left == 24, [left, [each["title"] for each in row]]
        top += height
    return panels


def board(name, title, description, sections, pages, extra=()):
    """A dashboard. `sections`: pairs of a heading and rows of panels. What is below a heading is there once for each queue;
    `None` for no heading."""
    panels, top = [], 0
    for heading, rows in sections:
        if heading:
            place = {"x": 0, "y": top, "w": 24, "h": 1}
            row = {"id": 1 + len(panels), "type": "row", "title": heading, "repeat": "job", "collapsed": False}
            panels.append({**row, "panels": [], "gridPos": place})
            top += 1
        panels += placed(rows, top, 1 + len(panels))
        top += sum(height for height, _ in rows)
    return {
        "uid": f"queuekeeper-{name}",
        "title": title,
        "description": description,
        "tags": [TAG, "merritt", "zookeeper"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "refresh": "30s",
        "fiscalYearStartMonth": 0,
        "weekStart": "",
        "links": links(pages),
        "annotations": {"list": ANNOTATIONS},
        "templating": {"list": variables(list(extra))},
        "panels": panels,
    }
