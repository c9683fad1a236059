"""Writes the dashboards: `python3 dashboards/grafana/generate [DIRECTORY]`, by default beside this folder.

The JSON files are what is loaded and shipped; this source keeps them consistent. It needs Python 3.9 and nothing else.
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True

import batches
import daemons
import fixity
import itself
import locks
import mill
import overview
import state

directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
for name, part in {
    "overview": overview,
    "state": state,
    "batches": batches,
    "locks": locks,
    "daemons": daemons,
    "mill": mill,
    "fixity": fixity,
    "queuekeeper": itself,
}.items():
    text = json.dumps(part.dashboard(), indent=2, ensure_ascii=False) + "\n"
    (directory / f"{name}.json").write_text(text, encoding="utf-8")
