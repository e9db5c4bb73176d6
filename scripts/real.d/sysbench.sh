# sysbench's own tests of the system's locks.

program sysbench-mutex sysbench sysbench
program sysbench-threads sysbench sysbench

# All threads acquire one mutex, so often in all; between two times they count to 50. Less time is
# better, so its inverse is the rate.
measure_sysbench_mutex() {
    local locks=$((SECONDS_EACH * 16000000 / THREADS)) time
    locked sysbench mutex --threads="$THREADS" --mutex-num=1 --mutex-locks="$locks" --mutex-loops=50 run | tee "$WORK/out"
    same "$(sed -n 's/.*total number of events: *//p' "$WORK/out")" "$THREADS" "threads that have ended"
    time=$(sed -n 's/.*total time: *\([0-9.]*\)s.*/\1/p' "$WORK/out")
    rate "$(awk "BEGIN { printf \"%.0f\", $locks * $THREADS / $time }")" locks/s
}

# Eight mutexes, held across sched_yield: a thousand times for an event.
measure_sysbench_threads() {
    locked sysbench threads --threads="$THREADS" --thread-locks=8 --thread-yields=1000 --time="$SECONDS_EACH" run | tee "$WORK/out"
    local events time
    events=$(sed -n 's/.*total number of events: *//p' "$WORK/out")
    time=$(sed -n 's/.*total time: *\([0-9.]*\)s.*/\1/p' "$WORK/out")
    rate "$(awk "BEGIN { printf \"%.0f\", $events * 1000 / $time }")" yields/s
}
