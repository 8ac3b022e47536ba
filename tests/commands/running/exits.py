"""Publish exits for tests, each a function; ExitData of a test goes to some of them.

The last one is a program in no language of ours: ``python tests/commands/running/exits.py`` reads and writes lines.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from commands import ExitAnswer, ExitParms, ExitReason, ExitResponse, PublicationContext, SubscriptionContext
from rfh2.constants import MQRO_DISCARD_MSG

_seen = 0


def counting(
    parms: ExitParms, _publication: PublicationContext | None, subscription: SubscriptionContext | None
) -> ExitAnswer | None:
    """Counts its calls in the user area, and sends the message to a queue of that number; a line for each in data."""
    number = int.from_bytes(parms.exit_user_area, "big") + 1
    if parms.exit_data:
        with Path(parms.exit_data).open("a") as log:
            log.write(f"{parms.exit_reason.name} {parms.qmgr_name} {number}\n")
        if parms.exit_reason is ExitReason.TERM:
            atexit.register(_end_slowly, Path(parms.exit_data), parms.qmgr_name)
    answer = ExitAnswer(exit_user_area=number.to_bytes(16, "big"))
    if subscription is None:
        return answer
    return answer.model_copy(update={"destination_q_name": f"{subscription.destination_q_name}.{number}"})


def _end_slowly(data: Path, qmgr: str) -> None:
    """A program that is killed right after its answer to TERM does not get here."""
    time.sleep(0.2)
    with data.open("a") as log:
        log.write(f"ended {qmgr}\n")


def by_data(
    parms: ExitParms, publication: PublicationContext | None, _subscription: SubscriptionContext | None
) -> ExitAnswer | None:
    """Does what the data of the publication says."""
    global _seen  # noqa: PLW0603
    _seen += 1
    if parms.message is None or publication is None:
        return None
    message = parms.message
    what = message.body[message.body.rindex(b"\0") + 1 :] if b"\0" in message.body[-24:] else message.body[-24:]
    words = what.decode("ascii", "replace")
    if "raise" in words:
        raise ValueError("no such table")
    if "exit" in words:
        sys.exit(3)
    if "hang" in words:
        time.sleep(3600)
    if "spin" in words:
        while True:
            pass
    if "die once" in words and _seen > 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if "die always" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if "print" in words:
        print("this is no answer", flush=True)
    if "nonsense" in words:
        return 42  # type: ignore[return-value]
    if "dead" in words:
        return ExitAnswer(exit_response=ExitResponse.SUPPRESS_FUNCTION, feedback=70_001)
    if "discard" in words:
        mqmd = replace(message.mqmd, report=MQRO_DISCARD_MSG)
        return ExitAnswer(exit_response=ExitResponse.SUPPRESS_FUNCTION, md=mqmd.encode())
    if "move" in words:
        return ExitAnswer(destination_q_name="MOVED")
    if "longer" in words:
        return ExitAnswer(body=message.body + b"x" * 5_000_000)
    return None


def refusing(parms: ExitParms, *_: object) -> ExitAnswer | None:
    """Is not initialized."""
    return (
        ExitAnswer(exit_response=ExitResponse.FAILED, why="no licence")
        if parms.exit_reason is ExitReason.INIT
        else None
    )


def main() -> None:
    """The program; its argument says what it does."""
    (what,) = sys.argv[1:]
    for line in sys.stdin:
        call = json.loads(line)
        is_message = call["parms"]["exit_reason"] == 30
        if what == "upper" and is_message:
            body = bytes.fromhex(call["parms"]["message"]["body_hex"])
            print(json.dumps({"body_hex": (body[:-4] + body[-4:].upper()).hex()}), flush=True)
        elif what == "no JSON" and is_message:
            print("Hello", flush=True)
        elif what == "unknown key" and is_message:
            print('{"exit_respons": 0}', flush=True)
        elif what == "two lines" and is_message:
            print("{}\n{}", flush=True)
        elif what == "no end" and is_message:
            while True:
                print("x" * 65_536, end="", flush=True)
        elif what == "deaf" and is_message:
            pass
        else:
            print("{}", flush=True)


if __name__ == "__main__":
    main()
