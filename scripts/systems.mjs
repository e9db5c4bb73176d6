// Runs a program of WebAssembly: with WASI, with its threads too, with workers, or with nothing:
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

// Workers without WASI: each makes an instance of its own, with a stack and thread-local data that
// the first thread has allocated.
const stackSize = 1 << 20;
if (!needsWasi && hasThreads) {
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    if (isMainThread) {
        const stack = exports.allocate(stackSize, 16) + stackSize;
        const local = exports.allocate(exports.__tls_size.value, exports.__tls_align.value);
        const other = new Worker(new URL(import.meta.url), { workerData: { file, module, memory, stack, local } });
        other.on('error', (error) => { console.error(error); exit(1); });
        const ended = new Promise((resolve) => other.on('exit', resolve));
        exports.work(0);
        exit(await ended);
    }
    exports.__stack_pointer.value = workerData.stack;
    exports.__wasm_init_tls(workerData.local);
    exports.work(1);
    exit(0);
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
