# Programs whose threads hand work to each other, and servers that wait for their clients. Their
# speed is that of waits and wake-ups. Each has its own number of threads.

# Programs of ours, in the directory handoffs: a thread asks, another answers.

handoff() { # unit command...
    locked "${@:2}" | tee "$WORK/out"
    rate "$(sed -n 's/^per second: //p' "$WORK/out")" "$1"
}

compile_handoff() { # file libraries...
    mkdir -p "$BIN/handoffs"
    compile "handoffs/$1" "${@:2}"
}

program handoff-pthread 'gcc libc6-dev' gcc alone

prepare_handoff_pthread() {
    compile_handoff pthread.c
}

measure_handoff_pthread() {
    handoff 'round trips/s' "$BIN/handoffs/pthread" "$SECONDS_EACH"
}

# Ten at once, on fewer CPUs: the rate is that of the slowest.
program handoff-pthread-10 'gcc libc6-dev' gcc alone

prepare_handoff_pthread_10() {
    compile_handoff pthread.c
}

measure_handoff_pthread_10() {
    local number
    for ((number = 0; number < 10; number++)); do
        locked "$BIN/handoffs/pthread" "$SECONDS_EACH" >"$WORK/$number" &
    done
    wait
    rate "$(sed -n 's/^per second: //p' "$WORK"/[0-9] | sort -n | head -n 1)" 'round trips/s'
    same "$(grep -c '^per second' "$WORK"/[0-9] | grep -c ':1$')" 10 "processes that end well"
}

for name in pipe socket; do
    program "handoff-$name" 'gcc libc6-dev' gcc alone
    eval "prepare_handoff_$name() { compile_handoff pipe.c; }"
    eval "measure_handoff_$name() { handoff 'round trips/s' \"\$BIN/handoffs/pipe\" $name \"\$SECONDS_EACH\"; }"
done

for name in executor queue monitor; do
    program "handoff-java-$name" default-jdk-headless 'java javac' alone
    eval "prepare_handoff_java_$name() { compile_java Handoffs; }"
    eval "measure_handoff_java_$name() { handoff_java $name; }"
done

compile_java() { # class
    mkdir -p "$BIN/handoffs"
    [ -e "$BIN/handoffs/$1.class" ] || javac -d "$BIN/handoffs" "$here/handoffs/$1.java"
}

handoff_java() { # executor|queue|monitor
    handoff 'round trips/s' java -cp "$BIN/handoffs" Handoffs "$1" "$SECONDS_EACH"
}

for name in executor queue; do
    program "handoff-python-$name" python3 /usr/bin/python3 alone
    eval "measure_handoff_python_$name() { handoff_python $name; }"
done

handoff_python() { # executor|queue
    handoff 'round trips/s' /usr/bin/python3 "$here/handoffs/handoffs.py" "$1" "$SECONDS_EACH"
}

# With one worker of libuv, and with four, which is its default.
program handoff-node nodejs node alone
program handoff-node-4 nodejs node alone

handoff_node() { # workers
    UV_THREADPOOL_SIZE=$1 handoff calls/s node "$here/handoffs/stat.mjs" "$SECONDS_EACH"
}

measure_handoff_node() {
    handoff_node 1
}

measure_handoff_node_4() {
    handoff_node 4
}

program handoff-ruby ruby ruby alone

measure_handoff_ruby() {
    handoff 'round trips/s' ruby "$here/handoffs/queue.rb" "$SECONDS_EACH"
}

# Rust's standard library, compiled without Cargo.
for name in mpsc park condvar; do
    program "handoff-rust-$name" rustc rustc alone
    eval "prepare_handoff_rust_$name() { compile_standard; }"
    eval "measure_handoff_rust_$name() { handoff_standard $name; }"
done

compile_standard() {
    mkdir -p "$BIN/handoffs"
    [ -e "$BIN/handoffs/standard" ] || rustc --edition 2021 -O --out-dir "$BIN/handoffs" "$here/handoffs/rust/src/standard.rs"
}

handoff_standard() { # mpsc|park|condvar
    handoff 'round trips/s' "$BIN/handoffs/standard" "$1" "$SECONDS_EACH"
}

# Crates of others, which Cargo fetches. It must be as new as the project's.
for name in crossbeam rayon tokio spawn-blocking; do
    program "handoff-rust-$name" cargo cargo alone
    eval "prepare_handoff_rust_${name//-/_}() { compile_crates; }"
done

compile_crates() {
    cargo build --release --locked --manifest-path "$here/handoffs/rust/Cargo.toml" --target-dir "$BIN/handoffs/target"
}

