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
REGISTERS = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
DOUBLE = {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "DMMA"}


class Instruction:
    """One machine instruction: its address, its guard ("" = none), its opcode, its operands."""

    def __init__(self, address, guard, opcode, operands):
        self.address, self.guard, self.opcode, self.operands = address, guard, opcode, operands

    @property
    def is_double(self):
        """Arithmetic, comparison, conversion or the seed of a reciprocal in double precision."""
        parts = self.opcode.split(".")
        return parts[0] in DOUBLE or "F64" in parts or any(part.endswith("64H") for part in parts)

    @property
    def is_barrier(self):
        return self.opcode.startswith("BAR")

    @property
    def is_local(self):
        return self.opcode.split(".")[0] in ("LDL", "STL")


class Kernel:
    """A kernel's code for one architecture, without the padding at its end."""

    def __init__(self, name, architecture):
        self.name, self.architecture = name, architecture
        self.instructions = []
        self.registers = self.stack_bytes = self.shared_bytes = self.local_bytes = None

    def close(self):
        """Drops the jump to itself and the NOPs behind the code."""
        while self.instructions and self.instructions[-1].opcode == "NOP":
            self.instructions.pop()
        last = self.instructions[-1] if self.instructions else None
        if last and last.opcode == "BRA" and int(last.operands.split()[-1], 16) == last.address:
            self.instructions.pop()

    @property
    def doubles(self):
        return sum(i.is_double for i in self.instructions)

    @property
    def local_accesses(self):
        return sum(i.is_local for i in self.instructions)

    @property
    def before_barrier(self):
        """The instructions before the first barrier; none if there is no barrier."""
        for number, instruction in enumerate(self.instructions):
            if instruction.is_barrier:
                return self.instructions[:number]
        return []


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
            address, guard, opcode, operands = match.groups()
            kernel.instructions.append(Instruction(int(address, 16), guard or "", opcode, operands))
    for kernel in kernels.values():
        kernel.close()
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
            kernel.registers, kernel.stack_bytes, kernel.shared_bytes, kernel.local_bytes = map(int, match.groups())


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
