"""A thread hands work to another: handoffs.py executor|queue SECONDS"""

import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

how, seconds = sys.argv[1], int(sys.argv[2])


def repeat(round_trip):
    """Makes round trips until the time is over, and prints their rate."""
    count = 0
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if round_trip(count) != count:
            sys.exit(f"wrong: another number than {count} came back")
        count += 1
    print(f"per second: {count / (time.monotonic() - start):.0f}")


if how == "executor":
    with ThreadPoolExecutor(1) as pool:
        repeat(lambda number: pool.submit(int, number).result())
else:
    there, back = queue.Queue(), queue.Queue()

    def answer():
        while (number := there.get()) is not None:
            back.put(number)

    def round_trip(number):
        there.put(number)
        return back.get()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        repeat(round_trip)
    finally:
        there.put(None)
        thread.join()
