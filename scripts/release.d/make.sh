# For scripts/release to source: `make_release BUILD FILES`, with $version and $commit.

# make_release BUILD FILES: builds the commit below BUILD, and leaves its files in FILES.
make_release() {
    local build=$1 files=$2 triple name
    sources=$build/sources
    rm -rf "$sources" "$build/stage" "$files"
    mkdir -p "$sources" "$build/stage" "$files"
    git archive "$commit" | tar --extract --directory "$sources"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
    export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
    umask 022
    cd "$sources"
    name_no_directories "$build"
    triple=$(rustc --version --verbose | sed -n 's/^host: //p')
    name=overlock-$version-$triple
    papers=$build/papers
    rm -rf "$papers"
    write_papers "$papers" "$triple"
    make_tarball "$build/stage/tar" "$name" "$files"
    if command -v dpkg-deb >/dev/null; then
        make_deb "$build/stage/deb" "$files"
    else
        echo 'release: no Debian package: dpkg-deb is missing' >&2
    fi
    (cd "$files" && sha256sum -- * >SHA256SUMS)
    mv "$papers/NOTES.md" "$files"
}

# What is built has no name of a directory of this machine.
name_no_directories() {
    local build=$1 separator=$'\x1f' rust
    export CARGO_TARGET_DIR=$build/target CARGO_INCREMENTAL=0
    # The sources of Rust's library, where they are installed: without them that is its name, too.
    rust=/rustc/$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
    local flags=(
        "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
        "--remap-path-prefix=$(rustc --print sysroot)/lib/rustlib/src/rust=$rust"
        "--remap-path-prefix=$CARGO_TARGET_DIR=/target"
        "--remap-path-prefix=$sources=/overlock"
    )
    unset RUSTFLAGS
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$separator && echo "${flags[*]}")
    export CARGO_ENCODED_RUSTFLAGS
}

# write_papers DIR TRIPLE: licences, lists of parts, the page, the changelog, the notes.
write_papers() {
    local dir=$1 triple=$2 package
    mkdir -p "$dir/sbom"
    section >"$dir/NOTES.md"
    cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$dir"
    for package in overlock-cli overlock-preload overlock-c; do
        # It writes beside each manifest, and names the directory.
        cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$triple" \
            --override-filename sbom --manifest-path "crates/$package/Cargo.toml"
        sed 's|file://[^"]*/sources\(["/#]\)|file:///overlock\1|g' "crates/$package/sbom.json" >"$dir/sbom/$package.cdx.json"
    done
    write_licences "$triple" >"$dir/LICENSES-OF-PARTS.txt"
}

# Prints the licences of all crates that are linked in, a text that several have once.
write_licences() {
    local triple=$1 package name number licence file sum
    local -A seen=()
    printf 'overlock is linked with the crates below, and with the standard library of Rust, which is\n'
    printf 'MIT OR Apache-2.0: https://www.rust-lang.org/policies/licenses\n'
    cargo tree --locked --edges normal --no-dedupe --prefix none --target "$triple" --format '{p}|{l}' \
        --package overlock-cli --package overlock-preload --package overlock-c \
        | sed 's/ (proc-macro)//' | grep -v '(' | sort -u >"$build/parts"
    [ -s "$build/parts" ]
    while IFS='|' read -r package licence; do
        name=${package% v*} number=${package##* v}
        printf '\n==== %s %s: %s\n' "$name" "$number" "$licence"
        for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$name-$number"/*; do
            case ${file##*/} in
            LICEN[CS]E* | COPYING* | COPYRIGHT* | NOTICE* | UNLICENSE*) [ -f "$file" ] || continue ;;
            *) continue ;;
            esac
            sum=$(sha256sum <"$file")
            if [ -n "${seen[$sum]-}" ]; then
                printf '\n%s: as that of %s\n' "${file##*/}" "${seen[$sum]}"
            else
                seen[$sum]="$name $number"
                printf '\n%s:\n\n' "${file##*/}"
                cat "$file"
            fi
        done
    done <"$build/parts"
}

# make_tarball STAGE NAME FILES
make_tarball() {
    local stage=$1 name=$2 files=$3 description
    scripts/install --destdir "$stage" --prefix "/$name"
    description=$stage/$name/lib/pkgconfig/overlock.pc
    # It may be unpacked anywhere.
    # shellcheck disable=SC2016 # pkg-config's variables
    sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|^libdir=.*|libdir=${prefix}/lib|' "$description"
    put_papers "$stage/$name/share/doc/overlock"
    tar --create --directory "$stage" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu \
        --mtime="@$SOURCE_DATE_EPOCH" "$name" | xz --threads=1 >"$files/$name.tar.xz"
}

put_papers() {
    mkdir -p "$1"
    cp -r "$papers"/{LICENSE-APACHE,LICENSE-MIT,LICENSES-OF-PARTS.txt,README.md,CHANGELOG.md,sbom} "$1"
}

