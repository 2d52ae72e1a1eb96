// Compiles a folder's Python files to bytecode of Lambda's Python where no such interpreter is installed:
// CPython as WebAssembly (npm's pyodide) writes the same .pyc as any other CPython of its version.
//   node compile_bytecode.mjs <folder of pyodide> <folder to compile> <version, such as 3.13>
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [pyodideFolder, packages, version] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(pyodideFolder, "pyodide.mjs")));
const python = await loadPyodide();
python.FS.mkdirTree("/layer");
python.mountNodeFS("/layer", packages);
python.globals.set("expected", version);
const done = python.runPython(`
import compileall, py_compile, sys
assert f"{sys.version_info[0]}.{sys.version_info[1]}" == expected, sys.version
compileall.compile_dir(
    "/layer", quiet=2, stripdir="/layer", prependdir="/opt/python", maxlevels=50,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
`);
process.exit(done === false ? 1 : 0);
