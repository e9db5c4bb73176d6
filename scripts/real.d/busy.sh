# Programs that keep all CPUs busy, or nearly: spins have nothing to win there, and must not cost
# anything. The drop-in must leave their speed as it is, and their results.

# The same command, until the time is over.
again() { # unit command...
    local count=0 start=${EPOCHREALTIME/./} took=0
    while [ "$took" -lt $((SECONDS_EACH * 1000000)) ]; do
        locked "${@:2}"
        count=$((count + 1))
        took=$((${EPOCHREALTIME/./} - start))
    done
    rate "$(awk "BEGIN { printf \"%.4f\", $count * 1e6 / $took }")" "$1"
}

# Something to compress.
prepare_busy() { # megabytes
    # The rest of the archive is not wanted.
    { tar --create --sort=name --dereference /usr/bin 2>/dev/null || true; } | head --bytes "$1M" >"$PREPARED/data"
}

for name in pigz xz zstd; do
    case $name in
    xz) package=xz-utils ;;
    *) package=$name ;;
    esac
    program "busy-$name" $package $name alone
done

prepare_busy_pigz() {
    prepare_busy 16
}

measure_busy_pigz() {
    again runs/s pigz --processes 4 --keep --force "$PREPARED/data"
    unpigz --stdout "$PREPARED/data.gz" | cmp - "$PREPARED/data"
}

prepare_busy_xz() {
    prepare_busy 4
}

measure_busy_xz() {
    again runs/s xz --threads=4 --block-size=1MiB -1 --keep --force "$PREPARED/data"
    xz --decompress --stdout "$PREPARED/data.xz" | cmp - "$PREPARED/data"
}

prepare_busy_zstd() {
    prepare_busy 64
}

measure_busy_zstd() {
    again runs/s zstd --quiet --threads=4 -3 --force "$PREPARED/data"
    zstd --quiet --decompress --stdout "$PREPARED/data.zst" | cmp - "$PREPARED/data"
}

program busy-x264 x264 x264 alone

# The archive as a film.
prepare_busy_x264() {
    prepare_busy 4
}

measure_busy_x264() {
    again runs/s x264 --quiet --no-progress --threads 4 --preset veryfast --demuxer raw --input-res 320x180 --fps 25 \
        --output "$WORK/film.264" "$PREPARED/data"
    # As many threads as these make the same film each time.
    answer "$(sha256sum <"$WORK/film.264")"
}

program busy-openmp 'gcc libc6-dev' gcc alone

prepare_busy_openmp() {
    [ -e "$BIN/busy-openmp" ] || gcc -O2 -fopenmp -o "$BIN/busy-openmp" "$here/environments.d/openmp.c"
}

measure_busy_openmp() {
    again runs/s "$BIN/busy-openmp"
}

program busy-cargo cargo cargo alone

prepare_busy_cargo() {
    cargo fetch --locked --manifest-path "$here/handoffs/rust/Cargo.toml"
}

measure_busy_cargo() {
    again builds/s cargo build --quiet --offline --locked --manifest-path "$here/handoffs/rust/Cargo.toml" --target-dir "$WORK/target" \
        --config build.incremental=false
}
