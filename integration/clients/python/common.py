"""What both Python clients need to play the cases of the client matrix."""

import json
import time
import traceback

LIMIT_SECONDS = 120


class Limit(Exception):
    """The client itself has no way to do what the case asks for."""


def check(holds, otherwise):
    if not holds:
        raise AssertionError(otherwise)


def until(what, holds):
    end = time.monotonic() + LIMIT_SECONDS
    while not holds():
        check(time.monotonic() < end, "waited in vain for " + what)


def play(cases):
    """Plays cases by name and prints one JSON line for each."""
    for name, body in cases.items():
        line = {"case": name}
        try:
            body()
            line["ok"] = True
        except Limit as e:
            line["limit"] = str(e)
        except Exception as e:
            traceback.print_exc()
            line["error"] = f"{type(e).__name__}: {e}"
        print(json.dumps(line), flush=True)
