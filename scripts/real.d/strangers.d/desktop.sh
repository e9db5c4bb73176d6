# Databases that live in a program, and programs of the desktop. For ../strangers and `one` to
# source.

stranger sqlite '' /usr/bin/python3 'SQLite' '/usr/bin/python3 -c "import sqlite3; print(sqlite3.sqlite_version)"' '8 threads write 400 rows each into one file'
load_sqlite() {
    "${RUN[@]}" /usr/bin/python3 -c '
import sqlite3, sys, threading
path = sys.argv[1]
sqlite3.connect(path).executescript("pragma journal_mode=wal; pragma synchronous=off; create table t(a, b)")
def work(i):
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    for k in range(400):
        db.execute("insert into t values(?, ?)", (i, k))
    db.execute("select count(*), sum(b) from t").fetchone()
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(sqlite3.connect(path).execute("select count(*), sum(a * b) from t").fetchone())' "$WORK/db"
}

stranger sqlite-one '' /usr/bin/python3 'SQLite, one connection' '/usr/bin/python3 -c "import sqlite3; print(sqlite3.sqlite_version)"' '8 threads on one connection'
load_sqlite-one() {
    "${RUN[@]}" /usr/bin/python3 -c '
import sqlite3, threading
db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
db.execute("create table t(a, b)")
def work(i):
    for k in range(2000): db.execute("insert into t values(?, ?)", (i, k))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(db.execute("select count(*), sum(a * b) from t").fetchone())'
}

# of_pypi PACKAGE: prints the folder that has it, or fails.
of_pypi() {
    local to=$PREPARED/pypi
    [ -d "$to/$1" ] || /usr/bin/python3 -m pip install -q --target "$to" "$1" >>"$WORK/log" 2>&1 || return
    echo "$to"
}

stranger duckdb python3-pip /usr/bin/python3 'DuckDB' 'ls "$PREPARED/pypi" | grep ^duckdb-' 'joins and sums of a million rows, 8 threads'
load_duckdb() {
    PYTHONPATH=$(of_pypi duckdb) || return 77
    PYTHONPATH=$PYTHONPATH "${RUN[@]}" /usr/bin/python3 -c '
import duckdb, threading
db = duckdb.connect(config={"threads": 8})
db.execute("create table t as select range a, range % 1000 b from range(1000000)")
print(db.execute("select sum(x.a), count(*) from t x join t y on x.a = y.b where x.b < 500").fetchall())
def work(i): db.cursor().execute("insert into t select range, %d from range(10000)" % i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(db.execute("select count(*), sum(a), count(distinct b) from t").fetchall())'
}

stranger arrow python3-pip /usr/bin/python3 'Apache Arrow' 'ls "$PREPARED/pypi" | grep ^pyarrow-' 'a million rows written, read and grouped by its pool'
load_arrow() {
    PYTHONPATH=$(of_pypi pyarrow) || return 77
    PYTHONPATH=$PYTHONPATH "${RUN[@]}" /usr/bin/python3 -c '
import sys, pyarrow as pa, pyarrow.parquet as pq
pa.set_cpu_count(8); pa.set_io_thread_count(8)
t = pa.table({"a": list(range(1000000)), "b": [i % 100 for i in range(1000000)]})
pq.write_table(t, sys.argv[1], row_group_size=20000)
g = pq.read_table(sys.argv[1]).group_by("b").aggregate([("a", "sum")]).sort_by("b")
print(g.num_rows, g["a_sum"].to_pylist()[:3])' "$WORK/t"
}

stranger zeromq python3-zmq /usr/bin/python3 'ZeroMQ' '/usr/bin/python3 -c "import zmq; print(zmq.zmq_version())"' '20,000 messages from 4 threads'
load_zeromq() {
    "${RUN[@]}" /usr/bin/python3 -c '
import threading, zmq
context = zmq.Context(4)
sink = context.socket(zmq.PULL); port = sink.bind_to_random_port("tcp://127.0.0.1")
def work(i):
    s = context.socket(zmq.PUSH); s.connect("tcp://127.0.0.1:%d" % port)
    for k in range(5000): s.send(b"%d" % k)
    s.close()
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
print(sum(int(sink.recv()) for _ in range(20000)))
for t in threads: t.join()
sink.close(); context.term()'
}

stranger chromium chromium chromium 'Chromium' 'chromium --version' 'a page that draws and decodes 20 pictures'
load_chromium() {
    cat >"$WORK/page.html" <<'HTML'
<body><script>
let all = [], canvas = document.createElement('canvas'), on = canvas.getContext('2d');
for (let i = 0; i < 60; i++) { on.fillStyle = `hsl(${i * 6} 50% 50%)`; on.fillRect(i * 5, i, 9, 90); }
for (let i = 0; i < 20; i++) all.push(new Promise(done => { let image = new Image(); image.onload = () => done(image.width * (i + 1)); image.src = canvas.toDataURL(); document.body.append(image); }));
Promise.all(all).then(widths => { let out = document.createElement('p'); out.id = 'out'; out.textContent = widths.join(' '); document.body.append(out); });
</script></body>
HTML
    HOME=$WORK "${RUN[@]}" chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$WORK/profile" --virtual-time-budget=20000 \
        --dump-dom "file://$WORK/page.html" 2>>"$WORK/log" | grep -o '<p id="out">[^<]*</p>'
}

stranger libreoffice libreoffice-writer-nogui soffice 'LibreOffice' 'soffice --version' 'a page of HTML to ODT, and that to text'
load_libreoffice() {
    { echo '<html><body>'; for number in $(seq 300); do echo "<p>Paragraph <b>$number</b> of a document.</p>"; done; echo '</body></html>'; } >"$WORK/a.html"
    HOME=$WORK "${RUN[@]}" soffice --headless --norestore "-env:UserInstallation=file://$WORK/profile" --convert-to odt --writer --outdir "$WORK" "$WORK/a.html" >>"$WORK/log" &&
        HOME=$WORK "${RUN[@]}" soffice --headless --norestore "-env:UserInstallation=file://$WORK/profile" --convert-to txt:Text --outdir "$WORK" "$WORK/a.odt" >>"$WORK/log" &&
        md5sum <"$WORK/a.txt"
}
