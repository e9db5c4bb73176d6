# CPython: its own tests of threads, and threads that pass numbers through queues.

program python-queue python3-minimal /usr/bin/python3
program python-tests 'python3 libpython3-testsuite' /usr/lib/python3*/test/test_threading.py once

measure_python_queue() {
    locked /usr/bin/python3 "$here/queues.py" "$THREADS" "$SECONDS_EACH" | tee "$WORK/out"
    rate "$(sed -n 's/^numbers per second: //p' "$WORK/out")" numbers/s
}

# All or nothing: no rate.
measure_python_tests() {
    cd "$WORK"
    locked /usr/bin/python3 -m test --tempdir "$WORK" test_threading test_thread test_threading_local test_queue test_threadsignals \
        test_threadedtempfile test_fork1 test_sched | tee "$WORK/out"
    grep -x 'Tests result: SUCCESS\|Result: SUCCESS' "$WORK/out" || wrong "a test fails"
}
