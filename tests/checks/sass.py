"""sass.py - reads the machine code of a fatbin's kernels, as cuobjdump prints it.

usage: sass.py    print the folder of the programs below; exit status 1 if they are not found

NVIDIA's cuobjdump and nvdisasm come with the CUDA toolkit or from PyPI (nvidia-cuda-cuobjdump,
nvidia-cuda-nvdisasm). find_tools() looks in $STOKER_CUDA_TOOLS, in PATH, in Python's packages and in
build/cuda-tools, where `./run setup test` puts them.
"""
import glob
import os
import re
import shutil
import site
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHITECTURE = re.compile(r"^arch = (sm_\w+)")
FUNCTION = re.compile(r"^\s*Function : (\w+)")
USED = re.compile(r"^\s*Function (\w+):")
REGISTERS = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
DOUBLE = {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "DMMA"}


def is_double(opcode):
    """Arithmetic, comparison, conversion or the seed of a reciprocal in double precision."""
    parts = opcode.split(".")
    return parts[0] in DOUBLE or "F64" in parts or any(part.endswith("64H") for part in parts)


class Kernel:
    """A kernel's code for one architecture."""

    def __init__(self, name, architecture):
        self.name, self.architecture = name, architecture
        self.opcodes = []
        self.registers = self.stack_bytes = self.local_bytes = None

    @property
    def doubles(self):
        return sum(map(is_double, self.opcodes))

    @property
    def doubles_before_barrier(self):
        """0 if there is no barrier."""
        barriers = [number for number, opcode in enumerate(self.opcodes) if opcode.startswith("BAR")]
        return sum(map(is_double, self.opcodes[:barriers[0]])) if barriers else 0

    @property
    def local_accesses(self):
        return sum(opcode.split(".")[0] in ("LDL", "STL") for opcode in self.opcodes)


def find_tools():
    """Returns the folder of cuobjdump and nvdisasm, or None."""
    folders = [os.environ.get("STOKER_CUDA_TOOLS", "")]
    found = shutil.which("cuobjdump")
    folders.append(os.path.dirname(found) if found else "")
    packages = site.getsitepackages() + [site.getusersitepackages(), os.path.join(TOP, "build", "cuda-tools")]
    for package in packages:
        folders += sorted(glob.glob(os.path.join(package, "nvidia", "*", "bin")), reverse=True)
    folders += ["/usr/local/cuda/bin", "/opt/cuda/bin"]
    for folder in folders:
        if folder and all(os.access(os.path.join(folder, tool), os.X_OK) for tool in ("cuobjdump", "nvdisasm")):
            return folder
    return None


def dump(folder, option, fatbin):
    environment = dict(os.environ, PATH=folder + os.pathsep + os.environ.get("PATH", ""))
    made = subprocess.run([os.path.join(folder, "cuobjdump"), option, fatbin], env=environment, check=False,
                          capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"cuobjdump {option} {fatbin}: {made.stderr.strip() or made.returncode}")
    return made.stdout


def parse_code(text):
    """{(name, architecture): Kernel} of the output of cuobjdump -sass."""
    kernels, architecture, kernel = {}, None, None
    for line in text.splitlines():
        if match := ARCHITECTURE.match(line):
            architecture, kernel = match.group(1), None
        elif match := FUNCTION.match(line):
            kernel = kernels.setdefault((match.group(1), architecture), Kernel(match.group(1), architecture))
        elif kernel and (match := INSTRUCTION.match(line)):
            kernel.opcodes.append(match.group(1))
    return kernels


def parse_resources(text, kernels):
    """Adds what cuobjdump -res-usage prints."""
    architecture, name = None, None
    for line in text.splitlines():
        if match := ARCHITECTURE.match(line):
            architecture = match.group(1)
        elif match := USED.match(line):
            name = match.group(1)
        elif (match := REGISTERS.search(line)) and (name, architecture) in kernels:
            kernel = kernels[name, architecture]
            kernel.registers, kernel.stack_bytes, kernel.local_bytes = map(int, match.groups())


def read(folder, fatbins):
    """Returns the kernels of fatbins, one per name and architecture."""
    kernels = {}
    for fatbin in fatbins:
        found = parse_code(dump(folder, "-sass", fatbin))
        parse_resources(dump(folder, "-res-usage", fatbin), found)
        kernels.update(found)
    return list(kernels.values())


def main():
    folder = find_tools()
    if folder is None:
        sys.exit("cuobjdump and nvdisasm are not installed")
    print(folder)


if __name__ == "__main__":
    main()
