# std::shared_mutex and std::shared_timed_mutex of C++, by a program of ours, shared-mutex.cpp.

for name in read write timed; do
    program "shared-mutex-$name" g++ g++
done

shared_mutex() { # shared|timed percent of writers
    locked "$BIN/shared-mutex" "$1" "$THREADS" "$2" "$SECONDS_EACH" | tee "$WORK/out"
    rate "$(sed -n 's/^acquisitions per second: //p' "$WORK/out")" acquisitions/s
}

for name in read write timed; do
    eval "prepare_shared_mutex_$name() { compile shared-mutex.cpp; }"
done

measure_shared_mutex_read() {
    shared_mutex shared 1
}

measure_shared_mutex_write() {
    shared_mutex shared 25
}

measure_shared_mutex_timed() {
    shared_mutex timed 10
}
