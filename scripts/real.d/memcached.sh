# memcached over a socket; memload.c asks and checks.

program memcached 'memcached gcc libc6-dev' 'memcached gcc'

prepare_memcached() {
    compile memload.c
}

measure_memcached() {
    serve memcached -u "$(id -un)" -s "$WORK/socket" -t "$THREADS" -m 256 -c 4096
    await test -S "$WORK/socket"
    "$BIN/memload" "$WORK/socket" "$(nproc)" "$THREADS" "$SECONDS_EACH" | tee "$WORK/out"
    kill -TERM "$server"
    ended
    rate "$(sed -n 's/^requests per second: //p' "$WORK/out")" requests/s
}
