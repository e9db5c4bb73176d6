// Runs a program of WebAssembly, with WASI, with its threads too, or with nothing:
//
//   node scripts/systems.mjs FILE
import { readFileSync } from 'node:fs';
import { argv, env, exit } from 'node:process';
import { Worker, isMainThread, workerData } from 'node:worker_threads';

process.removeAllListeners('warning');    // that WASI is experimental
const { WASI } = await import('node:wasi');
const file = argv[2] ?? workerData.file;
const module = workerData?.module ?? new WebAssembly.Module(readFileSync(file));
const imports = WebAssembly.Module.imports(module);
const needsWasi = imports.some(({ module }) => module.startsWith('wasi'));
const hasThreads = imports.some(({ kind }) => kind === 'memory');

// A number for each thread of a program, which all of them count.
const numbers = workerData?.numbers ?? new Int32Array(new SharedArrayBuffer(4));
// More than the programs need. The module says the most that it takes: a gigabyte.
const memory = workerData?.memory
    ?? (hasThreads && new WebAssembly.Memory({ initial: 64, maximum: 16384, shared: true }));

function spawn(argument) {
    const number = Atomics.add(numbers, 0, 1) + 1;
    const data = { file, module, memory, numbers, number, argument };
    new Worker(new URL(import.meta.url), { workerData: data }).unref();
    return number;
}

if (!needsWasi) {
    const instance = await WebAssembly.instantiate(module, {});
    exit(instance.exports.main(0, 0));
}
const wasi = new WASI({ version: 'preview1', args: [file], env, returnOnExit: true });
const instance = new WebAssembly.Instance(module, {
    ...wasi.getImportObject(),
    env: { memory },
    wasi: { 'thread-spawn': spawn },
});
if (isMainThread) {
    exit(wasi.start(hasThreads ? { exports: { ...instance.exports, memory } } : instance));
}
wasi.initialize({ exports: { memory } });
instance.exports.wasi_thread_start(workerData.number, workerData.argument);
