# For scripts/real.d/environments to source: other C libraries and other kernels, made of Debian's
# packages. A C library is a folder that a program is locked into; a kernel runs under QEMU's
# emulator, with such a folder as its initial file system. `run-inside` runs in either.
#
# Downloads stay below target/systems. With --no-install there are none. The programs are tests of
# the drop-in whose answers do not depend on how slow the machine is. An emulated machine has no
# time for the thorough ones.

systems=${CARGO_TARGET_DIR:-$root/target}/systems
inside=(crowd mutex cond rwlock owner others cancel fork stack handlers)
thorough=(c11 freed stress)

# apt_of SUITE ARCHITECTURE COMMAND ARGUMENT...: an apt of its own, which knows one suite.
apt_of() {
    local at=$systems/apt-$1-$2 command=$3 suite=$1 machine=$2
    shift 3
    if [ ! -e "$at/updated" ]; then
        $install || { echo 'not downloaded' && return 77; }
        mkdir -p "$at"/etc/apt/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d} \
            "$at"/var/lib/{dpkg,apt/lists/partial} "$at/var/cache/apt/archives/partial"
        : >"$at/var/lib/dpkg/status"
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
            >"$at/etc/apt/sources.list"
    fi
    local options=(-o "Dir=$at" -o "Dir::State::status=$at/var/lib/dpkg/status" -o "APT::Architecture=$machine"
        -o "APT::Architectures=$machine" -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none
        -o APT::Sandbox::User=root)
    if [ ! -e "$at/updated" ]; then
        apt-get "${options[@]}" -qq update >"$at/log" 2>&1 || { echo "no list of $suite's packages: $(tail -n 1 "$at/log")" && return 77; }
        : >"$at/updated"
    fi
    "$command" "${options[@]}" "$@"
}

# unpack SUITE ARCHITECTURE FOLDER PACKAGE...: into the folder, where /lib is /usr/lib.
unpack() {
    local suite=$1 machine=$2 to=$3 package name
    shift 3
    mkdir -p "$to"/usr/{lib,lib64,bin,sbin} "$to"/{proc,sys,dev,tmp,run,tests}
    for name in lib lib64 bin sbin; do
        [ -e "$to/$name" ] || ln -s "usr/$name" "$to/$name"
    done
    mkdir -p "$to/debs"
    for package in "$@"; do
        compgen -G "$to/debs/${package}_*.deb" >/dev/null ||
            (cd "$to/debs" && apt_of "$suite" "$machine" apt-get -qq download "$package" >"$to/debs/log" 2>&1) ||
            { echo "no package $package of $suite: $(tail -n 1 "$to/debs/log")" && return 77; }
        dpkg-deb --fsys-tarfile "$to/debs/$package"_*.deb | tar -x --keep-directory-symlink --no-same-owner -C "$to"
    done
    # Links from the root, which a linker outside does not follow.
    find "$to" -type l -lname '/*' | while read -r link; do
        ln -sfrn "$to$(readlink "$link")" "$link"
    done
}

# system_of SUITE ARCHITECTURE: prints the folder of a system with the suite's C library.
system_of() {
    local at=$systems/$1-$2 said
    if [ ! -e "$at/whole" ]; then
        $install || { echo 'not downloaded' && return 77; }
        said=$(unpack "$1" "$2" "$at" libc6 libc6-dev linux-libc-dev libgcc-s1 busybox-static) || { echo "$said" && return 77; }
        : >"$at/whole"
    fi
    echo "$at"
}

