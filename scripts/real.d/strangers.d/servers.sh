# Servers, each with a few thousand requests. For ../strangers and `one` to source.

# serves PORT COMMAND...: begins it in the foreground of a process of its own, and waits for it.
serves() {
    local port=$1 tries=0
    shift
    "${RUN[@]}" "$@" >>"$WORK/log" &
    server=$!
    until (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
        kill -0 $server || return
        [ $((tries += 1)) -lt 300 ] || return
        sleep 0.1
    done
}

# ends SIGNAL: the server, whose exit code is part of the answer.
ends() {
    local code=0
    kill "-$1" "$server"
    wait "$server" || code=$?
    echo "ended: $code"
}

requests() { # PORT PATH
    ab -q -n 2000 -c 16 "http://127.0.0.1:$1$2" 2>>"$WORK/log" | grep -E '^(Complete|Failed) requests|^Document Length'
}

stranger apache 'apache2 apache2-utils' 'apache2 ab' 'Apache (event)' 'apache2 -v' '2,000 requests, 16 at a time, 2 processes of 16 threads'
load_apache() {
    local modules=/usr/lib/apache2/modules
    head -c 20000 /dev/zero >"$WORK/page" && chmod -R a+rX "$WORK"
    cat >"$WORK/conf" <<CONF
ServerRoot $WORK
ServerName localhost
PidFile $WORK/pid
ErrorLog $WORK/error
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
User www-data
Listen 127.0.0.1:18181
DocumentRoot $WORK
StartServers 2
ThreadsPerChild 16
MaxRequestWorkers 32
CONF
    serves 18181 apache2 -D FOREGROUND -f "$WORK/conf"
    requests 18181 /page
    ends TERM
}

stranger haproxy 'haproxy apache2-utils' 'haproxy ab' 'HAProxy' 'haproxy -v' '2,000 requests, 4 threads'
load_haproxy() {
    cat >"$WORK/conf" <<CONF
global
    nbthread 4
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 10s
frontend front
    bind 127.0.0.1:18182
    http-request return status 200 content-type text/plain string "hello"
CONF
    serves 18182 haproxy -db -f "$WORK/conf"
    requests 18182 /
    ends TERM
}

stranger varnish 'varnish apache2-utils' 'varnishd ab gcc' 'Varnish' 'varnishd -V' '2,000 requests from its cache'
load_varnish() {
    mkdir "$WORK/files"
    head -c 20000 /dev/zero >"$WORK/files/page"
    python3 -m http.server --bind 127.0.0.1 --directory "$WORK/files" 18184 >>"$WORK/log" 2>&1 &
    local backend=$!
    serves 18183 varnishd -F -a 127.0.0.1:18183 -b 127.0.0.1:18184 -n "$WORK/varnish" -j none
    requests 18183 /page
    kill $backend
    ends TERM
}

stranger bind 'bind9 bind9-dnsutils' 'named dig' 'BIND' 'named -v' '2,000 queries by 4 clients'
load_bind() {
    local number
    { printf '$TTL 60\n@ SOA ns.test. root.test. 1 60 60 60 60\n@ NS ns.test.\nns A 127.0.0.1\n'
        for number in $(seq 500); do echo "host$number A 10.0.$((number / 250)).$((number % 250))"; done; } >"$WORK/zone"
    cat >"$WORK/conf" <<CONF
options { directory "$WORK"; pid-file none; listen-on port 18185 { 127.0.0.1; }; listen-on-v6 { none; }; recursion no; session-keyfile none; };
controls { };
zone "test" { type primary; file "$WORK/zone"; };
CONF
    serves 18185 named -g -n 4 -c "$WORK/conf" 2>>"$WORK/log"
    queries 18185
    ends TERM
}

queries() { # PORT
    seq -f 'host%g.test' 500 >"$WORK/names"
    # It listens before it has read its zone.
    local client clients=() tries=0
    until dig @127.0.0.1 -p "$1" +short host500.test 2>&1 | grep -q ^10 || [ $((tries += 1)) = 50 ]; do sleep 0.1; done
    for client in 1 2 3 4; do
        dig @127.0.0.1 -p "$1" +short +tries=5 -f "$WORK/names" >"$WORK/answers$client" 2>>"$WORK/log" &
        clients+=($!)
    done
    wait "${clients[@]}"
    # Without its remarks on queries that it has repeated.
    for client in 1 2 3 4; do grep -v '^;' "$WORK/answers$client" | md5sum; done
}

stranger unbound 'unbound bind9-dnsutils' 'unbound dig' 'Unbound' 'unbound -V' '2,000 queries by 4 clients, 4 threads'
load_unbound() {
    local number
    { cat <<CONF
server:
  num-threads: 4
  interface: 127.0.0.1@18186
  do-daemonize: no
  chroot: ""
  username: ""
  directory: "$WORK"
  pidfile: ""
  use-syslog: no
  local-zone: "test." static
CONF
        for number in $(seq 500); do echo "  local-data: \"host$number.test. A 10.1.$((number / 250)).$((number % 250))\""; done
        printf 'remote-control:\n  control-enable: no\n'; } >"$WORK/conf"
    serves 18186 unbound -d -c "$WORK/conf"
    queries 18186
    ends TERM
}

stranger slapd 'slapd ldap-utils' 'slapd ldapadd' 'OpenLDAP' 'slapd -V' '400 entries added by 4 clients, then found'
load_slapd() {
    mkdir "$WORK/db"
    cat >"$WORK/conf" <<CONF
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $WORK/pid
threads 8
database mdb
suffix "dc=test"
rootdn "cn=root,dc=test"
rootpw secret
directory $WORK/db
CONF
    serves 18187 slapd -d 0 -h ldap://127.0.0.1:18187 -f "$WORK/conf"
    local admin=(-x -H ldap://127.0.0.1:18187 -D cn=root,dc=test -w secret) client clients=()
    printf 'dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\no: test\ndc: test\n' | ldapadd "${admin[@]}" >>"$WORK/log"
    for client in 1 2 3 4; do
        seq -f "%g" 100 | sed "s/.*/dn: cn=p$client.&,dc=test\nobjectClass: person\ncn: p$client.&\nsn: &\n/" |
            ldapadd "${admin[@]}" >>"$WORK/log" &
        clients+=($!)
    done
    wait "${clients[@]}"
    ldapsearch "${admin[@]}" -LLL -b dc=test objectClass=person cn 2>>"$WORK/log" | grep '^cn:' | sort | md5sum
    ends TERM
}

stranger rsyslog rsyslog rsyslogd 'rsyslog' 'rsyslogd -v' '8,000 messages on 4 connections'
load_rsyslog() {
    cat >"$WORK/conf" <<CONF
module(load="imptcp" threads="4")
input(type="imptcp" port="18188" address="127.0.0.1")
main_queue(queue.type="LinkedList" queue.workerThreads="4" queue.workerThreadMinimumMessages="10" queue.size="100000")
template(name="plain" type="string" string="%msg%\n")
action(type="omfile" file="$WORK/out" template="plain" queue.type="LinkedList" queue.size="100000")
CONF
    serves 18188 rsyslogd -n -i "$WORK/pid" -f "$WORK/conf"
    local client clients=() tries=0
    for client in 1 2 3 4; do
        seq -f "<13>Jan  1 00:00:00 host tag: $client %g" 2000 >"/dev/tcp/127.0.0.1/18188" &
        clients+=($!)
    done
    wait "${clients[@]}"
    until [ "$(wc -l <"$WORK/out")" -ge 8000 ] || [ $((tries += 1)) = 200 ]; do sleep 0.1; done
    sort "$WORK/out" | md5sum
    ends TERM
}

stranger glusterfs glusterfs-server 'glusterfs /dev/fuse' 'glusterfs' 'glusterfs --version' '400 files written by 8 writers, read again'
load_glusterfs() {
    mkdir "$WORK/brick" "$WORK/mount"
    cat >"$WORK/vol" <<VOL
volume disk
  type storage/posix
  option directory $WORK/brick
end-volume
volume locks
  type features/locks
  subvolumes disk
end-volume
volume threads
  type performance/io-threads
  option thread-count 8
  subvolumes locks
end-volume
volume behind
  type performance/write-behind
  subvolumes threads
end-volume
VOL
    "${RUN[@]}" glusterfs --no-daemon --volfile="$WORK/vol" --log-file="$WORK/log" "$WORK/mount" &
    server=$!
    local tries=0 writer writers=()
    until mountpoint -q "$WORK/mount" || [ $((tries += 1)) = 200 ]; do sleep 0.1; done
    for writer in $(seq 8); do
        (for number in $(seq 50); do seq "$number" $((number + 500)) >"$WORK/mount/$writer.$number"; done) &
        writers+=($!)
    done
    wait "${writers[@]}"
    cat "$WORK"/mount/* | md5sum
    umount "$WORK/mount"
    local code=0
    wait $server || code=$?
    echo "ended: $code"
}

stranger pulseaudio 'pulseaudio pulseaudio-utils' 'pulseaudio pacat' 'PulseAudio' 'pulseaudio --version' '3 streams into a sink that nobody hears'
load_pulseaudio() {
    export HOME=$WORK XDG_RUNTIME_DIR=$WORK PULSE_SERVER=unix:$WORK/socket
    "${RUN[@]}" pulseaudio -n --daemonize=no --exit-idle-time=-1 --use-pid-file=no -L module-null-sink \
        -L "module-native-protocol-unix socket=$WORK/socket auth-anonymous=1" 2>>"$WORK/log" &
    server=$!
    local tries=0 stream streams=()
    until [ -S "$WORK/socket" ] || [ $((tries += 1)) = 200 ]; do sleep 0.1; done
    for stream in 1 2 3; do
        head -c 176400 /dev/zero | "${RUN[@]}" pacat --playback --format=s16le --rate=44100 --channels=2 2>>"$WORK/log" &
        streams+=($!)
    done
    wait "${streams[@]}" && echo played
    pactl list short sinks | cut -f 2,4
    ends TERM
}

stranger jack jackd2 'jackd jack_lsp' 'JACK' 'jackd --version' 'the dummy driver, and 3 clients'
load_jack() {
    export JACK_DEFAULT_SERVER=overlock$$ HOME=$WORK JACK_NO_AUDIO_RESERVATION=1
    "${RUN[@]}" jackd -r -d dummy -r 8000 -p 1024 >>"$WORK/log" &
    server=$!
    local tries=0
    until jack_lsp >/dev/null 2>&1 || [ $((tries += 1)) = 100 ]; do sleep 0.1; done
    for tries in 1 2 3; do "${RUN[@]}" jack_lsp 2>>"$WORK/log"; done
    ends TERM
}
