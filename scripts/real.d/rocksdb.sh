# RocksDB, by its own db_bench.

for name in read write mixed; do
    program "rocksdb-$name" rocksdb-tools 'db_bench ldb'
done

keys=100000

# One cache in one piece, for all threads: what its lock costs is the matter.
rocksdb_bench() { # directory options...
    db_bench --db="$1" --num=$keys --value_size=100 --compression_type=none --cache_size=67108864 --cache_numshardbits=0 \
        --seed=1 --histogram=0 "${@:2}"
}

prepare_rocksdb_read() {
    rocksdb_bench "$PREPARED/db" --benchmarks=fillseq,compact
}

prepare_rocksdb_mixed() {
    prepare_rocksdb_read
}

rocksdb_run() { # benchmark
    export -f rocksdb_bench
    export keys
    locked bash -c 'rocksdb_bench "$@"' bench "$WORK/db" --benchmarks="$1" --threads="$THREADS" --duration="$SECONDS_EACH" "${@:2}" | tee "$WORK/out"
    ldb --db="$WORK/db" checkconsistency | grep -x OK || wrong "the database is not consistent"
    rate "$(sed -n "s/^$1 .* \([0-9]*\) ops\/sec.*/\1/p" "$WORK/out")" operations/s
}

# All keys are there, so all that is asked for is found.
rocksdb_found() {
    local asked found
    read -r found asked < <(sed -n 's/.*(\([0-9]*\) of \([0-9]*\) found).*/\1 \2/p' "$WORK/out")
    same "$found" "$asked" "keys found"
}

measure_rocksdb_read() {
    cp -r "$PREPARED/db" "$WORK/db"
    rocksdb_run readrandom --use_existing_db
    rocksdb_found
}

measure_rocksdb_mixed() {
    cp -r "$PREPARED/db" "$WORK/db"
    # So many bytes written in a second, so that the rates of readers can be compared.
    rocksdb_run readwhilewriting --use_existing_db --benchmark_write_rate_limit=1000000
    rocksdb_found
}

measure_rocksdb_write() {
    rocksdb_run fillrandom
    rocksdb_bench "$WORK/db" --use_existing_db --benchmarks=verifychecksum
}
