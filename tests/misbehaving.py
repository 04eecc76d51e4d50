"""A child process of the campaign that misbehaves, for tests/test_campaign.py."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection

from campaign import worker


def serve(connection: Connection, _seed: str, memory: float) -> None:
    """Hang, die, or take too much memory, before or after the answer."""
    worker._limit(memory)
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        connection.send(("posed", {"index": index, "steps": [], "seconds": 0.0}))
        if index == 0:
            while True:
                time.process_time()
        if index == 1:
            os.abort()
        if index == 2:
            try:
                bytearray(1 << 30)
            except MemoryError:
                connection.send(("done", {"index": index, "verdict": "memory"}))
                continue
        if index == 3:
            connection.send(("answered", {"index": index}))
            os.abort()
        connection.send(("done", {"index": index, "verdict": "right"}))
