"""Quiet: what makes the event loop wait, and can be kept from it, where the server is the whole process."""

from __future__ import annotations

import gc
import sys

# The event loop waits so long for a thread that is at work in Python (5 ms by default), several times a request.
SWITCH_S = 0.0005


def settle() -> None:
    """What is there now is taken to stay: the garbage collector's full rounds pass it over. With all that libraries and
    a model bring, one takes a sixth of a second, in which nothing else runs. What was passed over before is looked at
    again, so that an old model goes."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def switch_often() -> None:
    sys.setswitchinterval(SWITCH_S)