maintainer='The overlock developers <overlock@users.noreply.github.com>'

# make_deb STAGE FILES
make_deb() {
    local stage=$1 files=$2 architecture libdir documents
    architecture=$(dpkg --print-architecture)
    libdir=/usr/lib/$("${CC:-cc}" -print-multiarch)
    scripts/install --destdir "$stage" --prefix /usr --libdir "$libdir"
    find "$stage/usr/share/man" -type f -exec gzip -9n {} +
    # Debian's place, where its programs find them.
    mkdir -p "$stage/usr/share/zsh/vendor-completions"
    mv "$stage/usr/share/zsh/site-functions/_overlock" "$stage/usr/share/zsh/vendor-completions"
    rmdir "$stage/usr/share/zsh/site-functions"
    documents=$stage/usr/share/doc/overlock
    put_papers "$documents"
    gzip -9n <"$documents/CHANGELOG.md" >"$documents/changelog.gz"
    # Of the package, in a form that Debian's programs read.
    {
        printf 'overlock (%s-1) unstable; urgency=medium\n\n  * Version %s: see changelog.gz.\n' "$version" "$version"
        printf '\n -- %s  %s\n' "$maintainer" "$(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$documents/changelog.Debian.gz"
    rm "$documents/CHANGELOG.md" "$documents"/LICENSE-*
    gzip -9n "$documents/LICENSES-OF-PARTS.txt"
    {
        echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
        echo 'Upstream-Name: overlock'
        echo 'Source: https://github.com/overlock/overlock'
        printf '\nFiles: *\nCopyright: The overlock developers\nLicense: Expat or Apache-2.0\n'
        printf 'Comment: LICENSES-OF-PARTS.txt.gz has the licences of the crates that are linked in.\n'
        printf '\nLicense: Expat\n'
        # A line without text is a dot there.
        sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT
        printf '\nLicense: Apache-2.0\n See /usr/share/common-licenses/Apache-2.0.\n'
    } >"$documents/copyright"
    write_overrides "$stage/usr/share/lintian/overrides"
    write_control "$stage" "$architecture" "$libdir"
    find "$stage" -type d -exec chmod 755 {} +
    find "$stage/usr/lib" -type f -name '*.so*' -exec chmod 644 {} +
    DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$stage" \
        "$files/overlock_$version-1_$architecture.deb" >&2
}

# write_overrides DIR: what lintian finds, and why it is so.
write_overrides() {
    mkdir -p "$1"
    cat >"$1/overlock" <<'EOF'
# Names stay, without lines and variables: backtraces, perf and our profiles show them.
overlock: unstripped-binary-or-object *
# One package has the program, its drop-in, and the library with its headers.
overlock: link-to-shared-library-in-wrong-package *
overlock: package-name-doesnt-match-sonames *
# It is not in Debian's archive.
overlock: initial-upload-closes-no-bugs *
EOF
}

# write_control STAGE ARCHITECTURE LIBDIR: what dpkg reads.
write_control() {
    local stage=$1 architecture=$2 libdir=$3 size glibc
    local binaries=("$stage/usr/bin/overlock" "$stage$libdir/liboverlock.so.$version" "$stage/usr/lib/overlock/liboverlock_preload.so")
    size=$(find "$stage" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }')
    # The loader does without a version that is WEAK.
    glibc=$(readelf --version-info --wide "${binaries[@]}" \
        | sed -n 's/.*Name: GLIBC_\([0-9.]*\)  *Flags: none.*/\1/p' | sort --version-sort | tail -1)
    mkdir -p "$stage/DEBIAN"
    (cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$stage/DEBIAN/md5sums"
    cat >"$stage/DEBIAN/control" <<EOF
Package: overlock
Version: $version-1
Architecture: $architecture
Maintainer: $maintainer
Section: devel
Priority: optional
Homepage: https://github.com/overlock/overlock
Installed-Size: $size
Depends: libc6 (>= $glibc), libgcc-s1
Description: locks that stay fast when there are more threads than CPUs
 The program puts these locks behind pthread's functions in a program as it
 is, shows which locks its threads wait for and why, and finds orders of locks
 that can deadlock. The library is for C and C++.
EOF
    printf 'liboverlock %s overlock (>= %s)\n' "${version%%.*}" "$version" >"$stage/DEBIAN/shlibs"
    printf 'activate-noawait ldconfig\n' >"$stage/DEBIAN/triggers"
    # `overlock run` of root leaves names of the drop-in there, for children.
    cat >"$stage/DEBIAN/postrm" <<'EOF'
#!/bin/sh
set -e
case $1 in
remove | purge) rm -rf /run/overlock ;;
esac
EOF
    chmod 755 "$stage/DEBIAN/postrm"
}