# fill FOLDER COMPILER LIBRARY [PROGRAM]: the programs, the drop-in and what runs them.
fill() {
    local at=$1 cc=$2 program source libraries
    libraries=$(dirname "$at"/usr/lib/*/crt1.o)
    rm -rf "$at/tests" && mkdir "$at/tests"
    local all=("${inside[@]}" "${thorough[@]}")
    [ -z "${emulated-}" ] || all=("${inside[@]}")
    for program in "${all[@]}"; do
        source=$tests/$program.c
        [ -e "$source" ] || source=$own/$program.c
        "$cc" --sysroot="$at" -B"$libraries/" -L"$libraries" -O1 -pthread "$source" -o "$at/tests/$program" -ldl 2>"$work/cc" ||
            { echo "$program does not compile: $(tail -n 1 "$work/cc")" && return 1; }
    done
    cp "$own/run-inside" "$at/run-inside"
    cp "$3" "$at/tests/liboverlock_preload.so"
    [ -z "${4-}" ] || cp "$4" "$at/tests/overlock"
    # A slow machine tries less.
    printf '%s\n' OVERLOCK_SPIN=auto OVERLOCK_STAT=1 OVERLOCK_LOCKDEP=1 >"$at/settings"
    [ -n "${emulated-}" ] || printf '%s\n' OVERLOCK_SPIN=off 'OVERLOCK_MUTEX=glibc OVERLOCK_RWLOCK=glibc' >>"$at/settings"
}

# alone_in FOLDER: no other run fills it before this shell ends.
alone_in() {
    exec 9>"$1.lock"
    flock 9
}

# verdict FILE: of a run of `run-inside`, whose lines begin with `inside:`.
verdict() {
    tr -d '\r' <"$1" | sed -n 's/^inside: //p' >"$work/verdict"
    local end
    end=$(sed -n 's/^end //p' "$work/verdict")
    case $end in
    '') echo "ends early, after: $(tail -n 1 "$1" | tr -cd '[:print:]')" && return 1 ;;
    skipped*) echo "${end#skipped }" && return 77 ;;
    passes*) echo "${end#passes }" ;;
    *) echo "$(grep -v ^end "$work/verdict" | paste -sd ';') ($end)" && return 1 ;;
    esac
}

# libc_of SUITE: in a folder of its own, on this kernel.
libc_of() {
    local at said
    at=$(system_of "$1" amd64) || { echo "$at" && return 77; }
    alone_in "$at"
    said=$(fill "$at" cc "$library" "$overlock") || { echo "$said" && return 1; }
    local user=(--map-root-user)
    [ "$(id -u)" != 0 ] || user=()
    # shellcheck disable=SC2016 # of the inner shell
    timeout 3000 unshare "${user[@]}" --mount --pid --fork sh -ec '
        mount -t proc proc "$0/proc"
        mount -t tmpfs tmpfs "$0/dev"
        for node in null zero urandom full; do : >"$0/dev/$node"; mount --bind "/dev/$node" "$0/dev/$node"; done
        mkdir "$0/dev/shm"
        exec chroot "$0" /bin/busybox sh /run-inside
    ' "$at" >"$work/inside" 2>&1 || true
    verdict "$work/inside"
}

# kernel_of SUITE ARCHITECTURE FLAVOUR: prints where its newest kernel is.
kernel_of() {
    local at=$systems/kernel-$1-$2-$3 name said
    if [ ! -e "$at/whole" ]; then
        $install || { echo 'not downloaded' && return 77; }
        name=$(apt_of "$1" "$2" apt-cache search --names-only "^linux-image-[0-9][0-9.-]*(\\+deb[0-9]+)?-$3\$") || { echo "$name" && return 77; }
        name=$(cut -d ' ' -f 1 <<<"$name" | sort -V | tail -n 1)
        # Where the image is in a package of its own, this one depends on it.
        said=$(unpack "$1" "$2" "$at" "$name") || { echo "$said" && return 77; }
        if ! find "$at" -name 'vmlinuz*' -type f | grep -q .; then
            name=$(dpkg-deb -f "$at/debs/$name"_*.deb Depends | grep -o 'linux-binary-[0-9][^ ,]*' | head -n 1)
            said=$(unpack "$1" "$2" "$at" "$name") || { echo "$said" && return 77; }
        fi
        find "$at" -name 'vmlinuz*' -type f -exec cp {} "$at/kernel" \;
        rm -rf "$at/usr" "$at/debs"
        [ -e "$at/kernel" ] || { echo "no kernel in $name" && return 77; }
        : >"$at/whole"
    fi
    echo "$at/kernel"
}

# emulate SUITE FLAVOUR: the suite's kernel and its C library.
emulate() {
    local suite=$1 flavour=$2 machine=amd64 cc=cc at kernel said
    local qemu=(qemu-system-x86_64 -accel tcg,thread=multi -cpu max) console=ttyS0
    local lib=$library program=$overlock
    if [ "${3-}" = arm64 ]; then
        machine=arm64 cc=aarch64-linux-gnu-gcc console=ttyAMA0 program=''
        qemu=(qemu-system-aarch64 -machine virt -accel tcg,thread=multi -cpu cortex-a72)
        lib=$4
    fi
    at=$(system_of "$suite" $machine) || { echo "$at" && return 77; }
    kernel=$(kernel_of "$suite" $machine "$flavour") || { echo "$kernel" && return 77; }
    alone_in "$at"
    said=$(emulated=yes fill "$at" "$cc" "$lib" "$program") || { echo "$said" && return 1; }
    (cd "$at" && ln -sf /run-inside init && chmod 755 run-inside &&
        find . -path ./debs -prune -o -path ./usr/include -prune -o -path ./usr/share -prune -o -name '*.a' -o -print |
        cpio --quiet -o -H newc) >"$work/initrd"
    timeout 3600 "${qemu[@]}" -smp 2 -m 1024 -nodefaults -display none -no-reboot -serial stdio -kernel "$kernel" \
        -initrd "$work/initrd" -append "console=$console quiet panic=-1 rdinit=/init" </dev/null >"$work/inside" 2>&1 || true
    rm "$work/initrd"
    verdict "$work/inside"
}

environment glibc-2.31 '' 'unshare dpkg-deb apt-get' 'glibc 2.31 (Debian 11)'
try_glibc-2.31() { libc_of bullseye; }

environment glibc-2.41 '' 'unshare dpkg-deb apt-get' 'glibc 2.41 (Debian 13)'
try_glibc-2.41() { libc_of trixie; }

environment glibc-sid '' 'unshare dpkg-deb apt-get' 'the newest glibc (Debian sid)'
try_glibc-sid() { libc_of sid; }

tools='qemu-system-x86_64 cpio dpkg-deb apt-get'

environment linux-5.10 'qemu-system-x86 cpio' "$tools" 'Linux 5.10 (no futex_waitv), glibc 2.31'
try_linux-5.10() { emulate bullseye cloud-amd64; }

environment linux-6.1 'qemu-system-x86 cpio' "$tools" 'Linux 6.1, glibc 2.36'
try_linux-6.1() { emulate bookworm cloud-amd64; }

environment linux-6.12 'qemu-system-x86 cpio' "$tools" 'Linux 6.12, glibc 2.41'
try_linux-6.12() { emulate trixie cloud-amd64; }

environment linux-sid 'qemu-system-x86 cpio' "$tools" 'the newest Linux and glibc (Debian sid)'
try_linux-sid() { emulate sid cloud-amd64; }

environment linux-rt 'qemu-system-x86 cpio' "$tools" 'Linux with PREEMPT_RT (Debian 13)'
try_linux-rt() { emulate trixie rt-amd64; }

environment arm64 'qemu-system-arm cpio gcc-aarch64-linux-gnu' \
    'qemu-system-aarch64 aarch64-linux-gnu-gcc rustup cpio dpkg-deb apt-get' 'AArch64 (Linux 6.1, glibc 2.36)'
try_arm64() {
    local triple=aarch64-unknown-linux-gnu at libraries
    at=$(system_of bookworm arm64) || { echo "$at" && return 77; }
    libraries=$(dirname "$at"/usr/lib/*/crt1.o)
    if ! rustup target list --installed | grep -qx $triple; then
        $install && rustup target add $triple >"$work/rustup" 2>&1 || { echo "no $triple for rustc" && return 77; }
    fi
    (cd "$root" && CARGO_TARGET_DIR=$systems/cargo CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        cargo build --quiet --release -p overlock-preload --target $triple --config "target.$triple.rustflags=['-Clink-arg=--sysroot=$at', '-Clink-arg=-B$libraries/', '-Clink-arg=-L$libraries']") >"$work/cargo" 2>&1 || { echo "does not build: $(grep -m 1 error "$work/cargo")" && return 1; }
    emulate bookworm cloud-arm64 arm64 "$systems/cargo/$triple/release/liboverlock_preload.so"
}
