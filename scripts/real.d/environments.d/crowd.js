// Worker threads that share memory, beside work for the pool of libuv.
const { Worker, isMainThread, workerData } = require('worker_threads');
const { pbkdf2 } = require('crypto');
if (isMainThread) {
    const shared = new SharedArrayBuffer(4);
    let left = 8, hashes = 0;
    for (let i = 0; i < 8; i++)
        new Worker(__filename, { workerData: shared }).on('exit', () => --left || done());
    for (let i = 0; i < 32; i++)
        pbkdf2('a', 'b', 2000, 32, 'sha256', () => ++hashes);
    const done = () => hashes < 32 ? setTimeout(done, 10) : console.log(Atomics.load(new Int32Array(shared), 0), hashes);
} else {
    for (let i = 0; i < 100000; i++)
        Atomics.add(new Int32Array(workerData), 0, 1);
}
