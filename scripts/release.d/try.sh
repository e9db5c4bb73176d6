# For scripts/release to source, with the Debian package in $try: what its user does, in a system
# that has nothing else.

suite=${SUITE:-bookworm}
root=$(mktemp -d)
chmod 755 "$root"
# shellcheck disable=SC2329 # the trap calls it
clear_root() {
    for place in proc sys dev/pts dev; do
        ! mountpoint --quiet "$root/$place" || umount --recursive --lazy "$root/$place"
    done
    rm -rf --one-file-system "$root"
}
trap clear_root EXIT
trap 'echo "release: this failed: $BASH_COMMAND" >&2' ERR

there() {
    # No home directory: the program must find the installed drop-in, and unpack none.
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C chroot "$root" "$@"
}
# Everything but what dpkg and ldconfig keep about packages.
listed() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./var/lib/dpkg -o -path ./var/log \
        -o -path ./var/cache/ldconfig -o -path ./etc/ld.so.cache -o -path ./tmp \) -prune -o -print | sort)
}

debootstrap --variant=minbase "$suite" "$root" >&2
mountpoint --quiet "$root/proc" || mount -t proc proc "$root/proc"
before=$(listed)
cp "$try" "$root/tmp/overlock.deb"
there dpkg -i /tmp/overlock.deb
[ "$(there overlock --version)" = "overlock $version" ]
there overlock run -- true
# Our library is there, and is the one of the package.
there overlock run -- cat /proc/self/maps | grep ' /usr/lib/overlock/liboverlock_preload.so$' >/dev/null
there overlock check -- sh -c 'exit 0'
there test -s /usr/share/man/man1/overlock.1.gz -a -s /usr/share/man/man3/overlock.3.gz
there test -s /usr/share/bash-completion/completions/overlock -a -s /usr/share/doc/overlock/copyright
# What bash's Tab finds.
there bash -c '
    source /usr/share/bash-completion/completions/overlock
    COMP_WORDS=(overlock prof) COMP_CWORD=1
    $(complete -p overlock | sed "s/.*-F \([^ ]*\) .*/\1/") overlock prof overlock
    [ "${COMPREPLY[*]}" = profile ]'
if [ "$(there dpkg-query --show --showformat '${db:Status-Status}' overlock)" != installed ]; then
    echo 'release: dpkg says that it is not installed' >&2
    exit 1
fi
there dpkg --verify overlock

# A bare system has no compiler: programs are built here, those of the library from the files there.
"${CC:-cc}" -O1 -g crates/overlock-cli/tests/c/unfair.c -pthread -o "$root/tmp/unfair"
there overlock run --stat -- /tmp/unfair 2>&1 | grep greedy >/dev/null
there overlock profile --html /tmp/waits.html -- /tmp/unfair >/dev/null
there grep -q greedy /tmp/waits.html
there overlock run --compare 1 -- /tmp/unfair >/dev/null
there overlock check -- /tmp/unfair >/dev/null
libdir=/usr/lib/$("${CC:-cc}" -print-multiarch)
export PKG_CONFIG_LIBDIR=$root$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
[ "$(pkg-config --modversion overlock)" = "$version" ]
# shellcheck disable=SC2046 # one word a flag
"${CC:-cc}" -O2 crates/overlock-c/examples/workers.c $(pkg-config --cflags --libs overlock) -pthread -o "$root/tmp/workers"
# shellcheck disable=SC2046
"${CC:-cc}" -O2 crates/overlock-c/examples/workers.c $(pkg-config --cflags overlock) \
    -Wl,-Bstatic $(pkg-config --libs overlock) -Wl,-Bdynamic -pthread -o "$root/tmp/alone"
[ "$(there /tmp/workers)" = '100000 jobs done' ]
there dpkg --purge overlock
[ "$(there /tmp/alone)" = '100000 jobs done' ]
! there /tmp/workers 2>/dev/null
diff <(echo "$before") <(listed)
echo "release: $(basename "$try") installs, works and goes in $suite"