handoff_crates() { # unit crossbeam|rayon|tokio|spawn-blocking
    handoff "$1" "$BIN/handoffs/target/release/handoffs" "$2" "$SECONDS_EACH"
}

measure_handoff_rust_crossbeam() {
    handoff_crates 'round trips/s' crossbeam
}

measure_handoff_rust_rayon() {
    handoff_crates joins/s rayon
}

measure_handoff_rust_tokio() {
    handoff_crates 'round trips/s' tokio
}

measure_handoff_rust_spawn_blocking() {
    handoff_crates calls/s spawn-blocking
}

program handoff-glib 'libglib2.0-dev pkg-config gcc' 'gcc pkg-config /usr/include/glib-2.0/glib.h' alone

prepare_handoff_glib() {
    # shellcheck disable=SC2046 # words
    compile_handoff glib.c $(pkg-config --cflags --libs glib-2.0)
}

measure_handoff_glib() {
    handoff 'round trips/s' "$BIN/handoffs/glib" "$SECONDS_EACH"
}

for name in atomic semaphore; do
    program "handoff-cxx-$name" g++ g++ alone
    eval "prepare_handoff_cxx_$name() { compile_handoff cxx.cpp -std=c++20; }"
    eval "measure_handoff_cxx_$name() { handoff_cxx $name; }"
done

handoff_cxx() { # atomic|semaphore
    handoff 'round trips/s' "$BIN/handoffs/cxx" "$1" "$SECONDS_EACH"
}

program handoff-tbb 'libtbb-dev g++' 'g++ /usr/include/tbb/parallel_for.h' alone

prepare_handoff_tbb() {
    compile_handoff tbb.cpp -ltbb
}

measure_handoff_tbb() {
    handoff loops/s "$BIN/handoffs/tbb" "$SECONDS_EACH"
}

# RocksDB: eight writers, of whom one writes the log for all that wait meanwhile. rocksdb.sh has the
# functions.
program handoff-group-commit rocksdb-tools 'db_bench ldb' alone

measure_handoff_group_commit() {
    THREADS=8 measure_rocksdb_write
}

# Servers: they have the drop-in, and wait for clients, who do not have it.

# A port of the loopback device that nobody uses.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

listens() { # port
    (exec 3<>"/dev/tcp/127.0.0.1/$1")
}

# The clients' median, in microseconds.
latency() {
    [[ $1 =~ ^[0-9]+(\.[0-9]+)?$ ]] || wrong "no latency: $1"
    echo "latency $1" >>"$RESULT"
}

# wrk asks a web server through so many connections.
ask_web() { # port connections
    wrk --threads 1 --connections "$2" --duration "${SECONDS_EACH}s" --latency "http://127.0.0.1:$1/" | tee "$WORK/out"
    ! grep 'Non-2xx\|Socket errors' "$WORK/out" || wrong "requests failed"
    rate "$(sed -n 's/^Requests\/sec: *//p' "$WORK/out")" requests/s
    latency "$(awk '$1 == "50%" { print $2 * ($2 ~ /us$/ ? 1 : $2 ~ /ms$/ ? 1000 : 1000000) }' "$WORK/out")"
}

# Redis without I/O threads.
for clients in 1 4 16 50; do
    program "handoff-redis-$clients" 'redis-server redis-tools' 'redis-server redis-cli redis-benchmark' alone
    eval "measure_handoff_redis_$clients() { handoff_redis $clients; }"
done

handoff_redis() { # clients
    local port
    port=$(free_port)
    serve redis-server --bind 127.0.0.1 --port "$port" --dir "$WORK" --save '' --appendonly no --daemonize no
    await redis-cli -p "$port" ping
    # The benchmark's key, so that each request finds a value.
    redis-cli -p "$port" set key:__rand_int__ value
    # Some requests at a time, more of them if that is soon done, until the time is over.
    local requests=1000 total=0 start=${EPOCHREALTIME/./} before
    while [ $((${EPOCHREALTIME/./} - start)) -lt $((SECONDS_EACH * 1000000)) ]; do
        before=${EPOCHREALTIME/./}
        redis-benchmark -h 127.0.0.1 -p "$port" -c "$1" -n $requests -q -t get
        total=$((total + requests))
        [ $((${EPOCHREALTIME/./} - before)) -gt 500000 ] || requests=$((requests * 2))
    done >"$WORK/out"
    local took=$((${EPOCHREALTIME/./} - start))
    same "$(redis-cli -p "$port" info stats | tr -d '\r' | sed -n 's/^keyspace_hits://p')" $total "values found"
    redis-cli -p "$port" shutdown nosave
    ended
    rate "$(awk "BEGIN { printf \"%.0f\", $total * 1e6 / $took }")" requests/s
    # The last figure is that of most requests.
    latency "$(tr '\r' '\n' <"$WORK/out" | sed -n 's/.*p50=\([0-9.]*\) msec.*/\1/p' | tail -n 1 | awk '{ print $1 * 1000 }')"
}

