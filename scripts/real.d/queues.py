"""Threads that pass numbers through a queue: queues.py THREADS SECONDS

Half of them put, half of them get, and none is lost or comes twice: count and sum tell. Every 64th is counted under
a lock, by a semaphore, and with a condition, too.
"""

import queue
import sys
import threading
import time

threads, seconds = int(sys.argv[1]), int(sys.argv[2])
half = max(1, threads // 2)
numbers = queue.Queue(maxsize=2 * half)
lock, semaphore, condition = threading.RLock(), threading.BoundedSemaphore(2), threading.Condition()
put, got, counted, signalled = [], [], 0, 0
end = time.monotonic() + seconds


def producer(first):
    number = total = 0
    while time.monotonic() < end:
        numbers.put(first + number)
        total += first + number
        number += 1
    put.append((number, total))


def consumer():
    global counted, signalled
    count = total = 0
    while (number := numbers.get()) is not None:
        count += 1
        total += number
        if count % 64 == 0:
            with lock, lock, semaphore:
                counted += 1
            with condition:
                signalled += 1
                condition.notify_all()
    got.append((count, total))


def watcher():
    seen = 0
    with condition:
        while not done:
            condition.wait(timeout=0.05)
            assert signalled >= seen
            seen = signalled


done = False
start = time.monotonic()
watching = threading.Thread(target=watcher)
producers = [threading.Thread(target=producer, args=(i << 40,)) for i in range(half)]
consumers = [threading.Thread(target=consumer) for _ in range(half)]
for thread in [watching, *producers, *consumers]:
    thread.start()
for thread in producers:
    thread.join()
for _ in consumers:
    numbers.put(None)
for thread in consumers:
    thread.join()
with condition:
    done = True
    condition.notify_all()
watching.join()
took = time.monotonic() - start

sums = [[sum(column) for column in zip(*rows)] for rows in (put, got)]
if sums[0] != sums[1]:
    sys.exit(f"wrong: put {sums[0]}, got {sums[1]}")
if counted != sum(count // 64 for count, _ in got) or counted != signalled:
    sys.exit(f"wrong: counted {counted}, signalled {signalled}")
print(f"numbers per second: {sums[1][0] / took:.0f}")
