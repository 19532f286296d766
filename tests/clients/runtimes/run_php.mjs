// Runs a PHP script on a version of PHP compiled to WebAssembly: run_php.mjs VERSION SCRIPT. Its curl uses real sockets.
import { loadNodeRuntime, useHostFilesystem } from "@php-wasm/node";
import { PHP } from "@php-wasm/universal";

const [version, ...words] = process.argv.slice(2);
const php = new PHP(
  await loadNodeRuntime(version, { emscriptenOptions: { processId: process.pid, ENV: process.env } }),
);
useHostFilesystem(php);
const answer = await php.cli(["php", ...words]);
await Promise.all([
  answer.stdout.pipeTo(new WritableStream({ write: (part) => void process.stdout.write(part) })),
  answer.stderr.pipeTo(new WritableStream({ write: (part) => void process.stderr.write(part) })),
]);
process.exit(await answer.exitCode);
