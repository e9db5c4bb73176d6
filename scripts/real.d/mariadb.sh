# MariaDB, with a connection for each thread, over a socket; sysbench asks. Nothing is flushed to
# disks, but by handoff-mariadb-commit, whose 8 threads commit in groups as by default.

for name in point read write; do
    program "mariadb-$name" 'mariadb-server mariadb-client sysbench' 'mariadbd mariadb mariadb-admin mariadb-install-db sysbench'
done

program handoff-mariadb-commit 'mariadb-server mariadb-client sysbench' 'mariadbd mariadb mariadb-admin mariadb-install-db sysbench' alone

tables=4 rows=10000
without_flushes='--innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync --skip-innodb-doublewrite'

mariadb_client() {
    mariadb --no-defaults --socket="$WORK/socket" --user=root --batch --skip-column-names "$@"
}

mariadb_admin() {
    mariadb-admin --no-defaults --socket="$WORK/socket" --user=root "$@"
}

mariadb_sysbench() {
    sysbench "$1" --db-driver=mysql --mysql-socket="$WORK/socket" --mysql-user=root --mysql-db=test --tables=$tables --table-size=$rows \
        "${@:2}"
}

mariadb_start() { # directory
    serve mariadbd --no-defaults --user="$(id -un)" --datadir="$1" --socket="$WORK/socket" --pid-file="$WORK/pid" \
        --skip-networking --skip-grant-tables --max-connections=1000 --innodb-buffer-pool-size=64M --innodb-log-file-size=32M \
        $without_flushes --log-error="$WORK/errors"
    await mariadb_admin ping
}

mariadb_end() {
    mariadb_admin shutdown
    ended
    ! grep '\[ERROR\]' "$WORK/errors" || wrong "errors in the server's log"
}

prepare_mariadb_point() {
    local data=$PREPARED/data
    mkdir "$data"
    mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$data" --auth-root-authentication-method=normal --skip-test-db \
        --innodb-log-file-size=32M >"$WORK/install" 2>&1 || { cat "$WORK/install" && wrong "mariadb-install-db failed"; }
    mariadb_start "$data"
    mariadb_client -e 'create database test'
    mariadb_sysbench oltp_read_only prepare
    mariadb_end
}

prepare_mariadb_read() {
    prepare_mariadb_point
}

prepare_mariadb_write() {
    prepare_mariadb_point
}

prepare_handoff_mariadb_commit() {
    prepare_mariadb_point
}

# The server's purge now and then leaves an entry of an index that is marked as deleted (bit 32)
# behind the row that it was of: a warning, no error, also without the drop-in.
mariadb_check() { # table
    mariadb_client test -e "check table $1 extended" | cut -f 4 | grep -v 'Clustered index record not found .*(info_bits=32,'
}

mariadb_run() { # test unit
    cp -r --reflink=auto "$PREPARED/data" "$WORK/data"
    mariadb_start "$WORK/data"
    # On a machine that is slow a deadlock or a lock that comes too late is no error: sysbench tries
    # again, and counts it.
    mariadb_sysbench "$1" --threads="$THREADS" --time="$SECONDS_EACH" run | tee "$WORK/out"
    local table
    for ((table = 1; table <= tables; table++)); do
        same "$(mariadb_client test -e "select count(*) from sbtest$table")" $rows "rows of table $table"
        same "$(mariadb_check "sbtest$table")" OK "table $table"
    done
    # How much was written depends on the time.
    [[ $1 = oltp_*write || $1 = oltp_update* ]] || answer "$(mariadb_client test -e 'checksum table sbtest1, sbtest2, sbtest3, sbtest4' | cut -f 2 | tr '\n' ' ')"
    same "$(sed -n 's/.*reconnects: *\([0-9]*\).*/\1/p' "$WORK/out")" 0 "reconnections"
    mariadb_end
    rate "$(sed -n 's/.*queries: .*(\([0-9.]*\) per sec.*/\1/p' "$WORK/out")" queries/s
}

measure_mariadb_point() {
    mariadb_run oltp_point_select
}

measure_mariadb_read() {
    mariadb_run oltp_read_only
}

measure_mariadb_write() {
    mariadb_run oltp_read_write
}

measure_handoff_mariadb_commit() {
    THREADS=8 without_flushes= mariadb_run oltp_update_non_index
}
