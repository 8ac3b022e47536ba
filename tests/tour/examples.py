"""The examples of help pages: which cannot run, which run until they are stopped, which do not end in 0."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commands.cli import main
from tests.tour.pages import joined

NOT_RUN = {
    r"\b(ibm)?mq://": "needs IBM MQ",
    r"(mqtts?|nats|kafka)://broker": "needs a broker of that name",
    r"qpubsub sub ": "needs a processor that runs beside it",
    r"qpubsub estate apply .*--confirm stopped": "needs a live queue manager",
    r"qpubsub capture .*bridge\.toml": "needs IBM MQ",
    r"qpubsub replay --step": "needs a terminal",
    r"^qpubsub passwd --users users": "asks for a password on the terminal",
    r"pass show": "needs a password store",
    r"qpubsub shares run shares\.toml": "runs until it is stopped",
    r"tail -f": "needs a log that grows",
    r"https://mq|live\.toml": "needs IBM MQ",
    r"qpubsub verify -m QM1 migration": "needs a plan that was applied",
    r"@db/": "needs a PostgreSQL of that name",
}
"""What a command contains, and why it is not run."""

ENDLESS = re.compile(
    r"\bqpubsub (?:run\b(?!.*--once)|dev\b|console\b(?!.*(?:--help|0\.0\.0\.0))|(?:replay|get|why|shadow)\b.*--follow"
    r"|status\b.*--watch|sub\b(?!.*(?:-C|--limit)))"
)
"""Commands that run until they are stopped: they are, with Ctrl-C's signal, and then end in 0 or 130."""

SPARK = re.compile(r"--engine spark|commands\.replay\.spark")
"""Commands and programs that start Spark: half a minute each, so that they are a tour of their own."""

_REHEARSED = ("qpubsub estate plan bank/", "qpubsub estate rehearse bank/")

BEFORE = {
    "dev": ("mkdir definitions",),
    "shares": ("qpubsub shares create shares.toml",),
    "estate": _REHEARSED,
    "estate verify": (*_REHEARSED, "qpubsub estate apply bank/ --wave 1 --create"),
}
"""What the examples of a verb or of its group take for done."""

EXITS = {
    r"translate .*capture\.jsonl": (1, "two of the commands fail"),
    r"strmqbrk .*(?:--rehearse|-l psmigr)": (1, "pieces of the state are lost unless a person acts"),
    r"migmbbrk -[rtc] ": (1, "pieces of the state change their meaning"),
    r"estate (?:extract|plan|rehearse|apply) bank/": (1, "pieces of the state are lost unless a person acts"),
    r"shares status shares\.toml": (1, "no bridge works for the shares"),
    r"qpubsub stop -m QM1": (1, "no run works for it"),
    r"qpubsub delete QM1$": (2, "it holds a message"),
    r"qpubsub transactions .*--commit": (1, "no transaction is in doubt"),
}
"""What a command contains, the exit code of the data in the demo's files, and why."""

_SHARES = 'printf \'name = "W"\\n[[share]]\\nqmgr = "W.ALL"\\nqueues = ["*"]\\n\' >w.toml'

_ESTATE = ("extract", "plan", "rehearse", "apply", "verify", "undo", "status", "pack", "diff")

