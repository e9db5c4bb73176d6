# Languages with run times of their own. For ../strangers and `one` to source. Each program counts
# under locks, and prints the sums.

stranger ruby ruby ruby 'Ruby' 'ruby --version' 'Mutex, ConditionVariable and Queue in 8 threads'
load_ruby() {
    "${RUN[@]}" ruby -e '
        m, c, q, n, turn = Mutex.new, ConditionVariable.new, Queue.new, 0, 0
        t = 8.times.map { |i| Thread.new { 5000.times { m.synchronize { n += 1 }; q << 1 }
            m.synchronize { c.wait(m) until turn == i; turn += 1; c.broadcast } } }
        got = 0; 40000.times { got += q.pop }
        t.each(&:join); GC.start; puts n, got, turn'
}

stranger ocaml ocaml-nox ocaml 'OCaml' 'ocaml -version' 'Mutex and Condition in 8 threads'
load_ocaml() {
    cat >"$WORK/a.ml" <<'ML'
let m = Mutex.create () and c = Condition.create ()
let n = ref 0 and turn = ref 0
let work i =
  for _ = 1 to 20000 do Mutex.lock m; incr n; ignore (Array.make 10 0); Mutex.unlock m done;
  Mutex.lock m;
  while !turn <> i do Condition.wait c m done;
  incr turn; Condition.broadcast c; Mutex.unlock m
let () =
  List.iter Thread.join (List.init 8 (fun i -> Thread.create work i));
  Printf.printf "%d %d\n" !n !turn
ML
    "${RUN[@]}" ocaml -I +threads unix.cma threads.cma "$WORK/a.ml"
}

stranger guile guile-3.0 guile 'Guile' 'guile --version' 'mutexes and futures in 8 threads'
load_guile() {
    "${RUN[@]}" guile --no-auto-compile -c '(use-modules (ice-9 threads))
        (define m (make-mutex)) (define n 0)
        (define (work i) (let loop ((k 0)) (if (< k 20000) (begin (with-mutex m (set! n (+ n 1))) (loop (+ k 1))))))
        (for-each join-thread (map (lambda (i) (call-with-new-thread (lambda () (work i)))) (iota 8)))
        (display n) (newline) (display (apply + (par-map (lambda (x) (* x x)) (iota 1000)))) (newline)'
}

stranger pypy pypy3 pypy3 'PyPy' 'pypy3 --version' 'Lock, Condition and Queue in 8 threads'
load_pypy() { python_threads pypy3; }

stranger cpython '' /usr/bin/python3 'CPython' '/usr/bin/python3 --version' 'the same'
load_cpython() { python_threads /usr/bin/python3; }

python_threads() {
    "${RUN[@]}" "$1" -c '
import queue, threading
lock, cond, items = threading.Lock(), threading.Condition(), queue.Queue()
n = turn = 0
def work(i):
    global n, turn
    for _ in range(5000):
        with lock: n += 1
        items.put(1)
    with cond:
        while turn != i: cond.wait()
        turn += 1
        cond.notify_all()
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads: t.start()
got = sum(items.get() for _ in range(40000))
for t in threads: t.join()
print(n, got, turn)'
}

stranger mono 'mono-runtime mono-mcs' 'mono mcs' 'Mono' 'mono --version' 'monitors, pool and collector in 8 threads'
load_mono() {
    cat >"$WORK/a.cs" <<'CS'
using System; using System.Threading;
class A {
    static long n; static int left = 200; static object gate = new object();
    static void Main() {
        var all = new Thread[8];
        for (int i = 0; i < 8; i++) { all[i] = new Thread(() => { for (int k = 0; k < 20000; k++) { lock (gate) n++; if (k % 100 == 0) { var b = new byte[10000]; } } }); all[i].Start(); }
        for (int i = 0; i < 200; i++) ThreadPool.QueueUserWorkItem(_ => { lock (gate) { n++; if (--left == 0) Monitor.PulseAll(gate); } });
        foreach (var t in all) t.Join();
        lock (gate) while (left > 0) Monitor.Wait(gate);
        GC.Collect();
        Console.WriteLine(n);
    }
}
CS
    mcs -out:"$WORK/a.exe" "$WORK/a.cs" >>"$WORK/log" && "${RUN[@]}" mono "$WORK/a.exe"
}

stranger sbcl sbcl sbcl 'SBCL' 'sbcl --version' 'mutexes, waits and collections in 8 threads'
load_sbcl() {
    cat >"$WORK/a.lisp" <<'LISP'
(defvar *m* (sb-thread:make-mutex)) (defvar *q* (sb-thread:make-waitqueue)) (defvar *n* 0) (defvar *turn* 0)
(defun work (i)
  (dotimes (k 20000) (sb-thread:with-mutex (*m*) (incf *n*)) (make-list 20))
  (sb-thread:with-mutex (*m*)
    (loop until (= *turn* i) do (sb-thread:condition-wait *q* *m*))
    (incf *turn*) (sb-thread:condition-broadcast *q*)))
(let ((all (loop for i below 8 collect (let ((i i)) (sb-thread:make-thread (lambda () (work i)))))))
  (dotimes (k 5) (gc)) (mapc #'sb-thread:join-thread all))
(format t "~a ~a~%" *n* *turn*)
LISP
    "${RUN[@]}" sbcl --script "$WORK/a.lisp"
}

stranger swipl swi-prolog-nox swipl 'SWI-Prolog' 'swipl --version' 'mutexes and message queues in 8 threads'
load_swipl() {
    cat >"$WORK/a.pl" <<'PL'
:- dynamic n/1.
n(0).
work(Q) :- forall(between(1, 3000, K), (with_mutex(m, (retract(n(N)), N1 is N+1, assertz(n(N1)))), thread_send_message(Q, K))).
main :- message_queue_create(Q), findall(T, (between(1, 8, _), thread_create(work(Q), T)), Ts),
    findall(K, (between(1, 24000, _), thread_get_message(Q, K)), Ks), sum_list(Ks, S),
    forall(member(T, Ts), thread_join(T)), n(N), format("~w ~w~n", [N, S]).
PL
    "${RUN[@]}" swipl -g main -t halt "$WORK/a.pl"
}

stranger tcl tcl-thread tclsh 'Tcl (Thread)' 'dpkg-query -W tcl-thread' 'mutexes and conditions in 8 threads'
load_tcl() {
    cat >"$WORK/a.tcl" <<'TCL'
package require Thread
set m [thread::mutex create]
tsv::set all n 0
for {set i 0} {$i < 8} {incr i} {
    lappend ids [thread::create -joinable "for {set k 0} {\$k < 3000} {incr k} {thread::mutex lock $m; tsv::set all n \[expr {\[tsv::get all n\] + 1}\]; thread::mutex unlock $m}"]
}
foreach id $ids {thread::join $id}
puts [tsv::get all n]
TCL
    "${RUN[@]}" tclsh "$WORK/a.tcl"
}

stranger perl perl perl 'Perl (threads)' 'perl -v' 'shared variables and conditions in 8 threads'
load_perl() {
    "${RUN[@]}" perl -Mthreads -Mthreads::shared -e '
        my ($n, $turn) : shared = (0, 0); $n = 0; $turn = 0;
        my @t = map { my $i = $_; threads->create(sub { for (1..3000) { lock $n; $n++ }
            lock $turn; cond_wait($turn) until $turn == $i; $turn++; cond_broadcast($turn) }) } 0..7;
        $_->join for @t; print "$n $turn\n"'
}
