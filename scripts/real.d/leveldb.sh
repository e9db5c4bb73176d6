# LevelDB, by a program of ours, leveldb.cpp.

program leveldb 'libleveldb-dev g++' 'g++ /usr/include/leveldb/db.h'

prepare_leveldb() {
    compile leveldb.cpp -lleveldb
}

measure_leveldb() {
    locked "$BIN/leveldb" "$WORK/db" "$THREADS" "$SECONDS_EACH" | tee "$WORK/out"
    rate "$(sed -n 's/^operations per second: //p' "$WORK/out")" operations/s
}
