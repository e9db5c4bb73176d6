# Tools that divide one piece of work among threads. For ../strangers and `one` to source. Most make
# the same to the byte each time.

# picture SECONDS: a moving picture, made once.
picture() {
    local to=$PREPARED/picture.y4m
    [ -e "$to" ] || ffmpeg -v error -f lavfi -i "testsrc=size=320x240:rate=25:duration=2" -pix_fmt yuv420p "$to" </dev/null
    echo "$to"
}

# words: text of 8 MB, made once.
words() {
    local to=$PREPARED/words
    [ -e "$to" ] || { seq 1200000 >"$to.new" && mv "$to.new" "$to"; }
    echo "$to"
}

stranger openmpi 'openmpi-bin libopenmpi-dev' 'mpirun mpicc' 'Open MPI' 'mpirun --version' '4 processes of 4 threads (MPI_THREAD_MULTIPLE)'
load_openmpi() {
    cat >"$WORK/a.c" <<'C'
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
static int rank, size;
static void *talk(void *with)
{
    int tag = (int)(long)with;
    long sum = 0;
    for (long i = 0; i < 300; i++) {
        long to = i * (rank + 1), from;
        MPI_Sendrecv(&to, 1, MPI_LONG, (rank + 1) % size, tag, &from, 1, MPI_LONG, (rank + size - 1) % size, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += from;
    }
    return (void *)sum;
}
int main(int count, char **words)
{
    int level;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t threads[4];
    long sum = 0, all;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, talk, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (long)part;
    }
    MPI_Reduce(&sum, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld, level %d of %d\n", all, level, MPI_THREAD_MULTIPLE);
    MPI_Finalize();
}
C
    mpicc "$WORK/a.c" -o "$WORK/a" -pthread
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none \
        "${RUN[@]}" mpirun --oversubscribe -np 4 "$WORK/a"
}

stranger x265 'x265 ffmpeg' 'x265 ffmpeg' 'x265' 'x265 --version' '50 pictures, 4 threads; they decode'
load_x265() {
    # Two of a hundred runs with the C library's locks differ too, by a few bytes: no checksum.
    "${RUN[@]}" x265 --log-level error --pools 4 --frame-threads 3 --preset ultrafast "$(picture)" -o "$WORK/out.hevc" >>"$WORK/log" &&
        ffmpeg -v error -nostdin -i "$WORK/out.hevc" -f framecrc - | grep -vc '^#'
}

stranger x264 'x264 ffmpeg' 'x264 ffmpeg' 'x264' 'x264 --version' '50 pictures, 8 threads'
load_x264() { "${RUN[@]}" x264 --quiet --threads 8 --preset veryfast "$(picture)" -o "$WORK/out.264" >>"$WORK/log" && md5sum <"$WORK/out.264"; }

stranger svt-av1 'svt-av1 ffmpeg' 'SvtAv1EncApp ffmpeg' 'SVT-AV1' 'SvtAv1EncApp --version' '10 pictures'
load_svt-av1() { "${RUN[@]}" SvtAv1EncApp -i "$(picture)" -n 10 --preset 12 -b "$WORK/out.ivf" >>"$WORK/log" && md5sum <"$WORK/out.ivf"; }

stranger ffmpeg ffmpeg ffmpeg 'FFmpeg' 'ffmpeg -version' 'decoding, filters and encoding, 8 threads'
load_ffmpeg() {
    "${RUN[@]}" ffmpeg -v error -nostdin -threads 8 -i "$(picture)" -vf 'scale=480:360,unsharp' -filter_threads 4 -c:v mpeg4 -threads 8 -f avi \
        -fflags +bitexact -flags:v +bitexact "$WORK/out.avi" && md5sum <"$WORK/out.avi"
}

stranger gstreamer 'gstreamer1.0-tools gstreamer1.0-plugins-base' gst-launch-1.0 'GStreamer' 'gst-launch-1.0 --version | grep ^GStreamer' '300 pictures through 3 queues'
load_gstreamer() {
    "${RUN[@]}" gst-launch-1.0 -q videotestsrc num-buffers=300 ! queue ! videoconvert ! video/x-raw,format=RGB,width=160,height=120 ! queue ! \
        videoconvert ! video/x-raw,format=I420 ! queue ! filesink location="$WORK/out" && md5sum <"$WORK/out"
}

stranger vips libvips-tools vips 'libvips' 'vips --version' 'a blur of 1,500 by 1,500 points'
load_vips() {
    vips gaussnoise "$WORK/in.v" 1500 1500 --seed 3 && "${RUN[@]}" vips --vips-concurrency=8 gaussblur "$WORK/in.v" "$WORK/out.v" 8 &&
        "${RUN[@]}" vips --vips-concurrency=8 avg "$WORK/out.v"
}

stranger imagemagick imagemagick convert-im6.q16 'ImageMagick (OpenMP)' 'convert-im6.q16 --version' 'a blur of a picture'
load_imagemagick() { OMP_NUM_THREADS=8 "${RUN[@]}" convert-im6.q16 -size 800x800 plasma:fractal -seed 7 -blur 0x6 -resize 50% -format '%w %h' info:; }

stranger povray povray povray 'POV-Ray' 'dpkg-query -W povray' 'a scene, 8 threads'
load_povray() {
    cat >"$WORK/a.pov" <<'POV'
camera { location <0, 2, -6> look_at <0, 1, 0> }
light_source { <5, 8, -6> rgb 1 }
plane { y, 0 pigment { checker rgb 0.2 rgb 0.9 } finish { reflection 0.3 } }
#for (I, 0, 20)
sphere { <sin(I) * 2, 0.4 + I / 10, cos(I)>, 0.4 pigment { rgb <I / 20, 0.5, 1 - I / 20> } finish { phong 1 reflection 0.4 } }
#end
POV
    "${RUN[@]}" povray +WT8 +W320 +H240 -D +A0.3 "+O$WORK/out.png" "$WORK/a.pov" 2>>"$WORK/log" && convert-im6.q16 "$WORK/out.png" rgb:- | md5sum
}

stranger pbzip2 pbzip2 pbzip2 'pbzip2' 'pbzip2 --version' '8 MB packed and unpacked, 8 threads'
load_pbzip2() { "${RUN[@]}" pbzip2 -kc -p8 -b1 "$(words)" >"$WORK/out" && md5sum <"$WORK/out" && "${RUN[@]}" pbzip2 -dc -p8 "$WORK/out" | md5sum; }

stranger zstd zstd zstd 'zstd' 'zstd --version' '8 MB, 8 threads'
load_zstd() { "${RUN[@]}" zstd -q -T8 -B300000 -c "$(words)" >"$WORK/out" && md5sum <"$WORK/out" && zstd -dqc "$WORK/out" | md5sum; }

stranger xz xz-utils xz 'XZ Utils' 'xz --version' '8 MB, 8 threads'
load_xz() { "${RUN[@]}" xz -T8 -1 --block-size=500000 -c "$(words)" >"$WORK/out" && md5sum <"$WORK/out" && "${RUN[@]}" xz -T8 -dc "$WORK/out" | md5sum; }

stranger lld 'lld clang' 'ld.lld clang' 'LLD (ThinLTO)' 'ld.lld --version' 'a program of 40 files, 4 jobs'
load_lld() {
    local number
    for number in $(seq 40); do echo "int f$number(int a) { for (int i = 0; i < a; i++) a ^= i * $number; return a; }"; done >"$WORK/all"
    split -l 1 --additional-suffix=.c "$WORK/all" "$WORK/f"
    echo 'int f7(int); int main(void) { return f7(9) & 1; }' >"$WORK/main.c"
    (cd "$WORK" && clang -O1 -flto=thin -c f*.c main.c && "${RUN[@]}" clang -flto=thin -fuse-ld=lld -Wl,--threads=4 -Wl,--thinlto-jobs=4 ./*.o -o out) &&
        md5sum <"$WORK/out"
}

stranger mold mold mold 'mold (TBB)' 'mold --version' 'a static program'
load_mold() {
    echo 'int main(void) { return 0; }' >"$WORK/a.c"
    gcc -c "$WORK/a.c" -o "$WORK/a.o"
    (cd "$WORK" && "${RUN[@]}" gcc -B/usr/libexec/mold -static a.o -o out) && md5sum <"$WORK/out"
}
