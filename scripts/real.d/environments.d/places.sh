# Programs that compilers have instrumented or that valgrind runs, and children of a shell that
# `overlock run` runs. For `environments` to source.

# through OPTIONS -- COMMAND...: the command as the child of a shell.
through() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    shift
    timeout 600 "$overlock" run --library "$library" "${options[@]}" -- sh -c '"$@"; exit $?' sh "$@"
}

# as_alone SAID COMMAND...: as a shell's child the command prints what it prints alone, and of ours
# not a word but SAID.
as_alone() {
    local said=$1
    shift
    timeout 600 "$@" >"$work/without" 2>"$work/without.err" || { echo "not possible here: $(tail -n 1 "$work/without.err")" && return 77; }
    through -- "$@" >"$work/with" 2>"$work/with.err" || { echo "ends with $?: $(tail -n 1 "$work/with.err")" && return 1; }
    cmp -s "$work/without" "$work/with" || { echo "'$(head -n 1 "$work/with")' in place of '$(head -n 1 "$work/without")'" && return 1; }
    { [ -z "$said" ] || printf '%s\n' "$said" && cat "$work/without.err"; } | cmp -s - "$work/with.err" ||
        { echo "says '$(head -n 1 "$work/with.err")'" && return 1; }
}

# by_run COMMAND...: so does `overlock run` itself, with every option.
by_run() {
    local option
    for option in --spin=auto --spin-only --stat --lockdep; do
        timeout 600 "$overlock" run --library "$library" "$option" -- "$@" >"$work/with" 2>"$work/with.err" ||
            { echo "$option ends with $?: $(tail -n 1 "$work/with.err")" && return 1; }
        cmp -s "$work/without" "$work/with" || { echo "$option: '$(head -n 1 "$work/with")'" && return 1; }
    done
}

# instrumented COMPILER KIND: $program
instrumented() {
    program=$work/$1-$2
    [ -e "$program" ] || "$1" -O1 -g -pthread "-fsanitize=$2" "$tests/queue.c" -o "$program" 2>"$work/with.err" ||
        { echo "$1 cannot build it: $(tail -n 1 "$work/with.err")" && return 77; }
}

try_sanitizer() {
    local program
    instrumented "$1" "$2" && as_alone '' "$program" && by_run "$program"
}

stays() { echo "overlock: the C library's locks stay: $1 has to see them"; }

try_tsan() {
    local program
    instrumented "$1" thread && as_alone "$(stays ThreadSanitizer)" "$program" || return
    # Races that there are it finds as before.
    "$1" -O1 -g -pthread -fsanitize=thread "$own/race.c" -o "$work/race"
    ! through -- "$work/race" >"$work/with" 2>&1 && grep -q 'data race' "$work/with" ||
        { echo 'a race is not found' && return 1; }
    refused ThreadSanitizer "$program"
}

for compiler in gcc clang; do
    for kind in address leak undefined memory; do
        [ "$compiler $kind" != 'gcc memory' ] || continue
        environment "sanitizer-$compiler-$kind" "$compiler" "$compiler" "built by $compiler with -fsanitize=$kind"
        eval "try_sanitizer-$compiler-$kind() { try_sanitizer $compiler $kind; }"
    done
    environment "sanitizer-$compiler-thread" "$compiler" "$compiler" "built by $compiler with -fsanitize=thread"
    eval "try_sanitizer-$compiler-thread() { try_tsan $compiler; }"
done

try_valgrind() {
    same valgrind -q --error-exitcode=9 "--tool=$1" "$work/crowd" 4 100 && by_run valgrind -q "--tool=$1" "$work/crowd" 4 100
}

try_watching() {
    as_alone "$(stays "$1")" valgrind -q --error-exitcode=9 "--tool=$1" "$work/crowd" 4 100 || return
    c "$own/race.c" race-plain
    ! through -- valgrind -q --error-exitcode=9 "--tool=$1" "$work/race-plain" >"$work/with" 2>&1 ||
        { echo 'a race is not found' && return 1; }
    refused "$1" valgrind "--tool=$1" "$work/crowd"
}

environment valgrind-memcheck valgrind valgrind 'valgrind'
try_valgrind-memcheck() { try_valgrind memcheck; }
environment valgrind-none valgrind valgrind 'valgrind without a tool'
try_valgrind-none() { try_valgrind none; }
environment valgrind-helgrind valgrind valgrind 'helgrind'
try_valgrind-helgrind() { try_watching helgrind; }
environment valgrind-drd valgrind valgrind 'drd'
try_valgrind-drd() { try_watching drd; }

environment child-musl musl-tools musl-gcc "a shell's child: of musl"
try_child-musl() {
    musl-gcc -O1 -pthread "$tests/queue.c" -o "$work/child-musl"
    as_alone '' "$work/child-musl"
}

environment child-static '' '' "a shell's child: static"
try_child-static() {
    c "$tests/queue.c" child-static -static
    as_alone '' "$work/child-static"
}

environment child-i386 'gcc-multilib libc6-dev-i386' /usr/include/x86_64-linux-gnu/gnu/stubs-32.h "a shell's child: of 32 bits"
try_child-i386() {
    c "$tests/queue.c" child-i386 -m32
    as_alone '' "$work/child-i386"
}

environment child-setuid '' '' "a shell's child: setuid"
try_child-setuid() {
    c "$tests/queue.c" child-setuid
    chown 65534 "$work/child-setuid" && chmod 4755 "$work/child-setuid" || return 77
    as_alone '' "$work/child-setuid"
}

environment child-unreadable '' setpriv "a shell's child: not readable, by another user"
try_child-unreadable() {
    [ "$(id -u)" = 0 ] || { echo 'only root can make one' && return 77; }
    c "$tests/queue.c" child-unreadable
    chmod 711 "$work/child-unreadable"
    as_alone '' setpriv --reuid=65534 --regid=65534 --clear-groups "$work/child-unreadable"
}

environment child-env '' '' "a shell's child: with another environment"
try_child-env() {
    as_alone '' env -i "$work/crowd" && as_alone '' env LD_PRELOAD= "$work/crowd" &&
        as_alone '' env LD_BIND_NOW=1 "$work/crowd" && as_alone '' env LD_LIBRARY_PATH="$work" "$work/crowd"
}

environment child-script '' '' "a shell's child: a script of a static shell"
try_child-script() {
    c "$own/interpreter.c" interpreter -static
    printf '#!%s\n' "$work/interpreter" >"$work/script"
    chmod +x "$work/script"
    as_alone '' "$work/script" && refused static "$work/script"
}

environment child-python python3 python3 "a shell's child: Python, and its children"
try_child-python() {
    as_alone '' python3 -c 'import subprocess, threading
t = [threading.Thread(target=subprocess.run, args=(["true"],)) for _ in range(8)]
[a.start() for a in t], [a.join() for a in t]
print(subprocess.run(["sh", "-c", "echo $0", "x"], capture_output=True))'
}
