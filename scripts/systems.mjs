// Runs a program of WebAssembly, with WASI or with nothing: node scripts/systems.mjs FILE
import { readFile } from 'node:fs/promises';
import { argv, env, exit } from 'node:process';

process.removeAllListeners('warning');    // that WASI is experimental
const { WASI } = await import('node:wasi');
const module = new WebAssembly.Module(await readFile(argv[2]));
const needsWasi = WebAssembly.Module.imports(module).some(({ module }) => module.startsWith('wasi'));
if (needsWasi) {
    const wasi = new WASI({ version: 'preview1', args: argv.slice(2), env, returnOnExit: true });
    const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
    exit(wasi.start(instance));
}
const instance = await WebAssembly.instantiate(module, {});
exit(instance.exports.main(0, 0));