for clients in 1 4 32; do
    program "handoff-nginx-$clients" 'nginx wrk' 'nginx wrk' alone
    eval "measure_handoff_nginx_$clients() { handoff_nginx $clients; }"
done

handoff_nginx() { # connections
    local port
    port=$(free_port)
    cat >"$WORK/nginx.conf" <<C
daemon off;
user $(id -un) $(id -gn);
worker_processes 2;
pid pid;
error_log errors;
events {
}
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen 127.0.0.1:$port;
        return 200 "hello\n";
    }
}
C
    serve nginx -p "$WORK" -e errors -c nginx.conf
    await listens "$port"
    ask_web "$port" "$1"
    kill -TERM "$server"
    ended
    ! grep '\[\(error\|crit\|alert\|emerg\)\]' "$WORK/errors" || wrong "errors in the server's log"
}

# PostgreSQL, over a socket; pgbench asks for single rows.
for clients in 1 4 16; do
    program "handoff-postgres-$clients" postgresql "setpriv /usr/lib/postgresql/*/bin/postgres" alone
    eval "prepare_handoff_postgres_$clients() { prepare_postgres; }"
    eval "measure_handoff_postgres_$clients() { handoff_postgres $clients; }"
done

# The server refuses to run as root. As another user it must reach its directories, and the drop-in.
postgres_user() {
    postgres=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    as_postgres=()
    # The server looks at the present directory.
    cd /
    mkdir "$WORK/sockets"
    [ "$(id -u)" = 0 ] || return 0
    as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    chmod a+x "${WORK%/*}" "$WORK" "$PREPARED"
    chown postgres "$WORK/sockets"
    [ -n "$LOCKS" ] || return 0
    cp "$LOCKS" "$WORK/drop-in.so"
    chmod a+r "$WORK/drop-in.so"
    LOCKS=$WORK/drop-in.so
}

postgres_start() {
    serve "${as_postgres[@]}" "$postgres/postgres" -D "$PREPARED/data" -c listen_addresses= \
        -c unix_socket_directories="$WORK/sockets" -c fsync=off -c autovacuum=off
    await "$postgres/pg_isready" -h "$WORK/sockets"
}

postgres_end() {
    kill -TERM "$server"
    ended
}

postgres_bench() { # options...
    "$postgres/pgbench" -h "$WORK/sockets" -U overlock "$@" postgres
}

prepare_postgres() {
    postgres_user
    mkdir "$PREPARED/data"
    [ ${#as_postgres[@]} = 0 ] || chown postgres "$PREPARED/data"
    "${as_postgres[@]}" "$postgres/initdb" --pgdata="$PREPARED/data" --username=overlock --auth=trust --no-locale \
        --encoding=UTF8 --no-sync
    postgres_start
    postgres_bench --initialize --quiet
    postgres_end
}

handoff_postgres() { # clients
    postgres_user
    postgres_start
    postgres_bench --select-only --protocol=prepared --no-vacuum --client="$1" --time="$SECONDS_EACH" | tee "$WORK/out"
    postgres_end
    rate "$(sed -n 's/^tps = \([0-9]*\).*/\1/p' "$WORK/out")" transactions/s
}

# The web server of Java's library, with a pool of four threads.
for clients in 1 8; do
    program "handoff-http-java-$clients" 'default-jdk-headless wrk' 'java javac wrk' alone
    eval "prepare_handoff_http_java_$clients() { compile_java HelloServer; }"
    eval "measure_handoff_http_java_$clients() { handoff_http_java $clients; }"
done

handoff_http_java() { # connections
    local port
    port=$(free_port)
    serve java -Dsun.net.httpserver.nodelay=true -cp "$BIN/handoffs" HelloServer "$port"
    await listens "$port"
    # The JVM first interprets the code, then compiles it.
    wrk --threads 1 --connections "$1" --duration 1s "http://127.0.0.1:$port/"
    ask_web "$port" "$1"
    kill -TERM "$server"
    ended
}
