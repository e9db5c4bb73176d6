// The event loop hands calls of the file system to libuv's workers: stat.mjs SECONDS

import { stat } from 'node:fs/promises';

const limit = Number(process.argv[2]) * 1000;
let count = 0;
const start = performance.now();
while (performance.now() - start < limit) {
    const found = await stat('/');
    if (!found.isDirectory()) {
        console.log('wrong: the root is no directory');
        process.exit(1);
    }
    count++;
}
const took = (performance.now() - start) / 1000;
console.log(`per second: ${Math.round(count / took)}`);
