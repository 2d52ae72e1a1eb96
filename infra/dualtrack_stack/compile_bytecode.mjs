// Compiles folders of Python files to bytecode of Lambda's Python where no such interpreter is installed:
// CPython as WebAssembly (npm's pyodide) writes the same .pyc as any other CPython of its version.
//   node compile_bytecode.mjs <folder of pyodide> <version, such as 3.13>
// Each line of its input is a folder; "compiled" or "failed" answers it.
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [pyodideFolder, version] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")));
const python = await loadPyodide();
python.FS.mkdirTree("/layer");
python.globals.set("expected", version);
python.runPython(`
import compileall, py_compile, sys
assert f"{sys.version_info[0]}.{sys.version_info[1]}" == expected, sys.version

def compile_layer():
    return bool(compileall.compile_dir(
        "/layer", quiet=2, stripdir="/layer", prependdir="/opt/python", maxlevels=50,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    ))
`);
const compileLayer = python.globals.get("compile_layer");
for await (const packages of createInterface({ input: process.stdin })) {
  python.mountNodeFS("/layer", packages);
  console.log(compileLayer() ? "compiled" : "failed");
  python.FS.unmount("/layer");
}
