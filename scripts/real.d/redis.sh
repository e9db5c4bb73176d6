# Redis with an I/O thread for every second CPU, at least two, over a socket; redis-benchmark asks.
#
# The I/O threads spin while they have nothing to do, without a lock, and each takes part in each
# round: with more of them than CPUs Redis is slow beyond use, whatever its locks. So here the
# overcommit is of clients only.

program redis 'redis-server redis-tools' 'redis-server redis-cli redis-benchmark redis-check-rdb'

redis_ask() {
    redis-cli -s "$WORK/socket" "$@"
}

measure_redis() {
    local threads=$((($(nproc) + 1) / 2))
    serve redis-server --port 0 --unixsocket "$WORK/socket" --dir "$WORK" --save '' --appendonly no --daemonize no --maxclients 4096 \
        --io-threads $((threads > 2 ? threads : 2)) --io-threads-do-reads yes
    await redis_ask ping
    # Some requests at a time, more of them if that is soon done, until the time is over.
    local requests=2000 total=0 start=${EPOCHREALTIME/./} before
    while [ $((${EPOCHREALTIME/./} - start)) -lt $((SECONDS_EACH * 1000000)) ]; do
        before=${EPOCHREALTIME/./}
        redis-benchmark -s "$WORK/socket" -c $((THREADS * 4)) --threads "$threads" -P 8 -n $requests -q -t incr,set,get,lpush,lpop
        total=$((total + requests))
        [ $((${EPOCHREALTIME/./} - before)) -gt 500000 ] || requests=$((requests * 2))
    done >"$WORK/out"
    local took=$((${EPOCHREALTIME/./} - start))
    same "$(redis_ask get counter:__rand_int__)" $total "the counter"
    # A child writes the file.
    redis_ask bgsave
    while redis_ask info persistence | grep -q rdb_bgsave_in_progress:1; do
        sleep 0.1
    done
    redis-check-rdb "$WORK/dump.rdb"
    redis_ask shutdown nosave
    ended
    rate "$(awk "BEGIN { printf \"%.0f\", $total * 5e6 / $took }")" requests/s
}