PROVOKED = {
    "demo": {2: "qpubsub demo --copy ."},
    "stop": {2: "qpubsub stop -m QM9"},
    "export": {2: "qpubsub export -m QM9"},
    "decode": {1: "head -c 40 capture.dat | qpubsub decode -", 2: "qpubsub decode missing.dat"},
    "encode": {1: "echo '{\"headers\": 5}' | qpubsub encode", 2: "qpubsub encode --command Nothing"},
    "convert": {1: "head -c 300 captures/stock.pcap | qpubsub convert -", 2: "qpubsub convert missing.dat"},
    "translate": {0: "qpubsub translate regsub.dat", 2: "qpubsub translate missing.dat"},
    "create": {2: "qpubsub create QM1"},
    "mqsc": {1: "echo 'DEFINE NOTHING' | qpubsub mqsc -m QM1", 2: "qpubsub mqsc -m QM1 missing.mqsc"},
    "put": {1: "qpubsub put -m QM1 SUB.Q transfers.jsonl", 2: "qpubsub put -m QM1 SUB.Q missing.jsonl"},
    "get": {2: "qpubsub get -m QM1 NO.SUCH.QUEUE"},
    "browse": {2: "qpubsub browse -m QM1 NO.SUCH.QUEUE"},
    "pub": {2: "qpubsub pub -m QM9 Sport/Soccer '1 0'"},
    "check": {
        0: "qpubsub check -m QM1",
        1: "qpubsub check -m QM1 --topics mqtt://localhost:1",
        2: "qpubsub check -m QM9",
    },
    "capture": {2: "qpubsub capture --out day1 SPORT.STREAM"},
    "console": {2: "qpubsub console -m QM1 --listen 0.0.0.0:8414"},
    "run": {
        1: "qpubsub put -m QM1 SYSTEM.BROKER.CONTROL.QUEUE browse.txt; qpubsub run -m QM1 --once",
        2: "qpubsub run -m QM9 --once",
    },
    "shares create": {0: f"{_SHARES}; qpubsub shares create w.toml", 2: "qpubsub shares create missing.toml"},
    "shares run": {2: "qpubsub shares run missing.toml"},
    "shares status": {
        1: f"{_SHARES}; qpubsub shares create w.toml; qpubsub shares status w.toml",
        2: "qpubsub shares status missing.toml",
    },
    "shares where": {
        0: f"{_SHARES}; qpubsub shares create w.toml; qpubsub shares where w.toml ANY.QUEUE",
        2: "qpubsub shares where missing.toml ANY.QUEUE",
    },
    "shares put": {
        0: f"{_SHARES}; qpubsub shares create w.toml; qpubsub shares put w.toml capture.jsonl",
        1: f"{_SHARES}; qpubsub shares create w.toml; head -c 99 capture.jsonl | qpubsub shares put w.toml -",
        2: "qpubsub shares put missing.toml capture.jsonl",
    },
    "config check": {
        0: "echo '[run]' >empty.toml; qpubsub config check empty.toml",
        1: "echo '[run' >broken.toml; qpubsub config check broken.toml",
        2: "qpubsub config check missing.toml",
    },
    "passwd": {0: "echo secret | qpubsub passwd --users users alice", 2: "qpubsub passwd"},
    "cleanup": {
        1: "qpubsub put -m QM1 SYSTEM.JMS.ADMIN.QUEUE capture.dat; qpubsub cleanup -m QM1",
        2: "qpubsub cleanup -m QM9",
    },
    "topics": {2: "qpubsub topics -m QM9"},
    "status": {2: "qpubsub status -m QM9"},
    "replay": {
        1: "head -c 40 capture.dat | qpubsub replay - --output damaged.jsonl",
        2: "qpubsub replay missing.jsonl --output missing-puts.jsonl",
    },
    "differences": {
        1: "head -c 300 captures/stock.pcap >short.pcap; qpubsub differences short.pcap",
        2: "qpubsub differences missing.jsonl",
    },
    "why": {
        1: "head -c 300 captures/stock.pcap >short.pcap; qpubsub why --input short.pcap",
        2: "qpubsub why --input missing.jsonl",
    },
    "analyse": {
        1: "head -c 300 captures/stock.pcap >short.pcap; qpubsub analyse short.pcap",
        2: "qpubsub analyse missing.jsonl",
    },
    "dev": {2: "qpubsub dev --mqsc missing"},
    "list": {2: "qpubsub list --home postgresql://localhost:1/mq"},
    "schema": {2: "qpubsub schema nothing"},
    "transactions": {2: "qpubsub transactions -m QM9"},
    "home copy": {2: "qpubsub home copy missing elsewhere"},
    "shadow": {
        1: "head -c 300 captures/stock.pcap >short.pcap; qpubsub shadow short.pcap",
        2: "qpubsub shadow missing.jsonl",
    },
    "generate": {2: "qpubsub generate --messages 10 --output nowhere/workload.jsonl"},
    "strmqbrk": {2: "qpubsub strmqbrk -m QM9 state/"},
    "migmbbrk": {2: "qpubsub migmbbrk -r -b BRK1 -m QM9 outfile.txt"},
    **{f"estate {verb}": {2: f"qpubsub estate {verb} missing/"} for verb in _ESTATE},
    "inspect": {2: "qpubsub inspect --at 12 missing.jsonl"},
    "extract": {2: "qpubsub extract -m QM9"},
    "mcp": {2: "qpubsub mcp -m QM9"},
    "apply": {2: "qpubsub apply -m QM1 nowhere"},
    "verify": {2: "qpubsub verify -m QM1 nowhere"},
}
"""For verbs whose examples do not show each exit code of their help page: code, and a command that ends in it."""


UNSEEN = {
    "stop": {0},
    "export": {1},
    "dev": {0, 1},
    "home copy": {0, 1},
    "mcp": {1},
    "sub": {0, 1, 2},
    "capture": {0},
    "generate": {1},
    "run": {130},
    "strmqbrk": {3, 4},
    "migmbbrk": {3, 4},
    "shares run": {0},
    "shares status": {0},
    **{f"estate {verb}": {0, 1} for verb in _ESTATE},
    "inspect": {1},
    "extract": {0, 1},
    "apply": {0, 1},
    "verify": {0, 1},
}
"""Exit codes of help pages that no short command provokes; the tests of the verb do."""


def examples() -> Iterator[tuple[str, str]]:
    """Verb and example, in the order of the verbs, as the help pages have them."""
    for verb, command in main.every_command():
        for line in joined([line.strip() for line in (command.epilog or "").split("\n")]):
            if re.match(r"(\S+=\S+ )?qpubsub |(?:echo|tail) .*qpubsub", line):
                yield verb, line


def codes_of(verb: str) -> set[int]:
    """The exit codes that the help page of a verb names."""
    command = dict(main.every_command())[verb]
    text = " ".join(f"{command.help} {command.epilog}".split())
    _before, _, behind = text.partition("Exit codes:")
    return {int(code) for code in re.findall(r"(?:^|[,;.] )(\d{1,3})(?=:? )", behind.strip())}
